"""Batches of records in NumPy: which sequences, in which order, with which segments.

They depend on the records, the settings and the number of the batch only, so that a
training resumes exactly, and not on the backend of Keras.
"""

import collections
import concurrent.futures
import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import keras
import numpy as np

from albert_tf.pretraining.dataset import SPECIAL, PretrainingRecords
from albert_tf.pretraining.records import ORDERS
from albert_tf_lite.errors import AlbertError

# Sequences are padded to these lengths, because XLA compiles a program for each.
WIDTHS = (32, 64, 96, 128, 256, 512)
# Within windows of this many batches, sequences are sorted by length.
SORTED_BATCHES = 16
# How often a segment of another document is drawn for a sequence of the same.
DRAWS = 8


class Plan:
    """Padded length and sequences of each call, an int array [steps, sequences].

    A call of the device trains on several batches of one padded length. An epoch groups
    sequences of similar lengths in random order, and has each once, or as often as its
    weight on average.

    Args:
        lengths: int array [sequences], with special tokens.
        longest: int. Maximum of the lengths.
        batch_tokens: int. Tokens per batch, padding included.
        steps_per_call: int. Batches per call.
        seed: int.
        multiple: int. Sequences per batch are a multiple of it, for several hosts.
        weights: optional float array [sequences].
        widths: ints, the padded lengths.
    """

    def __init__(
        self,
        lengths: np.ndarray,
        longest: int,
        batch_tokens: int,
        steps_per_call: int = 1,
        seed: int = 0,
        multiple: int = 1,
        weights: np.ndarray | None = None,
        widths: Iterable[int] = WIDTHS,
    ):
        self.widths = [*(x for x in sorted(widths) if x < longest), longest]
        self.lengths, self.weights = lengths, weights
        self.seed = seed
        self.shapes = [
            (steps_per_call, max(batch_tokens // x // multiple, 1) * multiple)
            for x in self.widths
        ]
        self.buckets = np.searchsorted(self.widths, lengths)
        self.epoch = functools.lru_cache(1)(self._epoch)
        self.calls_per_epoch = len(self.epoch(0))
        if not self.calls_per_epoch:
            raise AlbertError(
                f"{len(lengths)} sequences are too few for {steps_per_call} steps of "
                f"{batch_tokens} tokens. Use a smaller --batch-tokens or more text."
            )

    def __getitem__(self, call: int) -> tuple[int, np.ndarray]:
        epoch, number = divmod(call, self.calls_per_epoch)
        return self.epoch(epoch)[number]

    def _epoch(self, number: int) -> list[tuple[int, np.ndarray]]:
        random = np.random.default_rng((self.seed, number))
        calls, rest = [], np.empty(0, "int64")
        for bucket, width in enumerate(self.widths):
            own = random.permutation(np.flatnonzero(self.buckets == bucket))
            if self.weights is not None:
                # The sum of the weights, so that every epoch has as many calls.
                ends = np.floor(np.cumsum(self.weights[own]) + 1e-6)
                counts = np.diff(ends, prepend=0).astype("int64")
                own = random.permutation(np.repeat(own, counts))
            steps, size = self.shapes[bucket]
            window = np.arange(len(own)) // (size * SORTED_BATCHES)
            own = own[np.lexsort((self.lengths[own], window))]
            # The rest of a bucket is padded to the length of the next.
            rows = np.concatenate([rest, own])
            used = len(rows) // (steps * size) * (steps * size)
            # Neighbours in length share a batch, and its call has others.
            batches = random.permutation(rows[:used].reshape(-1, size))
            calls += [(width, x) for x in batches.reshape(-1, steps, size)]
            rest = rows[used:]
        return [calls[i] for i in random.permutation(len(calls))]


class EvaluationPlan(Plan):
    """Calls of one batch with each sequence once, from short to long."""

    def _epoch(self, number: int) -> list[tuple[int, np.ndarray]]:
        calls = []
        for bucket, width in enumerate(self.widths):
            own = np.flatnonzero(self.buckets == bucket)
            size = self.shapes[bucket][1]
            parts = np.split(own, range(size, len(own), size))
            calls += [(width, x[None]) for x in parts if len(x)]
        return calls


class PretrainingBatches:
    """Batches of records as `PretrainingModel` takes them.

    Args:
        records: a `PretrainingRecords`.
        batch_tokens: int. Tokens per batch, padding included.
        seed: int, of the order of sequences and segments, and of the masks.
        steps_per_call: int. Batches per item.
        steps: optional int. The number of steps of the training, in which the rate of
            the masks changes to its last value.
        schedule: optional function of the numbers of steps, their learning rates.
        hosts, host: ints. Number of processes that share each batch, and the index of
            this one.
        training: bool. `False` for each sequence once, with the same segments and masks
            each time.
        widths: ints, the padded lengths below that of the records.

    Returns:
        By index a dict of arrays [sequences, steps, ...], see `draw`, with the values
        of a step repeated for its sequences: `seed` (2 ints), `progress` and, with a
        schedule, `learning_rate`.
    """

    def __init__(
        self,
        records: PretrainingRecords,
        batch_tokens: int,
        seed: int = 0,
        steps_per_call: int = 1,
        steps: int | None = None,
        schedule: Callable[[np.ndarray], Any] | None = None,
        hosts: int = 1,
        host: int = 0,
        training: bool = True,
        widths: Iterable[int] = WIDTHS,
    ):
        self.records, self.seed, self.steps = records, seed, steps
        self.schedule = schedule
        self.hosts, self.host = hosts, host
        # Every device gets as many sequences of a batch.
        distribution = keras.distribution.distribution()
        devices = distribution.device_mesh.devices.size if distribution else 1
        plan = Plan if training else EvaluationPlan
        self.plan = plan(
            packed_lengths(records),
            records.sequence_length,
            batch_tokens,
            steps_per_call,
            seed,
            math.lcm(hosts, devices),
            widths=widths,
        )
        # TensorFlow takes batches of any length and size.
        self._trims = keras.backend.backend() == "tensorflow" and hosts == 1

    def __len__(self) -> int:
        """Return the number of items per epoch."""
        return self.plan.calls_per_epoch

    def __getitem__(self, call: int) -> dict[str, np.ndarray]:
        width, rows = self.plan[call]
        count, size = rows.shape
        wanted = size
        if not self._trims:
            # XLA would compile again for the last, smaller batch of a length, which
            # therefore has sequences of weight 0.
            wanted = self.plan.shapes[self.plan.widths.index(width)][1]
        rows = np.pad(rows, [(0, 0), (0, wanted - size)], mode="edge")
        weights = np.repeat([np.arange(wanted) < size], count, axis=0)
        rows, weights = (x[:, self.host :: self.hosts] for x in (rows, weights))
        if self._trims:
            width = min(-(-int(self.plan.lengths[rows].max()) // 4) * 4, width)
        random = np.random.default_rng((self.seed, call, self.host))
        rows = rows.T
        batch = draw(self.records, rows.reshape(-1), width, random)
        steps = call * count + np.arange(count)
        return {
            # Sequences first, which devices and hosts share.
            **{x: y.reshape(*rows.shape, *y.shape[1:]) for x, y in batch.items()},
            "weights": weights.T.astype("float32"),
            **step_values(self, steps, len(rows)),
        }


def packed_lengths(records: PretrainingRecords) -> np.ndarray:
    """Return the number of tokens of each sequence with its special tokens."""
    segments = np.where(records.second_starts < records.lengths, 3, 2)
    return np.minimum(records.lengths + segments, records.sequence_length)


def step_values(batches: Any, steps: np.ndarray, count: int) -> dict[str, np.ndarray]:
    """Return `seed`, `progress` and `learning_rate` of steps, [count, steps, ...].

    `batches` have a `seed`, the number of all `steps`, and a `schedule` of the rate.
    """
    progress = np.ones(len(steps))
    if batches.steps is not None:
        progress = np.minimum(steps / batches.steps, 1.0)
    values = {
        "seed": np.stack([np.full(len(steps), batches.seed), steps], 1).astype("int32"),
        "progress": progress.astype("float32"),
    }
    if batches.schedule is not None:
        rates = keras.ops.convert_to_numpy(batches.schedule(steps))
        values["learning_rate"] = rates.astype("float32")
    return {x: np.repeat(y[None], count, axis=0) for x, y in values.items()}


def draw(
    records: PretrainingRecords,
    rows: np.ndarray,
    width: int,
    random: np.random.Generator,
) -> dict[str, np.ndarray]:
    """Return sequences with their segments in an order drawn for each.

    Returns:
        A dict of `token_ids` [rows, width] with special tokens and padding,
        `word_starts` (bool) of the same shape, `lengths` and `second_starts` [rows]
        (the place of the second segment, or the length), `labels`, the class of the
        order, `has_order` (float, 0 for one segment), and for masked records
        `mask_positions`, `mask_ids` and `mask_weights` [rows, masks].
    """
    first, second, labels = draw_segments(records, rows, width, random)
    place = np.arange(width)
    sep = 1 + first[2][:, None]
    has_two = second[2] > 0
    end = sep + np.where(has_two, 1 + second[2], 0)[:, None]
    in_first = (place > 0) & (place < sep)
    in_second = (place > sep) & (place < end)
    token_ids = np.full(
        in_first.shape, records.tokens["pad"], records.shards[0]["token_ids"].dtype
    )
    word_starts = np.zeros(in_first.shape, bool)
    for segment, inside, start in (
        (first, in_first, 1),
        (second, in_second, sep + 1),
    ):
        index = segment[1][:, None] + place - start
        token_ids[inside] = records.take("token_ids", segment[0], index, inside)
        bits = records.take("word_starts", segment[0], index >> 3, inside)
        word_starts[inside] = bits >> (7 - (index[inside] & 7)) & 1
    token_ids[:, 0] = records.tokens["cls"]
    token_ids[(place == sep) | (place == end)] = records.tokens["sep"]
    arrays = {
        "token_ids": token_ids,
        "word_starts": word_starts,
        "lengths": (end[:, 0] + 1).astype("int32"),
        "second_starts": (sep[:, 0] + 1).astype("int32"),
        "labels": labels.astype("int32"),
        "has_order": has_two.astype("float32"),
    }
    if records.is_masked:
        arrays |= _stored_masks(records, rows)
    return arrays


def draw_segments(
    records: PretrainingRecords,
    rows: np.ndarray,
    width: int,
    random: np.random.Generator,
) -> tuple[list[np.ndarray], list[np.ndarray], np.ndarray]:
    """Return shard, start and length of both segments of each row, and the labels."""
    shard, start = records.shard[rows], records.starts[rows]
    middle, length = records.second_starts[rows], records.lengths[rows]
    first = [shard, start, middle]
    second = [shard, start + middle, length - middle]
    kinds = ORDERS[records.order]
    if "labels" in records.shards[0] or not kinds:
        return first, second, records.labels[rows]
    labels = random.integers(len(kinds), size=len(rows))
    labels[second[2] == 0] = 0
    if "other" in kinds:
        is_other = labels == kinds.index("other")
        others = random.integers(len(records), size=(DRAWS, len(rows)))
        # The first of several that is of another document, else the next segment.
        is_far = records.shard[others] != shard
        is_far |= records.documents[others] != records.documents[rows]
        others = others[is_far.argmax(axis=0), np.arange(len(rows))]
        labels[is_other & ~is_far.any(axis=0)] = 0
        is_other &= is_far.any(axis=0)
        offset = records.second_starts[others]
        # A sequence of one segment is that segment.
        offset = np.where(offset < records.lengths[others], offset, 0)
        found = (
            records.shard[others],
            records.starts[others] + offset,
            np.minimum(records.lengths[others] - offset, width - SPECIAL - middle),
        )
        second = [np.where(is_other, x, y) for x, y in zip(found, second, strict=True)]
    if "previous" in kinds:
        swaps = labels == kinds.index("previous")
        pairs = list(zip(first, second, strict=True))
        first = [np.where(swaps, y, x) for x, y in pairs]
        second = [np.where(swaps, x, y) for x, y in pairs]
    return first, second, labels


def _stored_masks(records, rows):
    """Return the masks that records hold, [rows, masks]."""
    counts, starts = (x[rows] for x in records.masks_of_sequences)
    columns = np.arange(records.masks_of_sequences[0].max())
    inside = columns < counts[:, None]
    index, arrays = starts[:, None] + columns, {}
    for name in ("mask_positions", "mask_ids"):
        arrays[name] = np.zeros(inside.shape, "int32")
        arrays[name][inside] = records.take(name, records.shard[rows], index, inside)
    return {**arrays, "mask_weights": inside.astype("float32")}


# === For Keras ===


def training_data(batches: Any, first: int, count: int) -> Any:
    """Return items of batches from the `first` on as the `x` of `keras.Model.fit`."""
    calls = range(first, first + count)
    if keras.backend.backend() != "tensorflow":
        return ((x,) for x in prepared(batches.__getitem__, calls))
    return _dataset(lambda: map(batches.__getitem__, calls), batches[first], count)


def evaluation_data(batches: Any) -> Any:
    """Return all items as the `x` of `keras.Model.evaluate`, to be read repeatedly."""
    if keras.backend.backend() != "tensorflow":
        return _Sequence(batches)
    calls = range(len(batches))
    return _dataset(lambda: map(batches.__getitem__, calls), batches[0], len(batches))


def prepared(function: Callable[[int], Any], calls: Iterable[int]) -> Iterator[Any]:
    """Yield the results of a function, the next two of which a thread prepares."""
    calls = iter(calls)
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        waiting = collections.deque(
            thread.submit(function, x) for x in itertools.islice(calls, 2)
        )
        while waiting:
            result = waiting.popleft().result()
            waiting.extend(
                thread.submit(function, x) for x in itertools.islice(calls, 1)
            )
            yield result


class _Sequence(keras.utils.PyDataset):
    """Batches that Keras reads once per evaluation."""

    def __init__(self, batches: Any):
        super().__init__()
        self._batches = batches

    def __len__(self):
        return len(self._batches)

    def __getitem__(self, number):
        return (self._batches[number],)


def _dataset(
    items: Callable[[], Iterable[Any]], example: dict[str, Any], count: int
) -> Any:
    """Return a `tf.data.Dataset`, because Keras' would fix the length of the first."""
    import tensorflow as tf

    spec = keras.tree.map_structure(
        lambda x: tf.TensorSpec([None, x.shape[1], *[None] * (x.ndim - 2)], x.dtype),
        example,
    )
    dataset = tf.data.Dataset.from_generator(items, output_signature=spec)
    return dataset.prefetch(2).apply(tf.data.experimental.assert_cardinality(count))
