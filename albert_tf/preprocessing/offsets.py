"""Tokens, and where in the user's own strings they stand."""

from __future__ import annotations

import concurrent.futures
import os
import re
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from albert_tf.preprocessing.texts import as_string_tensor
from albert_tf.tokenizers.text_tokenizer import TextTokenizer

# UTF-8 has none of these, so the tokenizer never sees them.
_SURROGATE = re.compile("[\ud800-\udfff]")


def tokenize_with_offsets(
    tokenizer: TextTokenizer, texts: Sequence[str], chunk: int = 1024
) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
    """The tokens of each text, and where they stand in it.

    As `tokenizer.tokenize_with_offsets`, but for any Python string: halves of surrogate
    pairs, which the tokenizer does not get to see, are counted too.

    Args:
        tokenizer: a `WordPieceTokenizer` or a `SentencePieceTokenizer`.
        texts: list, array or tensor of strings [texts].
        chunk: int. Texts that a thread tokenizes at a time.

    Returns:
        `(ids, starts, ends)`, ragged int32 tensors [texts, (tokens)]: what
        `tokenizer(texts)` gives, and for each token its first character in the text and
        the one after its last. `text[start:end]` is what the token was made of;
        neither starts nor ends ever fall within a text. Of bytes, the characters
        are those of the UTF-8 text without what is invalid in it.

    Example:

    >>> ids, starts, ends = tokenize_with_offsets(tokenizer, ["我　是 Zoé！"])
    >>> list(zip(starts[0].numpy(), ends[0].numpy()))
    [(0, 1), (2, 3), (4, 7), (7, 8)]
    """
    strings = as_string_tensor(texts)
    parts = [strings[i : i + chunk] for i in range(0, max(len(strings), 1), chunk)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
        columns = zip(*threads.map(tokenizer.tokenize_with_offsets, parts), strict=True)
        ids, starts, ends = (
            tf.cast(tf.concat(column, axis=0), tf.int32) for column in columns
        )
    if not tf.is_tensor(texts):
        starts, ends = _count_surrogates(texts, starts, ends)
    return ids, starts, ends


def _count_surrogates(texts, starts, ends):
    """Offsets in texts, of offsets in these without halves of surrogate pairs."""
    rows = [
        row
        for row, text in enumerate(texts)
        if isinstance(text, str) and _SURROGATE.search(text)
    ]
    if not rows:
        return starts, ends
    splits = starts.row_splits.numpy()
    first, last = np.array(starts.values), np.array(ends.values)
    for row in rows:
        tokens = slice(splits[row], splits[row + 1])
        text = texts[row]
        kept = [i for i, c in enumerate(text) if not _SURROGATE.match(c)]
        kept = np.array([*kept, len(text)], "int32")
        # A token of no characters stays one.
        empty = first[tokens] == last[tokens]
        first[tokens] = kept[first[tokens]]
        after = kept[np.maximum(last[tokens] - 1, 0)] + 1
        last[tokens] = np.where(empty, first[tokens], after)
    return starts.with_values(first), ends.with_values(last)


def without_overlap(
    starts: tf.RaggedTensor, ends: tf.RaggedTensor
) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
    """The offsets, with each character left to the first token made of it.

    Of a character that became several tokens, as a Korean syllable can, all but the
    first token are empty then (`start == end`).

    Args:
        starts, ends: ragged int32 tensors [texts, (tokens)], in rising order.
    """
    position = tf.range(tf.size(starts.values, tf.int64))
    row_starts = tf.gather(starts.row_starts(), starts.value_rowids())
    before = tf.concat([[0], ends.values], axis=0)[:-1]
    before = tf.where(position == row_starts, 0, before)
    starts = starts.with_values(tf.maximum(starts.values, before))
    return starts, ends.with_values(tf.maximum(starts.values, ends.values))
