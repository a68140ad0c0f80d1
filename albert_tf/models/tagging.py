"""Spans of characters to the tags of tokens, and tag scores back to spans."""

import warnings
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from albert_tf.data.tagged import check_spans, prefixes_of
from albert_tf.models.batching import PADDING_TARGET
from albert_tf.preprocessing.segment_packer import WindowedTexts
from albert_tf.preprocessing.texts import as_python_strings, check_count
from albert_tf_lite import tagging as lite
from albert_tf_lite.errors import AlbertError

# Below any sum of log-probabilities that a text could have.
_NEVER = -1e9


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
        tags = [str(tag) for tag in tags]
        self._ids = {lite.split_tag(tag): number for number, tag in enumerate(tags)}
        if lite.OUTSIDE not in tags or len(self._ids) < len(tags):
            raise AlbertError(
                f"The tags should be different, and O one of them. Received: {tags}"
            )
        super().__init__(tags)
        self.labels = list(dict.fromkeys(label for _, label in self.pairs if label))
        closed = any(prefix in "ES" for prefix, _ in self.pairs)
        self.scheme = "BIOES" if closed else "BIO"

    def ids_of(self, label: str, length: int) -> list[int]:
        """Return the tags of an entity of `length` tokens."""

        def tag(prefix):
            # Some taggers do not have all prefixes.
            options = ((other, label) for other in (prefix, *"IBSE"))
            return next(self._ids[x] for x in options if x in self._ids)

        return list(map(tag, prefixes_of(length, self.scheme)))

    def entities_in_graph(
        self, logits: tf.RaggedTensor, starts: tf.RaggedTensor, ends: tf.RaggedTensor
    ) -> tuple[tf.RaggedTensor, ...]:
        """Return `entities` of several texts; also works in a graph.

        Args:
            logits: ragged float tensor [texts, (tokens), tags].
            starts, ends: ragged int32 tensors [texts, (tokens)], the characters of each
                token. Tokens without any are left out.

        Returns:
            Ragged tensors [texts, (entities)] of start, end, label and score.
        """
        has_text = starts.with_values(starts.values < ends.values)
        logits, starts, ends = (
            tf.ragged.boolean_mask(x, has_text) for x in (logits, starts, ends)
        )
        scores = tf.cast(logits.values, tf.float32)
        # Small numbers, whose sums over a long text keep the differences.
        scores -= tf.reduce_max(scores, axis=-1, keepdims=True)
        lengths = logits.row_lengths()
        scores_of_texts = logits.with_values(scores).to_tensor()
        is_token = tf.sequence_mask(lengths, tf.shape(scores_of_texts)[1])
        # Outside before and after the text, so that it begins and ends by the rules.
        outside = tf.one_hot(self.outside, len(self.tags), 0.0, _NEVER)
        forced = tf.where(is_token[..., tf.newaxis], scores_of_texts, outside)
        edge = tf.zeros([tf.shape(forced)[0], 1, 1]) + outside
        rule = tf.constant(np.where(self.allowed, 0, _NEVER), tf.float32)
        tags = viterbi(tf.concat([edge, forced, edge], axis=1), rule)[:, 1:-1]
        text = logits.value_rowids()
        tags = tf.RaggedTensor.from_tensor(tags, lengths).values
        pairs = tf.stack([tags[:-1], tags[1:]], axis=1)
        rule = [[lite.continues(a, b) for b in self.pairs] for a in self.pairs]
        joined = tf.gather_nd(tf.constant(rule), pairs) & (text[:-1] == text[1:])
        inside = tags != self.outside
        begins = inside & ~tf.pad(joined, [[1, 0]])[: tf.size(tags)]
        first = tf.where(begins)[:, 0]
        last = tf.where(inside & ~tf.pad(joined, [[0, 1]])[: tf.size(tags)])[:, 0]
        chosen = tf.gather(tf.nn.softmax(scores), tags, batch_dims=1)
        number = tf.cumsum(tf.cast(begins, tf.int64)) - 1
        score = tf.math.segment_mean(
            tf.boolean_mask(chosen, inside), tf.boolean_mask(number, inside)
        )
        labels = tf.constant([label for _, label in self.pairs])
        columns = (
            tf.gather(starts.values, first),
            tf.gather(ends.values, last),
            tf.gather(labels, tf.gather(tags, first)),
            score,
        )
        return tuple(
            tf.RaggedTensor.from_value_rowids(
                x, tf.gather(text, first), starts.nrows(), validate=False
            )
            for x in columns
        )


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


def tags_of_spans(
    tagging: Tagging, x: Any, y: Any, texts: WindowedTexts
) -> tf.RaggedTensor:
    """Return the tag of each token, int32 [windows, (tokens)].

    A token that is in a span by any of its characters is of that span. The tag is
    `PADDING_TARGET` for special tokens, where a token has no characters, and where
    another window decides it. `y` is the list of spans of each text.
    """
    strings = as_python_strings(x)
    check_count(strings, y)
    starts, ends = texts.starts.values.numpy(), texts.ends.values.numpy()
    tags = np.where(starts < ends, tagging.outside, PADDING_TARGET).astype("int32")
    splits = texts.starts.row_splits.numpy()
    inexact = []
    for number, (text, spans) in enumerate(zip(strings, y, strict=True)):
        tokens = np.arange(splits[number], splits[number + 1])
        tokens = tokens[starts[tokens] < ends[tokens]]
        first_of, last_of = starts[tokens], ends[tokens]
        free = 0
        try:
            spans = check_spans(spans, len(text), tagging.labels)
        except AlbertError as error:
            raise AlbertError(f"In text {number}, {error}") from None
        for start, end, label in spans:
            # The tokens with characters in the span, but for those of the span before.
            first = max(free, int(np.searchsorted(last_of, start, side="right")))
            free = max(first, int(np.searchsorted(first_of, end)))
            if first < free:
                tags[tokens[first:free]] = tagging.ids_of(label, free - first)
            if first == free or first_of[first] < start or last_of[free - 1] > end:
                inexact.append(text[start:end])
    if inexact:
        warnings.warn(
            f"{len(inexact)} spans begin or end within a token or hold none, such as "
            f"{inexact[0]!r}. They are learned as the tokens they touch.",
            stacklevel=5,
        )
    windows = texts.windows
    tags = windows.of_windows(tf.constant(tags))
    is_decided = windows.are_decided().values
    tags = tags.with_values(tf.where(is_decided, tags.values, PADDING_TARGET))
    edge = tf.fill([tags.nrows(), 1], PADDING_TARGET)
    return tf.concat([edge, tags, edge], axis=1)


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
