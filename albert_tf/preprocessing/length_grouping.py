"""Batches of examples of like length, so that next to nothing is padded."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.preprocessing.segment_packer import SegmentPacker
from albert_tf.preprocessing.token_budget import TokenBudget
from albert_tf_lite.errors import AlbertError

# Training sorts by length only within windows of so many batches, and there are at
# least so many windows, so that which examples meet in a batch stays nearly as random
# as after a plain shuffle.
MOST_SORTED_BATCHES = 64
LEAST_WINDOWS = 4


def shuffled_order(lengths: Any, batch_size: int, seed: tf.Tensor) -> tf.Tensor:
    """A new random order in which neighbours have like lengths.

    The examples are shuffled, sorted by length within windows of some batches and
    cut into batches, and the batches are shuffled. The last, smaller batch stays
    last. `lengths` are in tokens; the order depends on `seed`, an int tensor [].
    """
    shuffle = tf.random.experimental.stateless_shuffle
    lengths = tf.cast(lengths, tf.int64)
    count = tf.size(lengths, tf.int64)
    order = shuffle(tf.range(count), [seed, 0])
    batches_in_window = tf.clip_by_value(
        count // batch_size // LEAST_WINDOWS, 2, MOST_SORTED_BATCHES
    )
    window = tf.range(count) // (batches_in_window * batch_size)
    key = window * (tf.reduce_max(lengths) + 1) + tf.gather(lengths, order)
    order = tf.gather(order, tf.argsort(key, stable=True))
    whole = count // batch_size * batch_size
    batches = shuffle(tf.reshape(order[:whole], [-1, batch_size]), [seed, 1])
    return tf.concat([tf.reshape(batches, [-1]), order[whole:]], axis=0)


@dataclasses.dataclass(frozen=True)
class GroupedTexts:
    """Texts in padded batches of like length.

    Attributes:
        dataset: `tf.data.Dataset` of batches, which knows their number.
        order: int array [examples], from short to long: which example each row of
            the dataset is, unless it is shuffled.
        only_batch: function that gives the batch, if there is only one, else `None`.
        build: function that gives `dataset`.
    """

    build: Callable[[], tf.data.Dataset]
    order: np.ndarray
    only_batch: Callable[[], Any] | None = None

    @functools.cached_property
    def dataset(self) -> tf.data.Dataset:
        return self.build()

    @classmethod
    def of(
        cls,
        features: tuple,
        lengths: Sequence[int] | np.ndarray | tf.Tensor,
        pad: Callable[..., Any],
        batch_size: int | TokenBudget,
        shuffle: bool = False,
        texts: int = 1,
    ) -> GroupedTexts:
        """Group examples that are held in memory.

        Args:
            features: tuple of (ragged) tensors [examples, ...], or dicts of these:
                what `pad` takes.
            lengths: int array [examples], in tokens.
            pad: function of a batch of `features`, which gives the batch for Keras.
            batch_size: int, or a `TokenBudget`.
            shuffle: bool. A new random order each epoch; else from short to long.
            texts: int. How many texts an example has, each of that length at most.
        """
        lengths = np.asarray(lengths)
        by_length = np.argsort(lengths, kind="stable")
        if isinstance(batch_size, TokenBudget):
            budget = batch_size.shared_by(texts)
            batches = budget.count(lengths, shuffle)
        else:
            budget, batches = None, -(-len(lengths) // batch_size)

        # Neither has anything for AutoGraph, which would take most of the time that
        # building takes.
        @tf.autograph.experimental.do_not_convert
        def one_epoch(seed):
            if budget is not None:
                rows = budget.batches(lengths, seed if shuffle else None)
                return tf.data.Dataset.from_tensor_slices(rows)
            order = tf.constant(by_length, tf.int64)
            if shuffle:
                order = shuffled_order(lengths, batch_size, seed)
            return tf.data.Dataset.from_tensor_slices(order).batch(batch_size)

        @tf.autograph.experimental.do_not_convert
        def gather(rows):
            return pad(*tf.nest.map_structure(lambda x: tf.gather(x, rows), features))

        # Random operations inside a dataset start over with each epoch when a global
        # seed is set, and would give every epoch the same order.
        def build():
            return prefetched(
                tf.data.Dataset.random(rerandomize_each_iteration=True)
                .take(1)
                .flat_map(one_epoch)
                .map(gather)
                .apply(tf.data.experimental.assert_cardinality(batches))
            )

        only_batch = functools.partial(gather, by_length) if batches == 1 else None
        return cls(build, by_length, only_batch)

    def map(self, function: Callable[[Any], Any]) -> GroupedTexts:
        """The texts after a function of their batches."""
        batch = self.only_batch
        return GroupedTexts(
            lambda: prefetched(self.dataset.map(function)),
            self.order,
            batch and (lambda: function(batch())),
        )

    def restore(self, outputs: Any) -> Any:
        """Put what was computed of the dataset's rows into the order of the examples.

        Each is an array [examples, ...], a list of one array an example, or a dict or
        tuple of such.
        """
        if isinstance(outputs, dict):
            return {name: self.restore(value) for name, value in outputs.items()}
        if isinstance(outputs, tuple):
            return tuple(map(self.restore, outputs))
        row_of = np.argsort(self.order)
        if isinstance(outputs, list):
            return [outputs[row] for row in row_of]
        return outputs[row_of]


def prefetched(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """The batches of a dataset of ours, made while the last ones are computed.

    Without tf.data's tuning, which takes a core's time from the model, and up to
    seconds more when an iterator ends; there is nothing to tune here.
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    return dataset.prefetch(2).with_options(options)


def longest_rows(tokens: tf.RaggedTensor) -> tf.Tensor:
    """How many tokens each example has, or the longest of its several texts.

    `tokens` is [examples, (tokens)] or [examples, (texts), (tokens)].
    """
    if tokens.ragged_rank == 1:
        return tokens.row_lengths()
    return tf.reduce_max(tokens.row_lengths(axis=2), axis=1)


def most_texts(tokens: tf.RaggedTensor) -> int:
    """How many texts an example has at most; `tokens` as for `longest_rows`."""
    if tokens.ragged_rank == 1:
        return 1
    return int(tf.reduce_max(tokens.row_lengths()))


def bucketed_dataset(
    dataset: tf.data.Dataset,
    pack: Callable[[Any], tuple],
    packer: SegmentPacker,
    batch_size: int | TokenBudget,
) -> tf.data.Dataset:
    """Rebatch a dataset of texts, or of tuples `(texts, ...)`, by length, in one pass.

    It gives padded ids instead of texts; what stands beside a text stays with it. How
    many batches there are is not known before. `pack` is a function of texts, which
    gives what `SegmentPacker.pack` does.
    """
    if not isinstance(dataset.element_spec, tuple):
        dataset = dataset.map(lambda texts: (texts,))
    boundaries = _boundaries(packer.sequence_length)
    sizes = [batch_size] * (len(boundaries) + 1)
    if isinstance(batch_size, TokenBudget):
        longest = [bound - 1 for bound in boundaries]
        sizes = map(batch_size.batch_size, [*longest, packer.sequence_length])

    def tokenize(texts, *rest):
        return pack(texts), rest

    def pad(packed, rest):
        return (packer.pad(*packed), *rest)

    return (
        dataset.map(tokenize, num_parallel_calls=tf.data.AUTOTUNE)
        .unbatch()
        .bucket_by_sequence_length(
            lambda packed, rest: tf.size(packed[0]),
            bucket_boundaries=boundaries,
            bucket_batch_sizes=list(sizes),
            # Batches are ragged until `pad`.
            no_padding=True,
        )
        .map(pad, num_parallel_calls=tf.data.AUTOTUNE)
        .prefetch(tf.data.AUTOTUNE)
    )


def first_batch_size(dataset: tf.data.Dataset) -> int:
    """How many examples the first batch of a dataset has."""
    for batch in dataset.take(1):
        return int(tf.shape(tf.nest.flatten(batch)[0])[0])
    raise AlbertError("The dataset is empty.")


def _boundaries(sequence_length):
    """Two a doubling: at most a third of a bucket's batch is padding."""
    powers = (2**n for n in range(3, sequence_length.bit_length()))
    both = (bound for power in powers for bound in (power + 1, power * 3 // 2 + 1))
    return [bound for bound in both if bound <= sequence_length]
