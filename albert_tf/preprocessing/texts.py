"""Turning what users pass as text into string tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf_lite.errors import AlbertError

# Texts, or pairs of texts as the tuple of two lists.
Texts = Sequence[str] | tuple[Sequence[str], Sequence[str]]


def as_string_tensor(texts: Any, name: str = "x") -> tf.Tensor:
    """A string [], or a list, array, series or tensor of strings [batch], as a tensor.

    Bytes are taken as UTF-8. Errors call it `name`, and name the first element that is
    no string.
    """
    if not tf.is_tensor(texts):
        values = np.asarray(texts, dtype=object)
        for position, value in enumerate(values.ravel()):
            if not isinstance(value, (str, bytes)):
                raise TypeError(
                    f"`{name}` should hold strings. Element {position} is "
                    f"{value!r} of type {type(value).__name__}."
                )
        # Without the halves of surrogate pairs, which no text has.
        encoded = [
            value if isinstance(value, bytes) else value.encode("utf-8", "ignore")
            for value in values.ravel()
        ]
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
    """The one or two segments of each example, as string tensors of the same shape.

    `x` is strings, or the tuple of two lists of strings.
    """
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
    """A list, array or tensor of strings as a list; of bytes, the UTF-8 in them."""
    if tf.is_tensor(texts):
        texts = texts.numpy()
    return [x.decode("utf-8", "ignore") if isinstance(x, bytes) else x for x in texts]


def without_invalid_bytes(texts: tf.Tensor) -> tf.Tensor:
    """Strings as the tokenizers read them, and as offsets count their characters."""
    return tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="ignore")
