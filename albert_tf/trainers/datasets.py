"""Datasets of batches: of padded ids in memory, and checks of those of users."""

import contextlib
import warnings
from collections.abc import Iterator

import keras
import numpy as np
import tensorflow as tf

from albert_tf.preprocessing.text_preprocessors import (
    AlbertTextClassifierPreprocessor as TextPreprocessor,
)
from albert_tf.trainers.batching import (
    PADDING_TARGET,
    BatchOptions,
    FixedSize,
    TextBatches,
    batch_plan,
    one_type,
    size_or_default,
)
from albert_tf.trainers.examples import Examples, check_batched
from albert_tf.trainers.prediction import Outputs
from albert_tf.training.batch_order import BatchOrder
from albert_tf_lite.errors import AlbertError


def batches_of_ids(examples: Examples, options: BatchOptions) -> Examples:
    """Return padded ids in memory as a dataset of batches."""
    data = keras.utils.pack_x_y_sample_weight(
        examples.x, examples.y, examples.sample_weight
    )
    dataset = tf.data.Dataset.from_tensor_slices(data)
    size = size_or_default(options.batch_size)
    if isinstance(options.shuffle, BatchOrder):
        count = len(dataset)
        batches = TextBatches(
            features=(dataset.batch(count).get_single_element(),),
            lengths=np.zeros(count, int),
            pad=lambda batch: batch,
            plan=FixedSize(size),
            shuffle=options.shuffle,
        )
        return Examples("dataset", batches.dataset)
    if options.shuffle:
        dataset = dataset.shuffle(dataset.cardinality())
    return Examples("dataset", dataset.batch(size))


def check_targets_per_token(dataset: tf.data.Dataset) -> None:
    """Raise if batches of ids do not have one target per token."""
    x, y, _ = keras.utils.unpack_x_y_sample_weight(dataset.element_spec)
    if isinstance(x, dict) and y is not None:
        ids = x["token_ids"].shape
        targets = y.shape
        if not targets[:2].is_compatible_with(ids):
            raise AlbertError(
                f"`y` has the shape {targets}, but `token_ids` have {ids}. Expected "
                "one tag or token id per token, special tokens included, and "
                f"{PADDING_TARGET} for those that do not count."
            )


def with_weights_per_token(
    dataset: tf.data.Dataset, outputs: Outputs
) -> tf.data.Dataset:
    """Return a dataset in which a weight per example counts for all its tokens.

    Args:
        dataset: batches `(x, y, sample_weight)`; others are returned unchanged.
        outputs: the symbolic outputs of the model. An output [batch, time, classes]
            has targets, losses and weights [batch, time].
    """
    _, _, weights = keras.utils.unpack_x_y_sample_weight(dataset.element_spec)
    is_per_example = isinstance(weights, tf.TensorSpec) and weights.shape.rank == 1
    if not is_per_example:
        return dataset
    if not any(_has_tokens(output) for output in keras.tree.flatten(outputs)):
        return dataset

    def spread_weights(x, y, weights):
        def of_output(output):
            return weights[:, tf.newaxis] if _has_tokens(output) else weights

        return x, y, keras.tree.map_structure(of_output, outputs)

    return dataset.map(spread_weights)


def _has_tokens(output: keras.KerasTensor) -> bool:
    """Return whether an output has an axis for the tokens and one for classes."""
    return len(output.shape) > 2


def check_no_strings(dataset: tf.data.Dataset, task: str, needs_labels: bool) -> None:
    """Raise if targets of a dataset are strings, of which the task made no numbers.

    `needs_labels` is true if the task, for messages `task`, would with `labels`.
    """
    _, y, _ = keras.utils.unpack_x_y_sample_weight(dataset.element_spec)
    targets = [] if y is None else tf.nest.flatten(y)
    if any(target.dtype == tf.string for target in targets):
        way = "Pass texts and targets as lists, or map the targets to numbers"
        if needs_labels:
            way = "Pass the names of the classes as `labels`, or map them to class ids"
        raise AlbertError(
            f"The targets of the dataset are strings, but {task} learns numbers from "
            f"datasets. {way}."
        )


def with_targets_of_one_type(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Return a dataset whose integer targets are of 64 bits."""
    _, y, _ = keras.utils.unpack_x_y_sample_weight(dataset.element_spec)
    if y is None:
        return dataset
    return dataset.map(
        lambda x, y, *weights: (x, tf.nest.map_structure(one_type, y), *weights)
    )


@contextlib.contextmanager
def without_expected_warnings(dataset: tf.data.Dataset) -> Iterator[None]:
    """Hide Keras' warnings about a pooler that is only kept and unknown lengths."""
    pooler = r"\['pooled_dense/kernel', 'pooled_dense/bias'\]"
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", f"Gradients do not exist .* {pooler} when")
        if int(dataset.cardinality()) < 0:
            warnings.filterwarnings("ignore", "Your input ran out of data")
        yield


def bucket_by_length(
    dataset: tf.data.Dataset,
    preprocessor: TextPreprocessor,
    batch_size: int | None = None,
    max_tokens: int | None = None,
) -> tf.data.Dataset:
    """Rebatch a dataset of texts by length, in one pass, so that little is padded.

    `fit`, `evaluate` and `predict` batch lists of texts by length without this.
    It is for tasks with one label per text or pair, except `AlbertTextEmbedder`. The
    number of batches is unknown, so the rate of `optimizer="auto"` is constant.

    Args:
        dataset: a `tf.data.Dataset` of batches `(texts, y)` or `(texts, y,
            sample_weight)`; pairs are the tuple of two tensors.
        preprocessor: the preprocessor of the task.
        batch_size: optional int, examples per batch, 32 by default.
        max_tokens: optional int, tokens per batch instead, padding included.

    Returns:
        A `tf.data.Dataset` with padded ids instead of the texts.

    Raises:
        AlbertError: if an argument is wrong, or the task has other labels.

    Example:
    ```python
    grouped = albert_tf.models.bucket_by_length(dataset, classifier.preprocessor)
    classifier.fit(grouped, epochs=3)
    ```
    """
    if type(preprocessor).pack_rows is not TextPreprocessor.pack_rows:
        raise AlbertError(
            "`bucket_by_length` is for tasks with one label per text. Pass lists, "
            f"which are batched by length. Received: {type(preprocessor).__name__}"
        )
    check_batched(dataset)
    packer = preprocessor.packer
    if max_tokens is None:
        batch_size = size_or_default(batch_size)
    plan = batch_plan(packer, batch_size, max_tokens)
    boundaries = _length_boundaries(packer.sequence_length)
    longest = [*(bound - 1 for bound in boundaries), packer.sequence_length]

    def tokenize(texts, *rest):
        return preprocessor.pack(texts), rest

    def pad(packed, rest):
        return packer.pad(*packed), *rest

    return (
        dataset.map(tokenize, num_parallel_calls=tf.data.AUTOTUNE)
        .unbatch()
        .bucket_by_sequence_length(
            lambda packed, rest: tf.size(packed[0]),
            bucket_boundaries=boundaries,
            bucket_batch_sizes=[plan.batch_size(length) for length in longest],
            # Batches are ragged until `pad`.
            no_padding=True,
        )
        .map(pad, num_parallel_calls=tf.data.AUTOTUNE)
        .prefetch(tf.data.AUTOTUNE)
    )


def _length_boundaries(most: int) -> list[int]:
    """Return the lengths at which buckets up to a length begin, two per doubling.

    So at most a third of a batch is padding.
    """
    boundaries = []
    for exponent in range(3, most.bit_length()):
        power = 2**exponent
        boundaries += [power + 1, power * 3 // 2 + 1]
    return [bound for bound in boundaries if bound <= most]
