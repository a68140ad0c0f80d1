"""Tags of tokens as TensorFlow operations, and the tags that a tagger learns."""

import warnings
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from albert_tf.data.labels.tag_spellings import read_tags
from albert_tf.data.labels.tags import prefixes_of
from albert_tf.data.labels.text_spans import check_spans
from albert_tf.preprocessing.segment_packer import WindowedTexts
from albert_tf.trainers.batching import PADDING_TARGET
from albert_tf.trainers.examples import Column, Inputs
from albert_tf.trainers.labels import check_count
from albert_tf.trainers.prediction import split_ragged
from albert_tf_lite import tagging as lite
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.inputs import as_texts

# Below any sum of log-probabilities that a text could have.
_NEVER = -1e9


class Tagging(lite.Tagging):
    """The tags of a task, with the rules of the NumPy runtime as TensorFlow ops.

    `tags` are `O`, and for each label a prefix of BIO, BIOES (BMES, BILOU) or IO, a
    hyphen and the label, in the order of the outputs; or other spellings of these,
    which `notes` name.
    """

    def __init__(self, tags: Sequence[str]):
        reading = read_tags(tags)
        meant = [reading.tags[tag] for tag in tags]
        if reading.are_plain and lite.OUTSIDE not in meant:
            as_runs, as_tokens = _with_prefix("I", tags), _with_prefix("S", tags)
            raise AlbertError(
                f"The tags {list(tags)[:3]} ... have no prefix, and none is O. Pass "
                f"tags={as_runs} if neighbours with the same tag are one entity, or "
                f"tags={as_tokens} if each token is one."
            )
        super().__init__(meant)
        self.notes = reading.notes
        self._ids: dict[tuple[str, str], int] = {}
        for number, pair in enumerate(self.pairs):
            first = self._ids.setdefault(pair, number)
            if first != number and pair[0] != lite.OUTSIDE:
                raise AlbertError(
                    f"The tags {tags[first]!r} and {tags[number]!r} mean the same. The "
                    f"tags should be different. Received: {list(tags)}"
                )
        self.is_outside = np.array([prefix == lite.OUTSIDE for prefix, _ in self.pairs])
        rows = [[lite.continues(a, b) for b in self.pairs] for a in self.pairs]
        self._continued = np.array(rows)
        self.labels = list(dict.fromkeys(label for _, label in self.pairs if label))
        closed = any(prefix in "ES" for prefix, _ in self.pairs)
        self.scheme = "BIOES" if closed else "BIO"

    def ids_of(self, label: str, length: int) -> list[int]:
        """Return the tags of an entity of `length` tokens."""

        prefixes = prefixes_of(length, self.scheme)
        return [self._id_of(label, prefix) for prefix in prefixes]

    def _id_of(self, label, prefix):
        # Some taggers do not have all prefixes.
        for other in (prefix, "I", "B", "S", "E"):
            if (other, label) in self._ids:
                return self._ids[other, label]
        raise AssertionError(f"{label!r} has no tag.")

    def entities_in_graph(
        self,
        logits: tf.RaggedTensor,
        starts: tf.RaggedTensor,
        ends: tf.RaggedTensor,
        temperature: float = 1.0,
    ) -> tuple[tf.RaggedTensor, ...]:
        """Return start, end, label and score, ragged [texts, (entities)], in a graph.

        `logits` are [texts, (tokens), tags]; `starts` and `ends` are the characters of
        each token. Tokens without any are left out. `temperature` divides the logits
        for the score, but does not change the tags.
        """
        has_text = starts.with_values(starts.values < ends.values)
        parts = (logits, starts, ends)
        logits, starts, ends = (tf.ragged.boolean_mask(x, has_text) for x in parts)
        scores = tf.cast(logits.values, tf.float32)
        # Small numbers, whose sums over a long text keep the differences.
        scores -= tf.reduce_max(scores, axis=-1, keepdims=True)
        if not self.has_outside:
            scores = tf.pad(scores, [[0, 0], [0, 1]], constant_values=_NEVER)
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
        joined = tf.gather_nd(self._continued, pairs) & (text[:-1] == text[1:])
        inside = ~tf.gather(tf.constant(self.is_outside), tags)
        begins = inside & ~tf.pad(joined, [[1, 0]])[: tf.size(tags)]
        first = tf.where(begins)[:, 0]
        last = tf.where(inside & ~tf.pad(joined, [[0, 1]])[: tf.size(tags)])[:, 0]
        probabilities = tf.nn.softmax(scores / temperature)
        chosen = tf.gather(probabilities, tags, batch_dims=1)
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


def _with_prefix(prefix, tags):
    """Return the beginning of a list of tags with a prefix, for a message."""
    names = ", ".join(repr(f"{prefix}-{tag}") for tag in tags[:3])
    return f"[{names}, ...]"


@tf.function(
    input_signature=[
        tf.TensorSpec([None, None, None], tf.float32),
        tf.TensorSpec([None, None], tf.float32),
    ]
)
def viterbi(scores: tf.Tensor, transitions: tf.Tensor) -> tf.Tensor:
    """Return the classes [batch, time] with the highest sum of scores.

    `transitions` are added where the second class follows the first.
    """
    first = scores[:, 0]
    rest = tf.transpose(scores[:, 1:], [1, 0, 2])

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
    tagging: Tagging, x: Inputs, y: Column | None, texts: WindowedTexts
) -> tf.RaggedTensor:
    """Return the tag of each token, int32 [windows, (tokens)], for lists of spans.

    It is `PADDING_TARGET` where there is no text, or another window decides.
    """
    strings = as_texts(x)
    y = check_count(strings, y)
    starts, ends = split_ragged((texts.starts, texts.ends))
    tags, inexact = [], []
    for number, (text, spans) in enumerate(zip(strings, y, strict=True)):
        try:
            spans = check_spans(spans, len(text), tagging.labels)
        except AlbertError as error:
            raise AlbertError(f"In text {number}, {error}") from None
        of_text, moved = _tags_of_text(tagging, spans, starts[number], ends[number])
        inexact += [text[start:end] for start, end in moved]
        if not tagging.has_outside and (of_text == tagging.outside).any():
            token = int(np.argmax(of_text == tagging.outside))
            part = text[starts[number][token] : ends[number][token]]
            raise AlbertError(
                f"In text {number}, {part!r} has no span, and the model has no tag O. "
                f"Each character needs one of the labels {tagging.labels}."
            )
        tags.append(of_text)
    if inexact:
        warnings.warn(
            f"{len(inexact)} spans begin or end within a token or hold none, such as "
            f"{inexact[0]!r}. They are learned as the tokens they touch.",
            stacklevel=5,
        )
    return _tags_of_windows(np.concatenate(tags), texts)


def _tags_of_text(tagging, spans, starts, ends):
    """Return the tags of the tokens of a text, and the spans that are not of tokens."""
    tags = np.where(starts < ends, tagging.outside, PADDING_TARGET).astype("int32")
    # The tokens with characters.
    tokens = np.flatnonzero(starts < ends)
    starts, ends = starts[tokens], ends[tokens]
    free, inexact = 0, []
    for start, end, label in spans:
        # The tokens with characters in the span, but for those of the span before.
        first = max(free, int(np.searchsorted(ends, start, side="right")))
        free = max(first, int(np.searchsorted(starts, end)))
        if first < free:
            tags[tokens[first:free]] = tagging.ids_of(label, free - first)
        if first == free or starts[first] < start or ends[free - 1] > end:
            inexact.append((start, end))
    return tags, inexact


def _tags_of_windows(tags, texts):
    """Return the tags of all tokens in windows.

    Tokens that another window decides, and special tokens, have none.
    """
    windows = texts.windows
    tags = windows.of_windows(tf.constant(tags))
    is_decided = windows.are_decided().values
    tags = tags.with_values(tf.where(is_decided, tags.values, PADDING_TARGET))
    edge = tf.fill([tags.nrows(), 1], PADDING_TARGET)
    return tf.concat([edge, tags, edge], axis=1)
