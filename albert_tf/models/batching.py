"""Batches of texts of similar length, and their outputs in input order."""

import contextlib
import dataclasses
import functools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from albert_tf.preprocessing.length_grouping import FixedSize, TokenBudget
from albert_tf.preprocessing.segment_packer import PackedTexts
from albert_tf.preprocessing.text_classifier_preprocessor import (
    AlbertTextClassifierPreprocessor as TextPreprocessor,
)
from albert_tf_lite.errors import AlbertError

DEFAULT_BATCH_SIZE = 32
# By default, prediction batches hold the tokens of 32 texts of full length. Past this
# number of tokens, a batch is closed rather than padded further.
ENOUGH_TOKENS = 512
# The target of padding where each token has a target: the `ignore_class` of losses.
PADDING_TARGET = -1


def text_batches(
    preprocessor: Any,
    packed: PackedTexts,
    *labels: Any,
    batch_size: int | None = None,
    max_tokens: int | None = None,
    shuffle: bool = False,
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
        shuffle: bool. Draw a random order for each epoch, instead of from short to
            long.
        pad: optional function of tokens, first lengths and labels of a batch, instead
            of that of the preprocessor.
    """
    packer = preprocessor.packer

    def pad_rows(tokens, first_lengths, *labels):
        features = packer.pad(tokens, first_lengths)
        shape = tf.shape(features["token_ids"], tf.int64)
        labels = tf.nest.map_structure(lambda x: _pad_target(x, shape), labels)
        return (features, *labels) if labels else features

    return TextBatches(
        (packed.tokens, packed.first_lengths, *labels),
        packed.lengths.numpy(),
        pad or pad_rows,
        _batch_plan(packer, batch_size, max_tokens, packed.texts_per_row),
        shuffle,
    )


def _batch_plan(packer, batch_size, max_tokens, texts=1):
    """Return the plan of batches; arguments as for `text_batches`."""
    if None not in (batch_size, max_tokens):
        raise AlbertError(
            "`batch_size` counts the examples of a batch and `max_tokens` their "
            f"tokens: pass one of them. Received: batch_size={batch_size}, "
            f"max_tokens={max_tokens}"
        )
    if batch_size is not None:
        return FixedSize(batch_size)
    if max_tokens is None:
        most = DEFAULT_BATCH_SIZE * packer.sequence_length
        return TokenBudget(most, packer, ENOUGH_TOKENS).shared_by(texts)
    if max_tokens < 1:
        raise AlbertError(f"`max_tokens` must be at least 1. Received: {max_tokens}")
    return TokenBudget(max_tokens, packer).shared_by(texts)


@dataclasses.dataclass(frozen=True)
class TextBatches:
    """Padded batches of examples of similar length, held in memory.

    Attributes:
        features: tuple of (ragged) tensors [examples, ...], or dicts of these: the
            arguments of `pad`.
        lengths: int array [examples], in tokens.
        pad: function of a batch of `features` that returns the batch for Keras.
        plan: a `FixedSize` or `TokenBudget`.
        shuffle: as for `text_batches`.
    """

    features: tuple
    lengths: np.ndarray
    pad: Callable[..., Any]
    plan: FixedSize | TokenBudget
    shuffle: bool = False

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
            rows = self.plan.batches(self.lengths, seed if self.shuffle else None)
            return tf.data.Dataset.from_tensor_slices(rows)

        # Random operations inside a dataset start over with each epoch when a global
        # seed is set, and would give every epoch the same order.
        return prefetched(
            tf.data.Dataset.random(rerandomize_each_iteration=True)
            .take(1)
            .flat_map(one_epoch)
            .map(tf.autograph.experimental.do_not_convert(self._gather))
            .apply(tf.data.experimental.assert_cardinality(self.count))
        )

    def __iter__(self) -> Iterator[Any]:
        # For one sentence, a dataset takes ten times as long as a small model.
        return iter([self._gather(self.order)] if self.count == 1 else self.dataset)

    def _gather(self, rows):
        features = tf.nest.map_structure(lambda x: tf.gather(x, rows), self.features)
        return self.pad(*features)

    def map(self, function: Callable[[Any], Any]) -> "TextBatches":
        """Return the batches after a function of each."""
        return dataclasses.replace(self, pad=lambda *x: function(self.pad(*x)))

    def restore(self, outputs: Any) -> Any:
        """Return outputs of the dataset's rows in the order of the examples."""
        if isinstance(outputs, dict):
            return {name: self.restore(value) for name, value in outputs.items()}
        if isinstance(outputs, tuple):
            return tuple(map(self.restore, outputs))
        row_of = np.argsort(self.order)
        if isinstance(outputs, list):
            return [outputs[row] for row in row_of]
        return outputs[row_of]

    def predict(self, model: keras.Model, **kwargs: Any) -> Any:
        """Return the outputs of a model in the order of the examples.

        A single batch goes to the model without a dataset and shows no progress bar.
        `kwargs` are the arguments of `keras.Model.predict`.
        """
        model.make_predict_function()
        function = model.predict_function
        is_traced = model.steps_per_execution == 1 and isinstance(
            function, tf.types.experimental.PolymorphicFunction
        )
        batch = None
        if (
            is_traced
            and self.count == 1
            and kwargs.get("callbacks") is None
            and model.distribute_strategy.num_replicas_in_sync == 1
        ):
            (batch,) = self
        if is_traced and not function.experimental_get_tracing_count():
            # For any length at once, where Keras would trace three times.
            example = self.dataset.element_spec if batch is None else batch
            spec = keras.tree.map_structure(
                lambda x: tf.TensorSpec([None] * x.shape.rank, x.dtype), example
            )
            function.get_concrete_function([spec])
        if batch is None:
            # Without KerasHub's preprocessing.
            outputs = keras.Model.predict(model, self.dataset, **kwargs)
        else:
            outputs = function([batch])
        return self.restore(split_ragged(outputs))


def prefetched(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Prepare the next batches of a dataset while one is computed.

    Without tf.data's autotuning, which takes a core's time from the model.
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    return dataset.prefetch(2).with_options(options)


def bucket_by_length(
    dataset: tf.data.Dataset,
    preprocessor: Any,
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
    if type(preprocessor).pack_texts is not TextPreprocessor.pack_texts:
        raise AlbertError(
            "`bucket_by_length` is for tasks with one label per text. Pass lists, "
            f"which are batched by length. Received: {type(preprocessor).__name__}"
        )
    packer = preprocessor.packer
    if max_tokens is None:
        batch_size = batch_size or DEFAULT_BATCH_SIZE
    plan = _batch_plan(packer, batch_size, max_tokens)
    # Two boundaries per doubling: at most a third of a batch is padding.
    powers = (2**n for n in range(3, packer.sequence_length.bit_length()))
    both = (bound for power in powers for bound in (power + 1, power * 3 // 2 + 1))
    boundaries = [bound for bound in both if bound <= packer.sequence_length]
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
            bucket_batch_sizes=[batch_size or plan.batch_size(x) for x in longest],
            # Batches are ragged until `pad`.
            no_padding=True,
        )
        .map(pad, num_parallel_calls=tf.data.AUTOTUNE)
        .prefetch(tf.data.AUTOTUNE)
    )


def batches_of_ids(
    x: Any, y: Any, sample_weight: Any, batch_size: int | None, shuffle: bool
) -> tf.data.Dataset:
    """Return batches of padded ids in memory, [examples, time]."""
    data = keras.utils.pack_x_y_sample_weight(x, y, sample_weight)
    dataset = tf.data.Dataset.from_tensor_slices(data)
    if shuffle:
        dataset = dataset.shuffle(dataset.cardinality())
    return dataset.batch(batch_size or DEFAULT_BATCH_SIZE)


def refuse_for_datasets(**options: Any) -> None:
    """Raise if an argument is given that is for lists of texts only."""
    for name, value in options.items():
        if value is not None:
            raise AlbertError(
                f"`{name}` is for lists of texts. Pass batches (x, y) or (x, y, "
                "sample_weight); `albert_tf.models.bucket_by_length` makes batches of "
                "`max_tokens`."
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


# === Outputs and targets with an axis for the tokens ===


def is_per_token(symbolic: keras.KerasTensor) -> bool:
    """Return whether the second axis of an output is that of the tokens."""
    return len(symbolic.shape) > 1 and symbolic.shape[1] is None


def without_padding(outputs: Any, symbolic: Any, padding_mask: tf.Tensor) -> Any:
    """Return the outputs of a batch, those of tokens as `tf.RaggedTensor`s.

    Keras joins ragged outputs of batches quickly; others only of equal lengths.
    """
    lengths = tf.reduce_sum(padding_mask, axis=1)

    def cut(output, symbolic):
        if is_per_token(symbolic):
            return tf.RaggedTensor.from_tensor(output, lengths=lengths)
        return output

    return keras.tree.map_structure(cut, outputs, symbolic)


def split_ragged(outputs: Any) -> Any:
    """Return outputs as arrays, and ragged ones as lists of arrays, one per row."""

    def split(output):
        if not isinstance(output, tf.RaggedTensor):
            return keras.ops.convert_to_numpy(output)
        return np.split(output.values.numpy(), output.row_splits.numpy()[1:-1])

    return keras.tree.map_structure(split, outputs)


def empty_outputs(symbolic: Any) -> Any:
    """Return the outputs for an empty list of texts."""

    def empty(symbolic):
        if is_per_token(symbolic):
            return []
        return np.zeros((0, *symbolic.shape[1:]), symbolic.dtype)

    return keras.tree.map_structure(empty, symbolic)


def targets_of_one_type(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Return a dataset whose integer targets are of 64 bits."""
    spec = dataset.element_spec
    if not isinstance(spec, tuple) or len(spec) < 2:
        return dataset
    return dataset.map(lambda x, y, *w: (x, tf.nest.map_structure(_one_type, y), *w))


def _pad_target(target, shape):
    """Return a target, a ragged one padded to the shape [batch, time]."""
    if isinstance(target, tf.RaggedTensor):
        target = target.to_tensor(PADDING_TARGET, shape=shape)
    return _one_type(target)


def _one_type(target):
    # One type, so that Keras traces the training step once.
    return tf.cast(target, tf.int64) if target.dtype.is_integer else target
