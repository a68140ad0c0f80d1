"""The class that trains, evaluates and predicts, below all tasks."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import keras
import keras_hub
import numpy as np
import tensorflow as tf

from albert_tf.trainers.auto_optimizer import FitSteps
from albert_tf.trainers.batching import TOKENS_OF_ANY_BATCH, BatchOptions
from albert_tf.trainers.class_weights import ClassWeight
from albert_tf.trainers.compiled_task import CompiledTask
from albert_tf.trainers.compiling import without_averages_after_failure
from albert_tf.trainers.datasets import without_expected_warnings
from albert_tf.trainers.examples import (
    Column,
    Examples,
    Inputs,
    ValidationData,
    refuse_for_datasets,
    validation_arguments,
)
from albert_tf.trainers.prediction import (
    Callbacks,
    Outputs,
    PredictedRows,
    empty_outputs,
    predict_batches,
    split_ragged,
    without_padding,
)
from albert_tf.training import fine_tuning_batch_size, fine_tuning_epochs
from albert_tf.training.batch_order import BatchOrder
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.inputs import check_integer


class Trainer(CompiledTask):
    """`fit`, `evaluate` and `predict` on strings.

    It stands below `AlbertTask` as Keras' `Trainer` below `keras.Model`. Each method
    reads what it was given once into `Examples`, which become batches. What a task does
    in its own way is in `TaskHooks`.
    """

    # === Training ===

    def fit(
        self,
        x: Inputs | Examples | None = None,
        y: Column | None = None,
        batch_size: int | None = None,
        epochs: int | None = None,
        verbose: str | int = "auto",
        callbacks: Callbacks = None,
        validation_split: float = 0.0,
        validation_data: ValidationData = None,
        shuffle: bool | BatchOrder = True,
        class_weight: ClassWeight = None,
        sample_weight: Column | None = None,
        initial_epoch: int = 0,
        steps_per_epoch: int | None = None,
        validation_steps: int | None = None,
        validation_batch_size: int | None = None,
        validation_freq: int = 1,
        *,
        max_tokens: int | None = None,
    ) -> keras.callbacks.History:
        """Train on strings, as `keras.Model.fit`.

        Args:
            x: list of strings, or an array, a Series, a tensor or one column of a
                table, read by position; the tuple of two of these for pairs; a
                `tf.data.Dataset` of `(x, y)` or `(x, y, sample_weight)` batches; or
                padded ids as the model takes them. Texts are tokenized once and
                batched by length, so that little is padded.
            y: the labels of the texts, in the form of the task and any of these
                containers; for a classifier values of `labels`, or class ids.
            batch_size: optional int. By default 16 for fewer than 10,000 examples in
                memory, else 32.
            epochs: optional int. By default 1 for a dataset; 3 for examples in memory,
                and up to 30 for fewer than 1,500.
            verbose: 0 for silence, 1 for a progress bar, 2 for a line per epoch;
                `"auto"` is 1 in most cases.
            callbacks: optional list of `keras.callbacks.Callback`.
            validation_split: float, the share of the examples in memory, the last ones,
                to evaluate after each epoch instead of training on them.
            validation_data: optional `(x, y)`, `(x, y, sample_weight)` or dataset, to
                evaluate after each epoch.
            shuffle: bool. Draw another order of the examples in memory for each epoch;
                or an `albert_tf.training.batch_order.BatchOrder`.
            class_weight: optional dict of weights by class, in the form of `y`, for
                tasks with one class per example; or `"balanced"`, inversely
                proportional to how often a class occurs in the training labels, see
                `albert_tf.tools.class_weights`.
            sample_weight: optional list of numbers, the weight of each example in the
                loss.
            initial_epoch: int, the epoch to start at, to resume a training. `epochs`
                counts from 0.
            steps_per_epoch: optional int, batches per epoch, by default all.
            validation_steps: optional int, batches to evaluate, by default all.
            validation_batch_size: optional int, by default `batch_size`.
            validation_freq: int. Evaluate after each `validation_freq` epochs.
            max_tokens: optional int, instead of `batch_size`: a batch has as many
                examples as fit in this number of tokens, padding included. Only for
                lists; see `albert_tf.models.bucket_by_length` for datasets.

        Returns:
            A `keras.callbacks.History`.

        Raises:
            AlbertError: if `x` and `y` are of unequal lengths or empty, the labels are
                wrong, or an argument is not for the task.
        """
        given_callbacks = keras.tree.flatten(callbacks)
        if self._auto is not None:
            self._auto.check_callbacks(given_callbacks)
        examples = self.read_examples(x, y, sample_weight)
        self.check_class_weight(class_weight, examples)
        self.adapt_to(examples)
        train, validation = self._split(examples, validation_data, validation_split)
        if epochs is None:
            epochs = 1 if train.count is None else fine_tuning_epochs(train.count)
        epochs = check_integer("epochs", epochs, least=0)
        if validation_batch_size is None:
            validation_batch_size = batch_size
        options = BatchOptions(validation_batch_size, max_tokens, fixed=True)
        validation_batches = self._validation_batches(validation, options)
        class_weight = self.weights_by_id(class_weight, train)
        options = BatchOptions(batch_size, max_tokens, shuffle)
        if train.count is not None:
            options = options.with_batch_size(fine_tuning_batch_size(train.count))
        batches = self.batches(train, options)
        # A resumed epoch has fewer steps, but the schedule counts whole epochs.
        skipped = shuffle.skip if isinstance(shuffle, BatchOrder) else 0
        per_epoch = steps_per_epoch or max(int(batches.cardinality()) + skipped, 0)
        steps = FitSteps(per_epoch, epochs, initial_epoch)
        with self._training(given_callbacks), without_expected_warnings(batches):
            # A training with its own order of batches loads its own state.
            self._start_fit(steps, train.count, isinstance(shuffle, BatchOrder))
            return super().fit(
                batches,
                epochs=epochs,
                verbose=verbose,
                callbacks=callbacks,
                validation_data=validation_batches,
                # The dataset is shuffled.
                shuffle=False,
                class_weight=class_weight,
                initial_epoch=initial_epoch,
                steps_per_epoch=steps_per_epoch,
                validation_steps=validation_steps,
                validation_freq=validation_freq,
            )

    def _split(
        self, examples: Examples, validation_data: ValidationData, share: float
    ) -> tuple[Examples, Examples | None]:
        """Return the examples to train on, and those to validate on, if any."""
        if validation_data is not None:
            given = validation_arguments(validation_data)
            return examples, self.read_examples(*given)
        if share:
            return examples.split_off(share)
        return examples, None

    def _validation_batches(
        self, examples: Examples | None, options: BatchOptions
    ) -> tf.data.Dataset | None:
        if examples is None:
            return None
        if examples.kind == "dataset":
            # `max_tokens` is for lists of texts only.
            options = BatchOptions(fixed=True)
        return self.batches(examples, options)

    def _start_fit(self, steps, examples, loads_its_state):
        """Set the state and the schedule of the default optimizer for one `fit`."""
        if self._auto is None:
            return
        self._build_moments()
        peak = self.peak_learning_rate(examples)
        self._auto.start_fit(self.optimizer, steps, peak, loads_its_state)
        self._read_schedule()

    def _build_moments(self):
        """Let the default optimizer have moments of the weights that are trained."""
        weights = self.trainable_variables
        if self._auto.has_moments_of(weights):
            return
        if self.optimizer.built:
            # Other weights are trained now, as after `enable_lora`.
            self._compiled.apply(self, self._auto.new_optimizer())
        self._auto.build(self.optimizer, weights)

    def _read_schedule(self):
        """Let the training step read a changed schedule."""
        # On TensorFlow it reads the variables of the schedule; elsewhere, it was
        # compiled with their values.
        if keras.backend.backend() != "tensorflow":
            self.make_train_function(force=True)

    @contextlib.contextmanager
    def _training(self, callbacks: Sequence = ()) -> Iterator[None]:
        """Hold the default optimizer for one training; leave a failed one in order."""
        running = self._auto.running() if self._auto else contextlib.nullcontext()
        with running, without_averages_after_failure(callbacks):
            yield

    # === Evaluation ===

    def evaluate(
        self,
        x: Inputs | Examples | None = None,
        y: Column | None = None,
        batch_size: int | None = None,
        verbose: str | int = "auto",
        sample_weight: Column | None = None,
        steps: int | None = None,
        callbacks: Callbacks = None,
        return_dict: bool = False,
        *,
        max_tokens: int | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return loss and metrics on strings; as `keras.Model.evaluate`.

        Args:
            x: list of strings, or the tuple of two for pairs; a dataset of `(x, y)`
                batches; or padded ids. Any container that `fit` takes.
            y: the labels, in the form of the task.
            batch_size: optional int, by default more than 32 for short texts.
            verbose: 0 for silence, 1 for a progress bar, 2 for a line; `"auto"` is 1 in
                most cases.
            sample_weight: optional list of numbers, the weight of each example.
            steps: optional int, the number of batches, by default all.
            callbacks: optional list of `keras.callbacks.Callback`.
            return_dict: bool. Return a dict of values by name instead of a list.
            max_tokens: optional int, instead of `batch_size`: the number of tokens per
                batch, padding included. Only for lists.
            **kwargs: what Keras passes in `fit`.

        Returns:
            The loss and the metrics, a list or with `return_dict` a dict.

        Raises:
            AlbertError: if `x` and `y` are of unequal lengths or empty, or the labels
                are wrong.
        """
        # In `fit`, Keras evaluates the batches of its validation data after an epoch.
        batches = x
        if not kwargs.get("_use_cached_eval_dataset"):
            examples = self.read_examples(x, y, sample_weight)
            options = BatchOptions(batch_size, max_tokens, fixed=True)
            batches = self.batches(examples, options)
        with without_expected_warnings(batches):
            return super().evaluate(
                batches,
                verbose=verbose,
                steps=steps,
                callbacks=callbacks,
                return_dict=return_dict,
                **kwargs,
            )

    # === Prediction ===

    def predict(
        self,
        x: Inputs | Examples,
        batch_size: int | None = None,
        verbose: str | int = "auto",
        steps: int | None = None,
        callbacks: Callbacks = None,
        *,
        max_tokens: int | None = None,
    ) -> Any:
        """Return the predictions for strings; as `keras.Model.predict`.

        Args:
            x: list of strings, or the tuple of two for pairs; a dataset of batches; or
                padded ids. Any container that `fit` takes.
            batch_size: optional int, by default more than 32 for short texts.
            verbose: 0 for silence, 1 for a progress bar; `"auto"` is 1 in most cases.
            steps: optional int, the number of batches of a dataset.
            callbacks: optional list of `keras.callbacks.Callback`.
            max_tokens: optional int, instead of `batch_size`: the number of tokens per
                batch, padding included. Only for lists.

        Returns:
            The predictions in the order of `x`, in the form of the task. In general an
            array [examples, ...] per output, or for an output with an axis for the
            tokens a list of arrays [tokens, ...], special tokens included.
        """
        rows = self.predict_rows(
            x,
            batch_size,
            max_tokens=max_tokens,
            verbose=verbose,
            steps=steps,
            callbacks=callbacks,
        )
        return self.predictions(rows.x, rows.packed, rows.outputs)

    def predict_rows(
        self,
        x: Inputs | Examples,
        batch_size: int | None = None,
        *,
        max_tokens: int | None = None,
        verbose: str | int = "auto",
        steps: int | None = None,
        callbacks: Callbacks = None,
    ) -> PredictedRows:
        """Return the texts, their rows, and the outputs of the model for these.

        The arguments are those of `predict`, which makes predictions of the outputs.
        """
        examples = self.examples_to_predict(x)
        if examples.kind != "texts":
            refuse_for_datasets(max_tokens=max_tokens)
            # KerasHub preprocesses texts of a dataset.
            outputs = keras_hub.models.Task.predict(
                self,
                examples.x,
                batch_size=batch_size,
                verbose=verbose,
                steps=steps,
                callbacks=callbacks,
            )
            return PredictedRows(examples.x, None, split_ragged(outputs))
        if not examples.count:
            return PredictedRows(examples.x, None, empty_outputs(self.output))
        packed = self.preprocessor.pack_texts(examples.x)
        batches = self.prediction_batches(packed, batch_size, max_tokens)
        outputs = predict_batches(self, batches, verbose, steps, callbacks)
        return PredictedRows(examples.x, packed, outputs)

    def predict_step(self, *args: Any) -> Outputs:
        """Return the outputs of a batch, those of tokens without padding."""
        outputs = keras.Model.predict_step(self, *args)
        if keras.backend.backend() != "tensorflow":
            return outputs
        features, _, _ = keras.utils.unpack_x_y_sample_weight(args[-1])
        mask = self.predicted_mask(features)
        return outputs if mask is None else without_padding(outputs, self.output, mask)

    # === Single batches ===

    def train_on_batch(
        self,
        x: Inputs | Examples,
        y: Column | None = None,
        sample_weight: Column | None = None,
        class_weight: ClassWeight = None,
        return_dict: bool = False,
    ) -> Any:
        """Train on one batch of strings, as `keras.Model.train_on_batch`.

        The default optimizer has a constant rate here. Its first call after a `fit`
        starts over, because the rate of `fit` has fallen to 0.

        Args:
            x: list of strings, or the tuple of two for pairs, or padded ids.
            y: the labels, in the form of the task.
            sample_weight: optional list of numbers, the weight of each example.
            class_weight: optional dict of weights by class, or `"balanced"`.
            return_dict: bool. Return a dict of values by name instead of a list.

        Returns:
            The loss and the metrics, a list or with `return_dict` a dict.
        """
        examples = self._read_one_batch(x, y, sample_weight)
        self.check_class_weight(class_weight, examples)
        class_weight = self.weights_by_id(class_weight, examples)
        self.adapt_to(examples)
        batch = self._one_batch(examples, fixed=False)
        with self._training():
            if self._auto is not None:
                self._build_moments()
                if self._auto.start_single_steps(self.optimizer):
                    self._read_schedule()
            return keras.Model.train_on_batch(
                self, *batch, class_weight=class_weight, return_dict=return_dict
            )

    def test_on_batch(
        self,
        x: Inputs | Examples,
        y: Column | None = None,
        sample_weight: Column | None = None,
        return_dict: bool = False,
    ) -> Any:
        """Return loss and metrics on one batch; as `keras.Model.test_on_batch`.

        Args:
            x: list of strings, or the tuple of two for pairs, or padded ids.
            y: the labels, in the form of the task.
            sample_weight: optional list of numbers, the weight of each example.
            return_dict: bool. Return a dict of values by name instead of a list.

        Returns:
            The loss and the metrics, a list or with `return_dict` a dict.
        """
        examples = self._read_one_batch(x, y, sample_weight)
        batch = self._one_batch(examples, fixed=True)
        return keras.Model.test_on_batch(self, *batch, return_dict=return_dict)

    def predict_on_batch(self, x: Inputs | Examples) -> Any:
        """Return the predictions for one batch of strings or ids.

        Args:
            x: list of strings, or the tuple of two for pairs, or padded ids.

        Returns:
            The predictions in the order of `x`, in the form of the task.
        """
        examples = self.read_examples(x)
        if examples.kind == "texts":
            return self.predict(examples, verbose=0, max_tokens=TOKENS_OF_ANY_BATCH)
        outputs = keras.Model.predict_on_batch(self, examples.x)
        return self.predictions(examples.x, None, split_ragged(outputs))

    def _read_one_batch(self, x, y, sample_weight) -> Examples:
        """Read the examples of a single batch."""
        if isinstance(x, tf.data.Dataset):
            raise TypeError(
                "`x` is a dataset, but one batch is expected. Pass a list of texts or "
                "padded ids, or call `fit` or `evaluate`."
            )
        examples = self.read_examples(x, y, sample_weight)
        if not examples.count:
            raise AlbertError("`x` has no examples. Expected at least one.")
        return examples

    def _one_batch(self, examples: Examples, fixed: bool) -> tuple[Any, Any, Any]:
        """Return examples as one batch of features, targets and weights."""
        options = BatchOptions(batch_size=examples.count, fixed=fixed)
        if examples.kind == "texts":
            # A text may be several rows.
            options = BatchOptions(max_tokens=TOKENS_OF_ANY_BATCH, fixed=fixed)
        batch = next(iter(self.batches(examples, options)))
        if keras.backend.backend() != "tensorflow":
            # Only `fit` and `evaluate` convert the tensors of a dataset.
            batch = keras.tree.map_structure(np.asarray, batch)
        return keras.utils.unpack_x_y_sample_weight(batch)
