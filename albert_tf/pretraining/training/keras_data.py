"""Items of a training as Keras takes them."""

import collections
import concurrent.futures
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Protocol

import keras

from albert_tf.pretraining.training.stacked_batches import Item, StackedBatches

if TYPE_CHECKING:
    import tensorflow as tf

# Items that are prepared while the device trains.
AHEAD = 2


class Items(Protocol):
    """`StackedBatches`, or a list of items."""

    def __getitem__(self, call: int, /) -> Item: ...


def training_data(
    items: Items, first: int, count: int
) -> "tf.data.Dataset | Iterator[tuple[Item]]":
    """Return items from the `first` on as the `x` of `keras.Model.fit`."""
    calls = range(first, first + count)
    if keras.backend.backend() != "tensorflow":
        return ((item,) for item in prepared(items.__getitem__, calls))
    return _dataset(items, calls)


def evaluation_data(
    batches: StackedBatches,
) -> "tf.data.Dataset | keras.utils.PyDataset":
    """Return all items as the `x` of `keras.Model.evaluate`, to be read repeatedly."""
    if keras.backend.backend() != "tensorflow":
        return _Sequence(batches)
    return _dataset(batches, range(len(batches)))


def prepared(function: Callable[[int], Item], calls: Iterable[int]) -> Iterator[Item]:
    """Yield the results of a function, the next two of which a thread prepares."""
    remaining = iter(calls)
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        futures: collections.deque[concurrent.futures.Future] = collections.deque()
        for call in itertools.islice(remaining, AHEAD):
            futures.append(thread.submit(function, call))
        while futures:
            item = futures.popleft().result()
            for call in itertools.islice(remaining, 1):
                futures.append(thread.submit(function, call))
            yield item


class _Sequence(keras.utils.PyDataset):
    """Batches that Keras reads once per evaluation."""

    def __init__(self, batches: StackedBatches):
        super().__init__()
        self._batches = batches

    def __len__(self):
        return len(self._batches)

    def __getitem__(self, number):
        return (self._batches[number],)


def _dataset(items: Items, calls: range) -> "tf.data.Dataset":
    """Return a `tf.data.Dataset`, because Keras' would fix the length of the first."""
    import tensorflow as tf

    def specification(array):
        # The steps are fixed, the sequences and their lengths are not.
        _, steps, *others = array.shape
        shape = [None, steps, *(None for _ in others)]
        return tf.TensorSpec(shape, array.dtype)

    dataset = tf.data.Dataset.from_generator(
        functools.partial(map, items.__getitem__, calls),
        output_signature=keras.tree.map_structure(specification, items[calls[0]]),
    )
    cardinality = tf.data.experimental.assert_cardinality(len(calls))
    return dataset.prefetch(AHEAD).apply(cardinality)
