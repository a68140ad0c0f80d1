"""Tag scores to entities, under the rules of a tagging scheme; as TensorFlow ops."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from albert_tf.data.tagged import OUTSIDE, prefixes_of, split_tag
from albert_tf_lite.errors import AlbertError

# Below any sum of log-probabilities that a text could have.
_NEVER = -1e9


class Tagging:
    """The tags of a task: which may follow which, and what they stand for.

    Args:
        tags: list of strings in the order of the outputs: `O`, and for each label a
            prefix of BIO, BIOES (BMES, BILOU) or IO, a hyphen and the label.

    Attributes:
        labels: list of strings in the order of the tags.
        scheme: `"BIO"` or `"BIOES"`.

    Raises:
        AlbertError: if `O` is missing, a tag is repeated, or one is none.
    """

    def __init__(self, tags: Sequence[str]):
        self.tags = [str(tag) for tag in tags]
        pairs = [split_tag(tag) for tag in self.tags]
        self._ids = {pair: number for number, pair in enumerate(pairs)}
        if OUTSIDE not in self.tags or len(self._ids) < len(pairs):
            raise AlbertError(
                f"The tags should be different, and O one of them. Received: {tags}"
            )
        self.labels = list(dict.fromkeys(label for _, label in pairs if label))
        closed = any(prefix in "ES" for prefix, _ in pairs)
        self.scheme = "BIOES" if closed else "BIO"
        self.outside = self.tags.index(OUTSIDE)
        self._label_of = [label for _, label in pairs]
        # [tags, tags] whether the second goes on with the entity of the first.
        self._goes_on = np.array([[_goes_on(a, b) for b in pairs] for a in pairs])
        allowed = [[self._may_follow(a, b) for b in pairs] for a in pairs]
        self._rule = np.where(self._goes_on | allowed, 0.0, _NEVER)

    def _may_follow(self, first, second):
        """Whether an entity may end with one tag, and the next tag not go on with it"""
        prefix, label = first
        is_open = prefix in "BI" and ("E", label) in self._ids
        # A label that has no B begins with I.
        begins = second[0] != "E" and (
            second[0] != "I" or ("B", second[1]) not in self._ids
        )
        return not is_open and begins

    def ids_of(self, label: str, length: int) -> list[int]:
        """The tags of an entity of `length` tokens."""
        return [
            # Some taggers have not all prefixes.
            next(
                self._ids[x, label]
                for x in (prefix, *"IBSE")
                if (x, label) in self._ids
            )
            for prefix in prefixes_of(length, self.scheme)
        ]

    def decode(self, logits: tf.RaggedTensor) -> tuple[tf.RaggedTensor, ...]:
        """The entities of the most probable tags that follow the rules.

        Args:
            logits: ragged float tensor [texts, (tokens), tags].

        Returns:
            Ragged tensors [texts, (entities)]: `first` and `last`, int64, the tokens
            that each begins and ends with; `label`, string; `score`, float32, the mean
            probability of its tags.
        """
        values = tf.nn.log_softmax(tf.cast(logits.values, tf.float32))
        scores = logits.with_values(values).to_tensor()
        is_token = tf.sequence_mask(logits.row_lengths(), tf.shape(scores)[1])
        # Outside where there is no token, one before the text and one after it
        # included: so a sequence begins and ends by the rules of all others.
        outside = tf.one_hot(self.outside, len(self.tags), 0.0, _NEVER)
        forced = tf.where(is_token[..., tf.newaxis], scores, outside)
        edge = tf.zeros([tf.shape(scores)[0], 1, 1]) + outside
        rule = tf.constant(self._rule, tf.float32)
        tags = viterbi(tf.concat([edge, forced, edge], axis=1), rule)
        return self._entities(tags, tf.exp(scores))

    def entities(
        self, logits: tf.RaggedTensor, starts: tf.RaggedTensor, ends: tf.RaggedTensor
    ) -> tuple[tf.RaggedTensor, ...]:
        """`start`, `end` (int32), `label` and `score` of the entities of texts.

        Args:
            logits: ragged float tensor [texts, (tokens), tags].
            starts, ends: ragged int32 tensors [texts, (tokens)], the characters of each
                token. Tokens without any are left out.
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

    def _entities(self, tags, probabilities):
        """What `decode` gives, of tags with one outside before and after the text."""
        before, here, after = tags[:, :-2], tags[:, 1:-1], tags[:, 2:]
        goes_on, inside = tf.constant(self._goes_on), here != self.outside
        begins = inside & ~tf.gather_nd(goes_on, tf.stack([before, here], axis=-1))
        stops = inside & ~tf.gather_nd(goes_on, tf.stack([here, after], axis=-1))
        first, last = tf.where(begins), tf.where(stops)
        label = tf.gather(tf.constant(self._label_of), tf.gather_nd(here, first))
        # In double precision: a difference of sums over a long text.
        chosen = tf.cast(tf.gather(probabilities, here, batch_dims=2), tf.float64)
        sums = tf.cumsum(tf.pad(chosen, [[0, 0], [1, 0]]), axis=1)
        total = tf.gather_nd(sums, last + [0, 1]) - tf.gather_nd(sums, first)
        count = tf.cast(last[:, 1] - first[:, 1] + 1, tf.float64)
        columns = first[:, 1], last[:, 1], label, tf.cast(total / count, tf.float32)
        lengths = tf.reduce_sum(tf.cast(begins, tf.int64), axis=1)
        return tuple(
            tf.RaggedTensor.from_row_lengths(column, lengths, validate=False)
            for column in columns
        )


def _goes_on(first, second):
    """Whether a tag (prefix, label) is of the same entity as the one before it."""
    return first[0] in "BI" and second[0] in "IE" and first[1] == second[1]


@tf.function(
    input_signature=[
        tf.TensorSpec([None, None, None], tf.float32),
        tf.TensorSpec([None, None], tf.float32),
    ]
)
def viterbi(scores: tf.Tensor, transitions: tf.Tensor) -> tf.Tensor:
    """The sequence of classes with the highest sum of scores.

    Args:
        scores: float32 [batch, time, classes], `time` at least 2.
        transitions: float32 [classes, classes], added where the second class follows
            the first.

    Returns:
        int32 tensor [batch, time].
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
