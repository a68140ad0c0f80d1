"""Texts as users pass them: as string tensors, and offsets in Python strings."""

from __future__ import annotations

import concurrent.futures
import os
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.tokenizers.text_tokenizer import TextTokenizer
from albert_tf_lite.errors import AlbertError

# Texts, or pairs of texts as the tuple of two lists.
Texts = Sequence[str] | tuple[Sequence[str], Sequence[str]]
# Number of texts that a thread tokenizes at a time.
CHUNK = 1024
# Halves of surrogate pairs, which UTF-8 and thus the tokenizers do not have.
_SURROGATE = re.compile("[\ud800-\udfff]")


def as_string_tensor(texts: Any, name: str = "x") -> tf.Tensor:
    """Return a string [] or strings [batch], of any kind, as a tensor.

    `name` and the position of a value that is not a string are in the error.
    """
    if not tf.is_tensor(texts):
        values = np.asarray(texts, dtype=object)
        encoded = []
        for position, value in enumerate(values.ravel()):
            if isinstance(value, str):
                value = value.encode("utf-8", "ignore")
            if not isinstance(value, bytes):
                raise TypeError(
                    f"`{name}` should hold strings. Element {position} is "
                    f"{value!r} of type {type(value).__name__}."
                )
            encoded.append(value)
        texts = tf.reshape(tf.constant(encoded, tf.string), values.shape)
    if texts.dtype != tf.string:
        raise TypeError(f"`{name}` should hold strings, not {texts.dtype.name}.")
    if texts.shape.rank is not None and texts.shape.rank > 1:
        raise AlbertError(
            f"`{name}` should be one string or a list of strings. Received a "
            f"tensor of shape {tuple(texts.shape)}. A pair of texts is the tuple "
            "of two lists: (first_texts, second_texts)."
        )
    return texts


def as_segments(x: Any) -> tuple[tf.Tensor, ...]:
    """Return the one or two texts of each example as string tensors of one shape."""
    segments = x if isinstance(x, tuple) else (x,)
    if len(segments) not in (1, 2):
        raise AlbertError(
            "An example has one text, or two as the tuple (first_texts, "
            f"second_texts). Received a tuple of {len(segments)}."
        )
    names = ("x",) if len(segments) == 1 else ("x[0]", "x[1]")
    segments = tuple(map(as_string_tensor, segments, names))
    if not segments[0].shape.is_compatible_with(segments[-1].shape):
        raise AlbertError(
            "The two lists of a pair must have the same length. Received shapes "
            f"{segments[0].shape} and {segments[1].shape}."
        )
    return segments


def as_python_strings(texts: Any) -> list[str]:
    """Return strings or UTF-8 bytes of any kind as a list of strings."""
    if tf.is_tensor(texts):
        texts = texts.numpy()
    return [x.decode("utf-8", "ignore") if isinstance(x, bytes) else x for x in texts]


def without_invalid_bytes(texts: tf.Tensor) -> tf.Tensor:
    """Return strings as tokenizers read them and offsets count their characters."""
    return tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="ignore")


def tokenize_with_offsets(
    tokenizer: TextTokenizer, texts: Sequence[str]
) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
    """Tokenize texts in threads, with offsets that hold for any Python string.

    Like `tokenizer.tokenize_with_offsets`, but halves of surrogate pairs, which
    tokenizers do not see, count as characters too.
    """
    strings = as_string_tensor(texts)
    parts = [strings[i : i + CHUNK] for i in range(0, max(len(strings), 1), CHUNK)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
        columns = zip(*threads.map(tokenizer.tokenize_with_offsets, parts), strict=True)
        ids, starts, ends = (
            tf.cast(tf.concat(column, axis=0), tf.int32) for column in columns
        )
    if not tf.is_tensor(texts):
        starts, ends = _count_surrogates(texts, starts, ends)
    return ids, starts, ends


def _count_surrogates(texts, starts, ends):
    splits = starts.row_splits.numpy()
    firsts, lasts = np.array(starts.values), np.array(ends.values)
    for row, text in enumerate(texts):
        if not isinstance(text, str) or not _SURROGATE.search(text):
            continue
        tokens = slice(splits[row], splits[row + 1])
        first, last = firsts[tokens], lasts[tokens]
        kept = [i for i, c in enumerate(text) if not _SURROGATE.match(c)]
        kept = np.array([*kept, len(text)])
        after = np.where(first < last, kept[last - 1] + 1, kept[first])
        firsts[tokens], lasts[tokens] = kept[first], after
    return starts.with_values(firsts), ends.with_values(lasts)
