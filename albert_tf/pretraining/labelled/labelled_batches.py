"""Batches of labelled texts, text and similar texts in NumPy."""

from typing import Any

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
        steps, schedule: as for `StackedBatches`.

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
        width, step_rows = self.plan[call]
        labelled_rows = step_rows.T  # Sequences first.
        size, steps = labelled_rows.shape
        random = np.random.default_rng((self.plan.seed, call))
        width = max(width, self._text.shortest)
        if self._pairs is not None:
            width = max(width, self._pairs.shortest)
        text_count = max(int(size * self.text_share), 1)
        text_rows = self._text.draw(random, width, (text_count, steps))
        lengths = [
            self.labelled.texts["lengths"][labelled_rows],
            self._text_lengths[text_rows],
        ]
        pair_rows = None
        if self._pairs is not None:
            pair_count = max(int(size * self.pair_share), 2)
            first = 2 * self._pairs.draw(random, width, (pair_count, steps))
            pair_rows = np.concatenate([first, first + 1])
            lengths.append(self._pair_texts["lengths"][pair_rows])
        if self._trims:
            longest = max(int(array.max()) for array in lengths)
            width = trimmed_width(longest, width)
        text = draw(self.records, text_rows.reshape(-1), width, random)
        values = self.step_values(call, text_count)
        item: dict[str, Any] = {
            "labelled": {
                **self._features(self.labelled.texts, labelled_rows, width),
                **self._targets(labelled_rows, width),
            },
            "text": {
                **unflattened(text, text_rows.shape),
                "weights": np.ones(text_rows.shape, "float32"),
                **values,
            },
        }
        if pair_rows is not None:
            item["pairs"] = self._features(self._pair_texts, pair_rows, width)
        if self.schedule is not None:
            item["learning_rate"] = values["learning_rate"]
        return item

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
