"""The labels of albert_zh: `##` and the character, for what does not begin a word."""

import re

import tensorflow as tf

from albert_tf.preprocessing.ngrams import row_counts
from albert_tf_lite.errors import AlbertError

# What `get_new_segment` of albert_zh's `create_pretraining_data.py` marks by `##`.
CHINESE = re.compile("[\u4e00-\u9fa5]")
_MARKED = re.compile(f"##{CHINESE.pattern}")


def marked_tokens(tokenizer):
    """The ids of the tokens that are `##` and a Chinese character, a list."""
    tokens = enumerate(tokenizer.get_vocabulary())
    return [number for number, token in tokens if _MARKED.fullmatch(token)]


def marked_label_ids(tokenizer):
    """The label of each token within a word, for `inner_labels`, a list of ints."""
    if not marked_tokens(tokenizer):
        raise AlbertError(
            "Labels with ## need a vocabulary that has Chinese characters with ##, as "
            "albert_zh's has ##中. This one has none: leave "
            "`marked_labels=` out."
        )
    tokens = tokenizer.get_vocabulary()
    ids = {token: number for number, token in enumerate(tokens)}
    return [
        ids.get(f"##{token}", number) if CHINESE.fullmatch(token) else -1
        for number, token in enumerate(tokens)
    ]


def plain_token_ids(inner_label_ids):
    """The token that each label stands for, a list of ints."""
    plain = list(range(len(inner_label_ids)))
    for token, label in enumerate(inner_label_ids):
        if label >= 0:
            plain[label] = token
    return plain


def inner_labels(token_ids, word_starts, inner_label_ids):
    """The labels of tokens, int32 [batch, time]: their own, or those within a word.

    In `inner_label_ids`, by token, -1 stands for a token that is its own label, and
    begins words all of whose tokens are.
    """
    labels = tf.gather(tf.constant(inner_label_ids, tf.int32), token_ids)
    has_label = labels >= 0
    # By word, whether its first token has a label.
    words = tf.cumsum(tf.cast(word_starts, tf.int32), axis=1)
    limit = tf.shape(token_ids)[1] + 1
    begun = row_counts(tf.where(word_starts & has_label, words, 0), limit) > 0
    within = tf.gather(begun, words, batch_dims=1) & (words > 0) & ~word_starts
    return tf.where(within & has_label, labels, token_ids)
