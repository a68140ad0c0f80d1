"""The sequences that each call of the device trains on."""

import functools
from typing import NamedTuple

import numpy as np

from albert_tf.pretraining.training.run import BatchSettings
from albert_tf_lite.errors import AlbertError

# Within windows of this many batches, sequences are sorted by length.
SORTED_BATCHES = 16


class Call(NamedTuple):
    """The sequences of a call, which trains on several batches of one padded length."""

    width: int
    rows: np.ndarray  # [steps, sequences], numbers of sequences


class BatchPlan:
    """The sequences of each call, by its number.

    An epoch groups sequences of similar lengths in random order, and has each once, or
    as often as its weight on average.

    Args:
        lengths: int array [sequences], with special tokens.
        longest: int. Maximum of the lengths.
        settings: a `BatchSettings`.
        multiple: int. Sequences per batch are a multiple of it, for several hosts.
        weights: optional float array [sequences].

    Attributes:
        widths: list of ints, the padded lengths.
        calls_per_epoch: int.
    """

    def __init__(
        self,
        lengths: np.ndarray,
        longest: int,
        settings: BatchSettings,
        multiple: int = 1,
        weights: np.ndarray | None = None,
    ):
        self.lengths, self.weights = lengths, weights
        self.steps, self.seed = settings.steps_per_call, settings.seed
        shorter = [width for width in settings.padded_lengths if width < longest]
        self.widths = [*sorted(shorter), longest]
        # Sequences per batch of each width.
        self.sizes = [
            max(settings.batch_tokens // width // multiple, 1) * multiple
            for width in self.widths
        ]
        # The index of the width of each sequence.
        self.buckets = np.searchsorted(self.widths, lengths)
        self.epoch = functools.lru_cache(1)(self._epoch)
        self.calls_per_epoch = len(self.epoch(0))
        if not self.calls_per_epoch:
            raise AlbertError(
                f"{len(lengths)} sequences are too few for {self.steps} steps of "
                f"{settings.batch_tokens} tokens. Use a smaller --batch-tokens or more "
                "text."
            )

    def __getitem__(self, call: int) -> Call:
        epoch, number = divmod(call, self.calls_per_epoch)
        return self.epoch(epoch)[number]

    def size(self, width: int) -> int:
        """Return the sequences per batch of one of `widths`."""
        return self.sizes[self.widths.index(width)]

    def _epoch(self, number: int) -> list[Call]:
        """Return the calls of an epoch.

            sequences of one width      7 1 9 3 4 0 8 5      in random order
            sorted in windows           1 3 7 9 0 4 5 8
            batches of two              [1 3] [7 9] [0 4] [5 8]
            calls of two batches        [5 8] [1 3], [0 4] [7 9]

        Neighbours in length share a batch, and its call has others.
        """
        random = np.random.default_rng((self.seed, number))
        calls: list[Call] = []
        rest = np.empty(0, "int64")
        for bucket, width in enumerate(self.widths):
            size = self.sizes[bucket]
            drawn = self._sorted_in_windows(self._drawn(bucket, random), size)
            # The rest of a bucket is padded to the length of the next.
            rows = np.concatenate([rest, drawn])
            used = len(rows) // (self.steps * size) * (self.steps * size)
            batches = random.permutation(rows[:used].reshape(-1, size))
            for call_rows in batches.reshape(-1, self.steps, size):
                calls.append(Call(width, call_rows))
            rest = rows[used:]
        return [calls[i] for i in random.permutation(len(calls))]

    def _drawn(self, bucket: int, random: np.random.Generator) -> np.ndarray:
        """Return the sequences of a bucket in random order, as often as they weigh."""
        rows = random.permutation(np.flatnonzero(self.buckets == bucket))
        if self.weights is None:
            return rows
        # The sum of the weights, so that every epoch has as many calls.
        ends = np.floor(np.cumsum(self.weights[rows]) + 1e-6)
        counts = np.diff(ends, prepend=0).astype("int64")
        return random.permutation(np.repeat(rows, counts))

    def _sorted_in_windows(self, rows: np.ndarray, size: int) -> np.ndarray:
        window = np.arange(len(rows)) // (size * SORTED_BATCHES)
        return rows[np.lexsort((self.lengths[rows], window))]


class EvaluationPlan(BatchPlan):
    """Calls of one batch with each sequence once, from short to long."""

    def _epoch(self, number: int) -> list[Call]:
        calls = []
        for bucket, width in enumerate(self.widths):
            rows = np.flatnonzero(self.buckets == bucket)
            size = self.sizes[bucket]
            for start in range(0, len(rows), size):
                batch = rows[start : start + size]
                calls.append(Call(width, batch[None]))
        return calls
