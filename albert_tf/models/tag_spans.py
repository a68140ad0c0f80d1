"""Spans of characters to the tags of tokens, and back."""

from __future__ import annotations

import warnings
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from albert_tf.data.tagged import check_spans
from albert_tf.models.tagging import Tagging
from albert_tf.models.token_outputs import PADDING_TARGET
from albert_tf.preprocessing.packed_texts import WindowedTexts
from albert_tf_lite.errors import AlbertError

# Tokens, padding included, that are decoded at a time.
_DECODED_AT_A_TIME = 2**18


def tags_of_spans(
    tagging: Tagging, x: Any, y: Any, texts: WindowedTexts
) -> tf.RaggedTensor:
    """The tag of each token, int32 [windows, (tokens)], special tokens included.

    A token that is in a span by any of its characters is of that span. The tag is
    `PADDING_TARGET` where a token has no characters of its own, or another window
    decides it.

    Args:
        tagging: the tags.
        x: list, array or tensor of strings [texts].
        y: list of the spans of each text, (start, end, label) in characters.
        texts: what the preprocessor makes of `x`.

    Raises:
        AlbertError: if there are not as many lists as texts, or a span is outside its
            text, overlaps another, or has an unknown label; says which.
    """
    strings = _strings(x)
    if y is None or len(y) != len(strings) or not strings:
        found = "none" if y is None else f"{len(y)} lists of spans"
        raise AlbertError(
            "`y` must have a list of spans (start, end, label) for each text, at least "
            f"one. Received: {len(strings)} texts and {found}."
        )
    starts, ends = texts.starts.values.numpy(), texts.ends.values.numpy()
    tags = np.where(starts < ends, tagging.outside, PADDING_TARGET).astype("int32")
    splits = texts.starts.row_splits.numpy()
    inexact = []
    for number, (text, spans) in enumerate(zip(strings, y, strict=True)):
        row = slice(splits[number], splits[number + 1])
        try:
            spans = check_spans(spans, len(text))
            inexact += [
                (number, text[start:end])
                for start, end in _tag_row(
                    tagging, spans, starts[row], ends[row], tags[row]
                )
            ]
        except ValueError as error:
            raise AlbertError(f"In text {number}, {error}") from None
    if inexact:
        number, text = inexact[0]
        warnings.warn(
            f"{len(inexact)} spans begin or end within a token or hold none, such as "
            f"{text!r} in text {number}. They are learned as the tokens they touch.",
            stacklevel=5,
        )
    windows = texts.windows
    tags = windows.of_windows(tf.constant(tags))
    tags = tags.with_values(
        tf.where(windows.are_decided().values, tags.values, PADDING_TARGET)
    )
    edge = tf.fill([tags.nrows(), 1], PADDING_TARGET)
    return tf.concat([edge, tags, edge], axis=1)


def _strings(x):
    values = x.numpy() if tf.is_tensor(x) else x
    return [
        text.decode("utf-8", "ignore") if isinstance(text, bytes) else text
        for text in values
    ]


def _tag_row(tagging, spans, starts, ends, tags):
    """Fill in the tags of a text; gives the (start, end) of spans that tokens miss."""
    tokens = np.flatnonzero(starts < ends)
    starts, ends = starts[tokens], ends[tokens]
    free, inexact = 0, []
    for start, end, label in spans:
        if label not in tagging.labels:
            raise AlbertError(
                f"{(start, end, label)} has a label that the model does not know. It "
                f"knows {tagging.labels}."
            )
        # The tokens with characters in the span, but for those of the span before.
        first = max(free, np.searchsorted(ends, start, side="right"))
        free = max(first, np.searchsorted(starts, end))
        if first < free:
            tags[tokens[first:free]] = tagging.ids_of(label, free - first)
        if first == free or starts[first] < start or ends[free - 1] > end:
            inexact.append((start, end))
    return inexact


def spans_of_logits(
    tagging: Tagging, texts: WindowedTexts, logits: tf.RaggedTensor
) -> list[list[tuple[int, int, str, float]]]:
    """The entities of each text, (start, end, label, score).

    Args:
        tagging: the tags.
        texts: what the preprocessor made of the texts.
        logits: ragged float tensor [windows, (tokens), tags].
    """
    starts = texts.starts
    logits = starts.with_values(texts.windows.merge(logits))
    lengths = starts.row_lengths().numpy()
    entities = [None] * len(lengths)
    order = np.argsort(lengths, kind="stable")
    while len(order):
        # From long to short, as many as fit.
        count = max(_DECODED_AT_A_TIME // max(lengths[order[-1]], 1), 1)
        order, rows = order[:-count], order[-count:]
        found = tagging.entities(
            *(tf.gather(column, rows) for column in (logits, starts, texts.ends))
        )
        columns = zip(*(column.to_list() for column in found), strict=True)
        for row, (start, end, label, score) in zip(rows, columns, strict=True):
            label = [name.decode() for name in label]
            entities[row] = list(zip(start, end, label, score, strict=True))
    return entities


@keras.saving.register_keras_serializable(package="albert_tf")
class TagAccuracy(keras.metrics.SparseCategoricalAccuracy):
    """The share of tokens whose tag is right; those of `PADDING_TARGET` do not count.

    A weight is one of a text [batch] or of a token [batch, time].
    """

    def update_state(self, y_true, y_pred, sample_weight=None):
        counted = keras.ops.cast(y_true != PADDING_TARGET, self.dtype)
        if sample_weight is not None:
            weight = keras.ops.cast(sample_weight, self.dtype)
            counted *= weight[:, None] if len(weight.shape) == 1 else weight
        super().update_state(keras.ops.maximum(y_true, 0), y_pred, counted)
