"""Labels of albert_zh: `##` and the character for characters within a word."""

import re

import keras_hub
import tensorflow as tf

from albert_tf.preprocessing.ngrams import row_counts
from albert_tf_lite.errors import AlbertError

# `get_new_segment` of albert_zh's `create_pretraining_data.py` marks these by `##`.
CHINESE = re.compile("[\u4e00-\u9fa5]")
_MARKED = re.compile(f"##{CHINESE.pattern}")


def marked_tokens(tokenizer: keras_hub.tokenizers.Tokenizer) -> list[int]:
    """Return the ids of the tokens that are `##` and a Chinese character."""
    tokens = enumerate(tokenizer.get_vocabulary())
    return [number for number, token in tokens if _MARKED.fullmatch(token)]


def marked_label_ids(tokenizer: keras_hub.tokenizers.Tokenizer) -> list[int]:
    """Return the label of each token within a word, for `inner_labels`."""
    if not marked_tokens(tokenizer):
        raise AlbertError(
            "Labels with ## need a vocabulary with Chinese characters after ##, such "
            "as ##中 of albert_zh. This one has none: leave out `marked_labels=`."
        )
    tokens = tokenizer.get_vocabulary()
    ids = {token: number for number, token in enumerate(tokens)}
    return [
        ids.get(f"##{token}", number) if CHINESE.fullmatch(token) else -1
        for number, token in enumerate(tokens)
    ]


def plain_token_ids(inner_label_ids: list[int]) -> list[int]:
    """Return the token of each label."""
    plain = list(range(len(inner_label_ids)))
    for token, label in enumerate(inner_label_ids):
        if label >= 0:
            plain[label] = token
    return plain


def label_tokens(tokenizer: keras_hub.tokenizers.Tokenizer | None) -> list[int] | None:
    """Return the token of each label, with `##` or without; `None` if all are equal.

    Tokenizers never return `##` and a Chinese character: each is a token alone.
    """
    if tokenizer is None or not marked_tokens(tokenizer):
        return None
    return plain_token_ids(marked_label_ids(tokenizer))


def inner_labels(
    token_ids: tf.Tensor, word_starts: tf.Tensor, inner_label_ids: list[int]
) -> tf.Tensor:
    """Return the labels of tokens, int32 [batch, time].

    `inner_label_ids` holds the label of a token within a word, by token; -1 is for a
    token that is its own label, and begins words all of whose tokens are.
    """
    labels = tf.gather(tf.constant(inner_label_ids, tf.int32), token_ids)
    has_label = labels >= 0
    # 1 for each word whose first token has a label.
    words = tf.cumsum(tf.cast(word_starts, tf.int32), axis=1)
    limit = tf.shape(token_ids)[1] + 1
    begun = row_counts(tf.where(word_starts & has_label, words, 0), limit) > 0
    within = tf.gather(begun, words, batch_dims=1) & (words > 0) & ~word_starts
    return tf.where(within & has_label, labels, token_ids)
