"""Batches of labelled texts, text and similar texts in NumPy."""

from typing import Any, NamedTuple

import keras
import numpy as np

from albert_tf.pretraining.labelled.labelled_records import IGNORED, LabelledRecords
from albert_tf.pretraining.records.pretraining_records import PretrainingRecords
from albert_tf.pretraining.records.shard_files import Arrays
from albert_tf.pretraining.training.batch_plan import BatchPlan
from albert_tf.pretraining.training.run import BatchSettings
from albert_tf.pretraining.training.sequences import draw, packed_lengths
from albert_tf.pretraining.training.stacked_batches import (
    Item,
    StackedBatches,
    trimmed_width,
    unflattened,
)
from albert_tf.training.optimizers import WarmupLinearDecay

# Fewer sequences of a length are filled up with shorter ones.
POOL = 2000


class _Rows(NamedTuple):
    """The numbers of the sequences of a call, int arrays [sequences, steps]."""

    labelled: np.ndarray
    text: np.ndarray
    pairs: np.ndarray | None


class Companions:
    """Sequences that join each batch of a plan, drawn at random from those that fit.

    Args:
        lengths: int array [sequences].
        widths: list of ints, the padded lengths, the last at least the longest.

    Attributes:
        shortest: int, the smallest of the widths for which there are sequences.
    """

    def __init__(self, lengths: np.ndarray, widths: list[int]):
        self.widths = widths
        buckets = np.searchsorted(widths, lengths)
        # The sequences to draw from, by the number of the width.
        self._pools = []
        pool = np.empty(0, "int64")
        for bucket in range(len(widths)):
            rows = np.flatnonzero(buckets == bucket)
            pool = rows if len(rows) > POOL else np.concatenate([pool, rows])
            self._pools.append(pool)
        self.shortest = widths[int(buckets.min())]

    def draw(
        self, random: np.random.Generator, width: int, shape: tuple[int, int]
    ) -> np.ndarray:
        """Return the numbers of sequences of at most a width of `widths`."""
        return random.choice(self._pools[self.widths.index(width)], shape)


class LabelledBatches(StackedBatches):
    """Batches of labelled texts, text and similar texts as `LabelledModel` takes them.

    Args:
        labelled: a `LabelledRecords`.
        records: a `PretrainingRecords`, the text.
        settings: a `BatchSettings`; `batch_tokens` are those of the labelled texts.
        shares: tuple of floats. Sequences of text, and pairs of similar texts, per
            labelled text.
        steps: optional int. The number of steps of the training.
        schedule: optional schedule of the learning rate.

    Returns:
        By index a dict of `labelled`, `text` and optionally `pairs` (first all first
        texts, then the second ones), each a dict of arrays [sequences, steps, ...], and
        with a schedule of `learning_rate` [sequences, steps].
    """

    def __init__(
        self,
        labelled: LabelledRecords,
        records: PretrainingRecords,
        settings: BatchSettings,
        shares: tuple[float, float] = (0.25, 0.0625),
        steps: int | None = None,
        schedule: WarmupLinearDecay | None = None,
    ):
        plan = BatchPlan(
            labelled.texts["lengths"],
            max(labelled.sequence_length, records.sequence_length),
            settings,
            weights=labelled.weights,
        )
        super().__init__(plan, steps, schedule)
        self.labelled, self.records = labelled, records
        self.text_share, self.pair_share = shares
        self._text_lengths = packed_lengths(records)
        self._text = Companions(self._text_lengths, plan.widths)
        self._pairs = None
        if labelled.pairs is not None:
            # The rows of pairs alternate: first text, second text.
            lengths = labelled.pairs["lengths"].reshape(-1, 2).max(axis=1)
            self._pairs = Companions(lengths, plan.widths)
        # TensorFlow takes batches of any length.
        self._trims = keras.backend.backend() == "tensorflow"

    def __getitem__(self, call: int) -> Item:
        random = np.random.default_rng((self.plan.seed, call))
        width, drawn = self._draw_rows(call, random)
        if self._trims:
            width = trimmed_width(self._longest(drawn), width)
        text = draw(self.records, drawn.text.reshape(-1), width, random)
        values = self.step_values(call, len(drawn.text))
        item: dict[str, Any] = {
            "labelled": {
                **self._features(self.labelled.texts, drawn.labelled, width),
                **self._targets(drawn.labelled, width),
            },
            "text": {
                **unflattened(text, drawn.text.shape),
                "weights": np.ones(drawn.text.shape, "float32"),
                **values,
            },
        }
        if drawn.pairs is not None:
            item["pairs"] = self._features(self._pair_texts, drawn.pairs, width)
        if self.schedule is not None:
            item["learning_rate"] = values["learning_rate"]
        return item

    def _draw_rows(self, call: int, random: np.random.Generator) -> tuple[int, _Rows]:
        """Return the padded length of a call, and the rows of its three parts.

        labelled    [size, steps]
        text        [size * text_share, steps]
        pairs       [2 * size * pair_share, steps], first texts above second texts
        """
        width, step_rows = self.plan[call]
        steps, size = step_rows.shape
        width = max(width, self._text.shortest)
        if self._pairs is not None:
            width = max(width, self._pairs.shortest)
        text_count = max(int(size * self.text_share), 1)
        text = self._text.draw(random, width, (text_count, steps))
        pairs = None
        if self._pairs is not None:
            pair_count = max(int(size * self.pair_share), 2)
            first = 2 * self._pairs.draw(random, width, (pair_count, steps))
            pairs = np.concatenate([first, first + 1])
        return width, _Rows(step_rows.T, text, pairs)

    def _longest(self, rows: _Rows) -> int:
        """Return the largest number of tokens of a sequence."""
        lengths = [
            self.labelled.texts["lengths"][rows.labelled],
            self._text_lengths[rows.text],
        ]
        if rows.pairs is not None:
            lengths.append(self._pair_texts["lengths"][rows.pairs])
        return max(int(array.max()) for array in lengths)

    @property
    def _pair_texts(self) -> Arrays:
        assert self.labelled.pairs is not None
        return self.labelled.pairs

    def _features(self, texts: Arrays, rows: np.ndarray, width: int) -> Arrays:
        """Return padded texts."""
        index, is_token = _token_places(texts, rows, width)
        padding = self.labelled.tokens["pad"]
        token_ids = np.full(index.shape, padding, texts["token_ids"].dtype)
        token_ids[is_token] = texts["token_ids"][index[is_token]]
        return {
            "token_ids": token_ids,
            "lengths": texts["lengths"][rows].astype("int32"),
            "second_starts": texts["second_starts"][rows].astype("int32"),
        }

    def _targets(self, rows: np.ndarray, width: int) -> Arrays:
        """Return the targets of labelled texts by kind, and their `sets`."""
        targets = {"sets": self.labelled.set[rows]}
        for kind, values in self.labelled.targets.items():
            if kind != "tags":
                targets[kind] = values[rows]
                continue
            index, is_token = _token_places(self.labelled.texts, rows, width)
            targets[kind] = np.full(index.shape, IGNORED, values.dtype)
            targets[kind][is_token] = values[index[is_token]]
        return targets


def _token_places(
    texts: Arrays, rows: np.ndarray, width: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the index of each token of texts, and which are tokens.

    Both are arrays of the shape of `rows` and the width.
    """
    place = np.arange(width)
    index = texts["starts"][rows][..., None] + place
    return index, place < texts["lengths"][rows][..., None]
