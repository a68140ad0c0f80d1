"""Spans of characters to the tags of tokens, and tag scores back to spans."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from albert_tf.data.tagged import OUTSIDE, check_spans, prefixes_of, split_tag
from albert_tf.models.batching import PADDING_TARGET
from albert_tf.preprocessing.packed_texts import WindowedTexts
from albert_tf.preprocessing.texts import as_python_strings
from albert_tf_lite import tagging as lite
from albert_tf_lite.errors import AlbertError

# Below any sum of log-probabilities that a text could have.
_NEVER = -1e9
# Tokens, padding included, that are decoded at a time.
_DECODED_AT_A_TIME = 2**18


class Tagging(lite.Tagging):
    """The tags of a task, with the rules of the NumPy runtime as TensorFlow ops.

    Args:
        tags: list of strings in the order of the outputs: `O`, and for each label a
            prefix of BIO, BIOES (BMES, BILOU) or IO, a hyphen and the label.

    Attributes:
        labels: list of strings in the order of the tags.
        scheme: `"BIO"` or `"BIOES"`.
    """

    def __init__(self, tags: Sequence[str]):
        self.tags = [str(tag) for tag in tags]
        self._ids = {split_tag(tag): number for number, tag in enumerate(self.tags)}
        if OUTSIDE not in self.tags or len(self._ids) < len(self.tags):
            raise AlbertError(
                f"The tags should be different, and O one of them. Received: {tags}"
            )
        super().__init__(self.tags)
        self.labels = list(dict.fromkeys(label for _, label in self._pairs if label))
        closed = any(prefix in "ES" for prefix, _ in self._pairs)
        self.scheme = "BIOES" if closed else "BIO"
        self.outside = self._outside
        pairs = self._pairs
        self._continues = np.array([[_continues(a, b) for b in pairs] for a in pairs])

    def ids_of(self, label: str, length: int) -> list[int]:
        """Return the tags of an entity of `length` tokens."""

        def tag(prefix):
            # Some taggers do not have all prefixes.
            return next(
                self._ids[other, label]
                for other in (prefix, *"IBSE")
                if (other, label) in self._ids
            )

        return list(map(tag, prefixes_of(length, self.scheme)))

    def decode(self, logits: tf.RaggedTensor) -> tuple[tf.RaggedTensor, ...]:
        """Find the entities of the most probable tags that follow the rules.

        Args:
            logits: ragged float tensor [texts, (tokens), tags].

        Returns:
            Ragged tensors [texts, (entities)]: the first and the last token (int64) of
            each, the label (string) and the score (float32), which is the mean
            probability of its tags.
        """
        values = tf.nn.log_softmax(tf.cast(logits.values, tf.float32))
        scores = logits.with_values(values).to_tensor()
        is_token = tf.sequence_mask(logits.row_lengths(), tf.shape(scores)[1])
        # Outside before and after the text, so that it begins and ends by the rules.
        outside = tf.one_hot(self.outside, len(self.tags), 0.0, _NEVER)
        forced = tf.where(is_token[..., tf.newaxis], scores, outside)
        edge = tf.zeros([tf.shape(scores)[0], 1, 1]) + outside
        rule = tf.constant(self._transitions)
        tags = viterbi(tf.concat([edge, forced, edge], axis=1), rule)

        before, here, after = tags[:, :-2], tags[:, 1:-1], tags[:, 2:]
        continues, inside = tf.constant(self._continues), here != self.outside
        begins = inside & ~tf.gather_nd(continues, tf.stack([before, here], axis=-1))
        stops = inside & ~tf.gather_nd(continues, tf.stack([here, after], axis=-1))
        first, last = tf.where(begins), tf.where(stops)
        names = tf.constant([label for _, label in self._pairs])
        label = tf.gather(names, tf.gather_nd(here, first))
        # In double precision: a difference of sums over a long text.
        chosen = tf.gather(tf.exp(scores), here, batch_dims=2)
        chosen = tf.pad(tf.cast(chosen, tf.float64), [[0, 0], [1, 0]])
        sums = tf.cumsum(chosen, axis=1)
        total = tf.gather_nd(sums, last + [0, 1]) - tf.gather_nd(sums, first)
        first, last = first[:, 1], last[:, 1]
        score = tf.cast(total / tf.cast(last - first + 1, tf.float64), tf.float32)
        lengths = tf.reduce_sum(tf.cast(begins, tf.int64), axis=1)
        return tuple(
            tf.RaggedTensor.from_row_lengths(column, lengths, validate=False)
            for column in (first, last, label, score)
        )

    def entities(self, logits, starts, ends):
        """Return `start`, `end`, `label` and `score` of the entities of texts.

        As `decode`, with the characters of each token, ragged int32 tensors
        [texts, (tokens)]. Tokens without any are left out.
        """
        kept = starts.with_values(starts.values < ends.values)
        logits, starts, ends = (
            tf.ragged.boolean_mask(x, kept) for x in (logits, starts, ends)
        )
        first, last, label, score = self.decode(logits)
        row_starts = tf.gather(starts.row_starts(), first.value_rowids())
        start = tf.gather(starts.values, row_starts + first.values)
        end = tf.gather(ends.values, row_starts + last.values)
        return first.with_values(start), first.with_values(end), label, score


def _continues(first, second):
    """Return whether two tags (prefix, label) in a row are of the same entity."""
    return first[0] in "BI" and second[0] in "IE" and first[1] == second[1]


@tf.function(
    input_signature=[
        tf.TensorSpec([None, None, None], tf.float32),
        tf.TensorSpec([None, None], tf.float32),
    ]
)
def viterbi(scores: tf.Tensor, transitions: tf.Tensor) -> tf.Tensor:
    """Return the classes [batch, time] with the highest sum of scores.

    Args:
        scores: float32 [batch, time, classes], `time` at least 2.
        transitions: float32 [classes, classes], added where the second class follows
            the first.
    """
    first, rest = scores[:, 0], tf.transpose(scores[:, 1:], [1, 0, 2])

    def forward(state, step):
        best, _ = state
        paths = best[:, :, tf.newaxis] + transitions
        best = tf.reduce_max(paths, axis=1) + step
        # Only differences count, and sums over a long text would lose them.
        best -= tf.reduce_max(best, axis=-1, keepdims=True)
        return best, tf.argmax(paths, axis=1, output_type=tf.int32)

    best, came_from = tf.scan(forward, rest, (first, tf.zeros_like(first, tf.int32)))
    last = tf.argmax(best[-1], axis=-1, output_type=tf.int32)
    before = tf.scan(
        lambda tag, came_from: tf.gather(came_from, tag, batch_dims=1),
        came_from,
        last,
        reverse=True,
    )
    return tf.transpose(tf.concat([before, [last]], axis=0))


# === Spans ===


def tags_of_spans(
    tagging: Tagging, x: Any, y: Any, texts: WindowedTexts
) -> tf.RaggedTensor:
    """Return the tag of each token, int32 [windows, (tokens)].

    A token that is in a span by any of its characters is of that span. The tag is
    `PADDING_TARGET` for special tokens, where a token has no characters, and where
    another window decides it. `y` is the list of spans of each text.
    """
    strings = as_python_strings(x)
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
            found = _tag_row(tagging, spans, starts[row], ends[row], tags[row])
        except AlbertError as error:
            raise AlbertError(f"In text {number}, {error}") from None
        inexact += [(number, text[start:end]) for start, end in found]
    if inexact:
        number, text = inexact[0]
        warnings.warn(
            f"{len(inexact)} spans begin or end within a token or hold none, such as "
            f"{text!r} in text {number}. They are learned as the tokens they touch.",
            stacklevel=5,
        )
    windows = texts.windows
    tags = windows.of_windows(tf.constant(tags))
    is_decided = windows.are_decided().values
    tags = tags.with_values(tf.where(is_decided, tags.values, PADDING_TARGET))
    edge = tf.fill([tags.nrows(), 1], PADDING_TARGET)
    return tf.concat([edge, tags, edge], axis=1)


def _tag_row(tagging, spans, starts, ends, tags):
    """Fill in the tags of a text, and return the spans that are not whole tokens."""
    tokens = np.flatnonzero(starts < ends)
    starts, ends = starts[tokens], ends[tokens]
    free, inexact = 0, []
    for start, end, label in spans:
        if label not in tagging.labels:
            raise AlbertError(
                f"{(start, end, label)} has an unknown label. Expected one of "
                f"{tagging.labels}."
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
    """Return (start, end, label, score) of the entities of each text.

    `logits` is a ragged float tensor [windows, (tokens), tags].
    """
    logits = texts.starts.with_values(texts.windows.merge(logits))
    lengths = texts.starts.row_lengths().numpy()
    entities: list[Any] = [None] * len(lengths)
    order = np.argsort(lengths, kind="stable")
    while len(order):
        # The longest texts that are left, as many as fit.
        count = max(_DECODED_AT_A_TIME // max(lengths[order[-1]], 1), 1)
        order, rows = order[:-count], order[-count:]
        columns = (tf.gather(x, rows) for x in (logits, texts.starts, texts.ends))
        found = (column.to_list() for column in tagging.entities(*columns))
        for row, (start, end, label, score) in zip(
            rows, zip(*found, strict=True), strict=True
        ):
            label = map(bytes.decode, label)
            entities[row] = list(zip(start, end, label, score, strict=True))
    return entities


@keras.saving.register_keras_serializable(package="albert_tf")
class TagAccuracy(keras.metrics.SparseCategoricalAccuracy):
    """Accuracy of the tags of tokens, except those of `PADDING_TARGET`."""

    def update_state(self, y_true, y_pred, sample_weight=None):
        counted = keras.ops.cast(y_true != PADDING_TARGET, self.dtype)
        if sample_weight is not None:
            weight = keras.ops.cast(sample_weight, self.dtype)
            # One weight per text or per token.
            counted *= weight[:, None] if len(weight.shape) == 1 else weight
        super().update_state(keras.ops.maximum(y_true, 0), y_pred, counted)
