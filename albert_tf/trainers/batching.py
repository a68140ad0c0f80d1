"""Batches of texts of similar length, and their outputs in input order."""

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.layers.tensor_types import Tensor
from albert_tf.preprocessing.segment_packer import PackedTexts, SegmentPacker
from albert_tf.preprocessing.text_preprocessors import (
    AlbertTextClassifierPreprocessor as TextPreprocessor,
)
from albert_tf.training.batch_order import BatchOrder
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.inputs import check_integer

DEFAULT_BATCH_SIZE = 32
# By default, prediction batches hold the tokens of 32 texts of full length. Past this
# number of tokens, a batch is closed rather than padded further.
ENOUGH_TOKENS = 512
# The target of padding where each token has a target: the `ignore_class` of losses.
PADDING_TARGET = -1
# More than any batch in memory has.
TOKENS_OF_ANY_BATCH = 2**40
# Training sorts by length only within windows of up to 64 batches, at least four of
# them, so that batches stay nearly as random as after a shuffle.
MOST_SORTED_BATCHES = 64
LEAST_WINDOWS = 4
# A token budget deals examples into up to four parts of eight or more batches.
MOST_PARTS = 4
LEAST_BATCHES = 8
# In place of an example.
NO_EXAMPLE = -1


@dataclasses.dataclass(frozen=True)
class BatchOptions:
    """Options of batches.

    Attributes:
        batch_size: optional int, examples per batch.
        max_tokens: optional int, tokens per batch instead, padding included.
        shuffle: bool or `BatchOrder`. Draw a random order for each epoch.
        fixed: bool. The batches are to evaluate: whatever is drawn at random, such as
            masks, is the same each time.
    """

    batch_size: int | None = None
    max_tokens: int | None = None
    shuffle: bool | BatchOrder = False
    fixed: bool = False

    def with_batch_size(self, default: int = DEFAULT_BATCH_SIZE) -> "BatchOptions":
        """Return the options with a batch size, unless they have `max_tokens`."""
        if self.max_tokens is not None:
            return self
        size = size_or_default(self.batch_size, default)
        return dataclasses.replace(self, batch_size=size)

    @property
    def sizes(self) -> dict[str, Any]:
        """The arguments of `text_batches`."""
        return {
            "batch_size": self.batch_size,
            "max_tokens": self.max_tokens,
            "shuffle": self.shuffle,
        }


def text_batches(
    preprocessor: TextPreprocessor,
    packed: PackedTexts,
    *labels: Any,
    batch_size: int | None = None,
    max_tokens: int | None = None,
    shuffle: bool | BatchOrder = False,
    pad: Callable[..., Any] | None = None,
) -> "TextBatches":
    """Return the rows of packed texts in padded batches of similar length.

    Args:
        preprocessor: the preprocessor that packed the texts.
        packed: `PackedTexts`.
        *labels: targets and weights of the rows, (ragged) tensors or arrays [rows,
            ...], or dicts of these. Ragged ones are padded like the tokens.
        batch_size: optional int, rows per batch.
        max_tokens: optional int, tokens per batch, padding included. Without both,
            batches have as many tokens as 32 texts of full length.
        shuffle: bool or `BatchOrder`. Draw a random order for each epoch, instead of
            from short to long.
        pad: optional function of tokens, first lengths and labels of a batch, instead
            of that of the preprocessor.
    """
    packer = preprocessor.packer

    def pad_rows(tokens, first_lengths, *labels):
        features = packer.pad(tokens, first_lengths)
        shape = tf.shape(features["token_ids"], tf.int64)
        labels = tf.nest.map_structure(lambda label: _pad_target(label, shape), labels)
        return (features, *labels) if labels else features

    return TextBatches(
        features=(packed.tokens, packed.first_lengths, *labels),
        lengths=packed.lengths.numpy(),
        pad=pad or pad_rows,
        plan=batch_plan(packer, batch_size, max_tokens, packed.texts_per_row),
        shuffle=shuffle,
    )


def size_or_default(batch_size: int | None, default: int = DEFAULT_BATCH_SIZE) -> int:
    """Return the number of examples per batch; raise if it is not positive."""
    if batch_size is None:
        return default
    return check_integer("batch_size", batch_size)


def batch_plan(
    packer: SegmentPacker,
    batch_size: int | None,
    max_tokens: int | None,
    texts: int = 1,
) -> "FixedSize | TokenBudget":
    """Return the plan of batches of up to `texts` texts per example."""
    if None not in (batch_size, max_tokens):
        raise AlbertError(
            "`batch_size` counts the examples of a batch and `max_tokens` their "
            f"tokens: pass one of them. Received: batch_size={batch_size}, "
            f"max_tokens={max_tokens}"
        )
    if batch_size is not None:
        return FixedSize(size_or_default(batch_size))
    enough = None
    if max_tokens is None:
        max_tokens = DEFAULT_BATCH_SIZE * packer.sequence_length
        enough = ENOUGH_TOKENS
    max_tokens = check_integer("max_tokens", max_tokens)
    return TokenBudget(max_tokens // max(texts, 1), packer, enough)


@dataclasses.dataclass(frozen=True)
class TextBatches:
    """Padded batches of examples of similar length, held in memory.

    Attributes:
        features: tuple of (ragged) tensors [examples, ...], or dicts of these: the
            arguments of `pad`.
        lengths: int array [examples], in tokens.
        pad: function of a batch of `features` that returns the batch for Keras.
        plan: a `FixedSize` or `TokenBudget`.
        shuffle: bool or `BatchOrder`. Each epoch has a random order, instead of from
            short to long.
    """

    features: tuple
    lengths: np.ndarray
    pad: Callable[..., Any]
    plan: "FixedSize | TokenBudget"
    shuffle: bool | BatchOrder = False

    @functools.cached_property
    def order(self) -> np.ndarray:
        """The example of each row of the dataset, unless it is shuffled."""
        return np.argsort(self.lengths, kind="stable")

    @functools.cached_property
    def count(self) -> int:
        """The number of batches."""
        return self.plan.count(self.lengths, self.shuffle)

    @functools.cached_property
    def dataset(self) -> tf.data.Dataset:
        """The batches as a `tf.data.Dataset` of known length."""

        # AutoGraph would take most of the time that building takes.
        @tf.autograph.experimental.do_not_convert
        def one_epoch(seed):
            rows = self.plan.batches(self.lengths, seed)
            return tf.data.Dataset.from_tensor_slices(rows)

        gather = tf.autograph.experimental.do_not_convert(self._gather)
        if not self.shuffle:
            return prefetched(one_epoch(None).map(gather))
        # Random operations inside a dataset start over with each epoch when a global
        # seed is set, and would give every epoch the same order.
        seeds = tf.data.Dataset.random(rerandomize_each_iteration=True).take(1)
        skip, order = 0, self.shuffle
        if isinstance(order, BatchOrder):
            skip, seed = order.skip, order.epoch_seed
            seeds = seeds.map(lambda _: seed.read_value())
        return prefetched(
            seeds.flat_map(one_epoch)
            .skip(skip)
            .map(gather)
            .apply(tf.data.experimental.assert_cardinality(self.count - skip))
        )

    def __iter__(self) -> Iterator[Any]:
        if self.shuffle:
            return iter(self.dataset)
        # To build a dataset takes as long as a small model for a hundred sentences.
        return map(self._gather, self.plan.batches(self.lengths))

    def _gather(self, rows):
        features = tf.nest.map_structure(lambda x: tf.gather(x, rows), self.features)
        return self.pad(*features)

    def map(self, function: Callable[[Any], Any]) -> "TextBatches":
        """Return the batches after a function of each."""
        return dataclasses.replace(self, pad=lambda *x: function(self.pad(*x)))

    def restore(self, outputs: Tensor | dict[str, Tensor]) -> Any:
        """Return outputs of the dataset's rows in the order of the examples."""
        if isinstance(outputs, dict):
            return {name: self.restore(value) for name, value in outputs.items()}
        if isinstance(outputs, tuple):
            return tuple(map(self.restore, outputs))
        row_of_example = np.argsort(self.order)
        if isinstance(outputs, list):
            return [outputs[row] for row in row_of_example]
        return outputs[row_of_example]


def prefetched(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Prepare the next batches of a dataset while one is computed.

    Without tf.data's autotuning, which takes a core's time from the model.
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    return dataset.prefetch(2).with_options(options)


# === The examples of each batch ===


@dataclasses.dataclass(frozen=True)
class FixedSize:
    """Batches of `examples` each, the last one smaller; used like `TokenBudget`."""

    examples: int

    def batch_size(self, length: int) -> int:
        """Return the number of examples per batch."""
        return self.examples

    def count(self, lengths: np.ndarray, shuffle: bool | BatchOrder) -> int:
        """Return the number of batches."""
        return math.ceil(len(lengths) / self.examples)

    def batches(
        self, lengths: np.ndarray, seed: tf.Tensor | None = None
    ) -> tf.RaggedTensor:
        """Return the examples of each batch, int64 [batches, (examples)].

        The order is random for a `seed`, an int tensor []; else from short to long.
        """
        count = len(lengths)
        splits = [*range(0, count, self.examples), count]
        if seed is None:
            order = np.argsort(lengths, kind="stable")
        else:
            order = shuffled_order(lengths, self.examples, seed)
        return tf.RaggedTensor.from_row_splits(order, splits, validate=False)


def shuffled_order(lengths: np.ndarray, batch_size: int, seed: tf.Tensor) -> tf.Tensor:
    """Return a random order in which neighbours have similar lengths, int64 [examples].

    Examples are shuffled, sorted by length within windows and cut into batches, which
    are shuffled. The last, smaller batch stays last. The order depends on `seed` alone.
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
class TokenBudget:
    """Batches of as many examples as fit in a number of tokens, padding included.

    Each batch takes about as much work and memory. An example with more tokens is alone
    in its batch. Past `enough` tokens, close a batch rather than pad it further.
    """

    tokens: int
    packer: SegmentPacker
    enough: int | None = None

    def batch_size(self, length: int) -> int:
        """Return the number of examples of this length per batch."""
        return max(self.tokens // int(self.packer.padded_lengths(length)), 1)

    def cut(self, lengths: np.ndarray) -> np.ndarray:
        """Return the bounds [batches + 1] of batches of examples, sorted by length."""
        bounds, last = [0], 0
        for example, length in enumerate(self.packer.padded_lengths(lengths)):
            count = example - bounds[-1]
            is_full = (count + 1) * length > self.tokens
            if self.enough and length > last:
                is_full = is_full or count * last >= self.enough
            if count and is_full:
                bounds.append(example)
            last = length
        return np.array([*bounds, len(lengths)])

    def count(self, lengths: np.ndarray, shuffle: bool | BatchOrder) -> int:
        """Return the number of batches."""
        by_length = np.sort(np.asarray(lengths))
        if not shuffle:
            return len(self.cut(by_length)) - 1
        parts, bounds = self._parts(by_length)
        return parts * (len(bounds) - 1)

    def batches(
        self, lengths: np.ndarray, seed: tf.Tensor | None = None
    ) -> tf.RaggedTensor:
        """Return the examples of each batch; see `FixedSize.batches`.

        For a seed, examples are dealt into parts, each of which is cut into batches.
        Seven examples a to g, from short to long, in two parts with bounds 0, 2, 4:

        ```
        by length   a b c d e f g           equal lengths in random order
        places      -a  bc  de  fg          a row per place; - (-1) fills the first one
        drawn       a-  bc  ed  fg          each row in random order
        parts       a b e f     - c d g     the columns
        batches     ab, ef,     c, dg       each part cut at the bounds, without -
        ```
        """
        lengths = np.asarray(lengths)
        if seed is None:
            order = np.argsort(lengths, kind="stable")
            return tf.RaggedTensor.from_row_splits(order, self.cut(lengths[order]))
        shuffle = tf.random.experimental.stateless_shuffle
        padded = self.packer.padded_lengths(lengths)
        parts, bounds = self._parts(np.sort(padded))
        order = shuffle(tf.range(len(lengths), dtype=tf.int64), [seed, 0])
        by_length = tf.gather(order, tf.argsort(tf.gather(padded, order), stable=True))
        places = _in_places(by_length, len(lengths), parts)
        draw = tf.random.stateless_uniform(tf.shape(places), [seed, 1])
        drawn = tf.gather(places, tf.argsort(draw), batch_dims=1)
        batches = _cut_parts(tf.transpose(drawn), parts, bounds)
        batches = tf.gather(batches, shuffle(tf.range(batches.nrows()), [seed, 2]))
        return tf.ragged.boolean_mask(batches, batches != NO_EXAMPLE)

    def _parts(self, by_length):
        """Return the number of parts and the bounds of the batches in each.

        Dealing examples into parts gives them other companions in each epoch, also
        where few have about one length. Each part is cut as if it got the longest of
        neighbours, so that the number of batches, and so of steps, is constant.
        """
        bounds = self.cut(by_length)
        batches = len(bounds) - 1
        parts = int(np.clip(batches // LEAST_BATCHES, 1, MOST_PARTS))
        # A batch of one example must not lose it to the padding of places.
        if bounds[1] == 1:
            parts = 1
        longest_of_place = by_length[::-1][::parts][::-1]
        return parts, self.cut(longest_of_place)


def _in_places(by_length: tf.Tensor, count: int, parts: int) -> tf.Tensor:
    """Return `count` examples as int64 [places, parts], the first place filled."""
    missing = -count % parts
    filled = tf.pad(by_length, [[missing, 0]], constant_values=NO_EXAMPLE)
    return tf.reshape(filled, [-1, parts])


def _cut_parts(examples: tf.Tensor, parts: int, bounds: np.ndarray) -> tf.RaggedTensor:
    """Return batches of examples [parts, places], cut in each part at the bounds."""
    size = bounds[-1]
    starts = [part * size + start for part in range(parts) for start in bounds[:-1]]
    splits = [*starts, parts * size]
    return tf.RaggedTensor.from_row_splits(tf.reshape(examples, [-1]), splits)


# === Targets ===


def _pad_target(target, shape):
    """Return a target, a ragged one padded to the shape [batch, time]."""
    if isinstance(target, tf.RaggedTensor):
        target = target.to_tensor(PADDING_TARGET, shape=shape)
    return one_type(target)


def one_type(target: Tensor) -> Tensor:
    """Return integer targets in 64 bits, so that Keras traces its step once."""
    return tf.cast(target, tf.int64) if target.dtype.is_integer else target
