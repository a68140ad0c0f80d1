"""Base class of all tasks."""

import operator
import os
from collections.abc import Callable
from typing import Any, Literal

import keras
import tensorflow as tf

from albert_tf.backbone import AlbertBackbone
from albert_tf.backbone.presets import Presets
from albert_tf.checkpoints import Checkpoint, save_checkpoint
from albert_tf.layers.common import arguments_of
from albert_tf.models import compiling, datasets, prediction
from albert_tf.models import from_checkpoint as constructors
from albert_tf.models.batching import size_or_default
from albert_tf.preprocessing.segment_packer import PackedTexts
from albert_tf.preprocessing.texts import (
    Texts,
    count_examples,
    is_pair,
    read_examples,
    split_off,
    texts_in_memory,
)
from albert_tf.training import (
    fine_tuning_batch_size,
    fine_tuning_epochs,
)
from albert_tf.training.auto_optimizer import AutoOptimizer
from albert_tf.training.batch_order import BatchOrder
from albert_tf_lite.inputs import check_integer

# The tasks by name. A class enters itself if it defines `name_of_task`.
TASKS: dict[str, Any] = {}


# A task is a Keras model, which Keras does not let this class be, see its docstring.
_Presets: Any = Presets


class AlbertTask(_Presets):
    """Base class of all tasks: a backbone, a head and an optional preprocessor.

    A task inherits from this class, then from `keras_hub.models.Task` or a KerasHub
    class of its kind. (This class cannot be a `Task` itself, because Keras replaces
    the bases of functional models.) Its class attributes describe it to pipelines,
    command line and exports. It defines `__init__`, whose arguments it keeps as
    attributes, `default_loss`, `targets`, `postprocess` and `answers`;
    docs/contributing/new_task.md builds one and lists the methods with defaults.

    Attributes:
        name_of_task: string, its name in `TASKS`, in pipelines and on the command
            line; `None` for a task without a name.
        fields: tuple of strings, the parts of an example.
        optional_fields: those of `fields` that may be left out, the last ones.
        heads: names of its heads, see `albert_tf.checkpoints.heads.HEADS`.
        keeps_pooler: bool. Keep a checkpoint's pooler although no head reads it.
        preprocessor_cls: class of the preprocessor; `None` for a task that takes ids.
        monitor: string, the score on the dev set that chooses the best epoch.
        takes_class_weight: bool. An example has one class, which `fit` can weight.
        exported_output: string, the output in LiteRT and ONNX files, `None` if the
            task has no such files.
        ignored_class: int, the target that does not count in the default loss, for
            tasks with one target per token.
        outputs_are: `"logits"`, `"probabilities"` `"numbers"` or `"vectors"`.
        targets_are: `"ids"` of classes, `"columns"` of one class each, or `None` for
            other targets.
        weights_targets: bool. Targets that do not count have the weight 0.
        pairs: bool. An example is a pair of texts; `fit` sets it.
        labels: optional list, the classes of an example or its parts.
        starts_trained: bool. All weights are those of a checkpoint, with heads of the
            same labels.
        reads_windows: bool. A text may be several rows, so datasets of texts are read
            into memory to predict them, and refused for training.
    """

    name_of_task: str | None = None
    backbone_cls: Any = AlbertBackbone
    preprocessor_cls: Any = None
    heads: tuple[str, ...] = ()
    keeps_pooler = False
    fields: tuple[str, ...] = ("text",)
    optional_fields: tuple[str, ...] = ()
    monitor: str | None = None
    takes_class_weight = False
    exported_output: str | None = None
    pairs = False
    labels: list | None = None
    starts_trained = False
    reads_windows = False
    ignored_class: int | None = None
    outputs_are: Any = "logits"
    targets_are: Any = "ids"
    weights_targets = False
    _auto_optimizer: AutoOptimizer | None = None
    _loss_is_default = False
    _preprocessor: Any = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if name := vars(cls).get("name_of_task"):
            TASKS[name] = cls

    # === Construction ===

    from_checkpoint = classmethod(constructors.from_checkpoint)
    from_opened = classmethod(constructors.from_opened)
    from_preset = classmethod(constructors.from_preset)
    from_backbone = classmethod(constructors.from_backbone)

    @classmethod
    def read_heads(
        cls, checkpoint: Checkpoint, arguments: dict[str, Any]
    ) -> tuple[dict[str, Any], list[str]]:
        """Return the arguments with those of the checkpoint, and the heads it lacks."""
        found: dict[str, Any] = {}
        for head in cls.heads:
            found.update(checkpoint.head_config(head))
        missing = [head for head in cls.heads if head not in checkpoint.heads]
        return {**found, **arguments}, missing

    @classmethod
    def has_heads_in(cls, checkpoint: Checkpoint) -> bool:
        """Return whether a checkpoint has the trained heads of the task."""
        return set(cls.heads) <= set(checkpoint.heads)

    def _set_preprocessor(self, preprocessor):
        constructors.check_fits(preprocessor, self.backbone)
        self._preprocessor = preprocessor

    preprocessor = property(operator.attrgetter("_preprocessor"), _set_preprocessor)

    # === Texts and labels in ===

    def prepare_fit(self, x: Any, y: Any) -> tuple[Any, Any]:
        """Check the data of `fit`, set what depends on them, and return them."""
        pairs = is_pair(x)
        self.pairs = self.pairs if pairs is None else pairs
        return x, y

    def is_trained_for(self, x: Any, y: Any) -> bool:
        """Return whether the model, before training, is one for such labels."""
        return self.starts_trained

    def targets(self, x: Texts, y: Any, packed: PackedTexts | None = None) -> Any:
        """Return what the loss compares the outputs of `packed` with.

        That is an array [rows, ...]; a `tf.RaggedTensor` [rows, (tokens)], which is
        padded with `PADDING_TARGET`; or a dict of these by output.
        """
        raise NotImplementedError

    def prepare_dataset(
        self, dataset: tf.data.Dataset, fixed: bool = False
    ) -> tf.data.Dataset:
        """Return a dataset for the model, to train on or (`fixed`) to evaluate."""
        if self.reads_windows and is_pair(dataset) is not None:
            raise TypeError(
                f"{type(self).__name__} learns from lists. Received a dataset of texts."
            )
        return dataset

    training_batches = datasets.labelled_batches
    prediction_batches = prediction.prediction_batches

    def read_texts(self, x: Any) -> Any:
        """Return the `x` of `predict`; tasks with windows read datasets into memory."""
        return texts_in_memory(x) if self.reads_windows else x

    def predicted_mask(self, x: dict[str, tf.Tensor]) -> tf.Tensor | None:
        """Return the mask of places to keep in outputs per token; `None` for all."""
        return x["padding_mask"]

    # === Answers out ===

    def predictions(self, x: Any, packed: PackedTexts | None, outputs: Any) -> Any:
        """Return what `predict` returns; `packed` is `None` for ids and datasets."""
        return outputs

    def answers(self, x: Texts, batch_size: int | None = None, **options: Any) -> list:
        """Return the answers that pipelines give, as plain Python, one per example."""
        raise NotImplementedError

    def exported_settings(self) -> dict[str, Any] | None:
        """Return the settings in LiteRT and ONNX files; `None` if it has none."""
        if self.exported_output is None:
            return None
        return {"task": self.name_of_task, "output": self.exported_output}

    def postprocess(self, outputs: Any, **options: Any) -> dict[str, Any]:
        """Return the meaning of the model's outputs as named tensors."""
        raise NotImplementedError

    def serve(
        self, texts: tuple[tf.Tensor, ...], call: Callable[[Any], Any], **options: Any
    ) -> dict[str, Any]:
        """Return what a SavedModel returns for strings; `call` runs the model."""
        return self.postprocess(call(self.preprocessor(texts)), **options)

    @property
    def text_inputs(self) -> tuple[str, ...]:
        """The names of the inputs of a SavedModel, one per text of an example."""
        if self.fields[0] != "text":
            return self.fields
        return ("text", "text_b") if self.pairs else ("text",)

    @property
    def text_specs(self) -> list[tf.TensorSpec]:
        """The inputs of a SavedModel."""
        return [tf.TensorSpec([None], tf.string, name=x) for x in self.text_inputs]

    # === Training and prediction ===

    compile = compiling.compile
    get_compile_config = compiling.get_compile_config
    compile_from_config = compiling.compile_from_config
    default_learning_rate: Any = property(compiling.default_learning_rate)
    peak_learning_rate = compiling.peak_learning_rate
    default_loss = compiling.default_loss
    default_metrics = compiling.default_metrics

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        epochs: int | None = None,
        verbose: str | int = "auto",
        callbacks: Any = None,
        validation_split: float = 0.0,
        validation_data: Any = None,
        shuffle: bool | BatchOrder = True,
        class_weight: dict[Any, float] | Literal["balanced"] | None = None,
        sample_weight: Any = None,
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
            validation_data: optional `(x, y)`, `(x, y, sample_weight)` or dataset.
            class_weight: optional dict of weights by class, in the form of `y`, for
                tasks with one class per example; or `"balanced"`, inversely
                proportional to how often a class occurs in the training labels, see
                `albert_tf.models.class_weights`.
            max_tokens: optional int, instead of `batch_size`: a batch has as many
                examples as fit in this number of tokens, padding included. Only for
                lists; see `albert_tf.models.bucket_by_length` for datasets.
            verbose, callbacks, validation_split, shuffle, sample_weight,
                initial_epoch, steps_per_epoch, validation_steps,
                validation_batch_size, validation_freq: as for `keras.Model.fit`.

        Returns:
            A `keras.callbacks.History`.

        Raises:
            AlbertError: if `x` and `y` are of unequal lengths or empty, the labels are
                wrong, or an argument is not for the task.
        """
        datasets.check_class_weight(self, class_weight, x)
        if self._auto_optimizer:
            self._auto_optimizer.check_callbacks(callbacks)
        if datasets.takes_texts(self, x):
            x, y, sample_weight = read_examples(x, y, sample_weight)
        x, y = self.prepare_fit(x, y)
        if validation_split and validation_data is None:
            if isinstance(x, tf.data.Dataset):
                datasets.refuse_for_datasets(validation_split=validation_split)
            (x, y, sample_weight), validation_data = split_off(
                x, y, sample_weight, validation_split
            )
        class_weight = datasets.weights_by_id(self, class_weight, x, y)
        size = batch_size if validation_batch_size is None else validation_batch_size
        validation_data = datasets.validation_batches(
            self, validation_data, size, max_tokens
        )
        examples = None
        if datasets.takes_texts(self, x) or not isinstance(x, tf.data.Dataset):
            examples = count_examples(x)
            epochs = fine_tuning_epochs(examples) if epochs is None else epochs
            if max_tokens is None:
                default = fine_tuning_batch_size(examples)
                batch_size = size_or_default(batch_size, default)
        options = {"batch_size": batch_size, "max_tokens": max_tokens}
        x = datasets.keras_data(self, x, y, sample_weight, **options, shuffle=shuffle)
        skipped = shuffle.skip if isinstance(shuffle, BatchOrder) else 0
        # A resumed epoch has fewer steps, but the schedule counts whole epochs.
        steps = steps_per_epoch or max(int(x.cardinality()) + skipped, 0)
        epochs = 1 if epochs is None else epochs
        epochs = check_integer("epochs", epochs, least=0)
        with (
            compiling.one_training(self, callbacks),
            datasets.without_expected_warnings(x),
        ):
            if self._auto_optimizer:
                rate = self.peak_learning_rate(examples)
                self._auto_optimizer.schedule(self, steps, epochs, initial_epoch, rate)
                if initial_epoch:
                    # A training with its own order of batches loads its own state.
                    is_checked = not isinstance(shuffle, BatchOrder)
                    done = steps * initial_epoch
                    self._auto_optimizer.set_count(self, done, is_checked)
            return super().fit(
                x,
                epochs=epochs,
                verbose=verbose,
                callbacks=callbacks,
                validation_data=validation_data,
                # The dataset is shuffled.
                shuffle=False,
                class_weight=class_weight,
                initial_epoch=initial_epoch,
                steps_per_epoch=steps_per_epoch,
                validation_steps=validation_steps,
                validation_freq=validation_freq,
            )

    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        verbose: str | int = "auto",
        sample_weight: Any = None,
        steps: int | None = None,
        callbacks: Any = None,
        return_dict: bool = False,
        *,
        max_tokens: int | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return loss and metrics on strings; as `keras.Model.evaluate`.

        Args:
            x, y, sample_weight, max_tokens: as for `fit`.
            batch_size: optional int, by default more than 32 for short texts.
            verbose, steps, callbacks, return_dict: as for `keras.Model.evaluate`.
        """
        options = {"batch_size": batch_size, "max_tokens": max_tokens}
        # In `fit`, Keras evaluates the batches of `validation_batches` after an epoch.
        if not kwargs.get("_use_cached_eval_dataset"):
            x = datasets.keras_data(self, x, y, sample_weight, **options, fixed=True)
        with datasets.without_expected_warnings(x):
            return super().evaluate(
                x,
                verbose=verbose,
                steps=steps,
                callbacks=callbacks,
                return_dict=return_dict,
                **kwargs,
            )

    def predict(
        self,
        x: Any,
        batch_size: int | None = None,
        verbose: str | int = "auto",
        steps: int | None = None,
        callbacks: Any = None,
        *,
        max_tokens: int | None = None,
    ) -> Any:
        """Return the predictions for strings; as `keras.Model.predict`.

        Args:
            x: as for `fit`.
            batch_size: optional int, by default more than 32 for short texts.
            verbose, callbacks: as for `keras.Model.predict`.
            steps: optional int, the number of batches of a dataset.
            max_tokens: optional int, instead of `batch_size`, as for `fit`.

        Returns:
            The predictions in the order of `x`, in the form of the task. In general an
            array [examples, ...] per output, or for an output with an axis for the
            tokens a list of arrays [tokens, ...], special tokens included.
        """
        options = {"verbose": verbose, "steps": steps, "callbacks": callbacks}
        found = self.predict_rows(x, batch_size, max_tokens=max_tokens, **options)
        return self.predictions(*found)

    predict_rows = prediction.predict_rows
    predict_step = prediction.predict_step

    # === Single batches ===

    def train_on_batch(
        self,
        x: Any,
        y: Any = None,
        sample_weight: Any = None,
        class_weight: dict[Any, float] | Literal["balanced"] | None = None,
        return_dict: bool = False,
    ) -> Any:
        """Train on one batch of strings, as `keras.Model.train_on_batch`.

        The default optimizer has a constant rate here. Its first call after a `fit`
        starts over, because the rate of `fit` has fallen to 0.

        Args:
            x, y, sample_weight, class_weight: as for `fit`, without datasets.
            return_dict: as for `keras.Model.train_on_batch`.
        """
        datasets.check_class_weight(self, class_weight, x)
        class_weight = datasets.weights_by_id(self, class_weight, x, y)
        x, y = self.prepare_fit(x, y)
        batch = datasets.one_batch(self, x, y, sample_weight)
        with compiling.one_training(self):
            if self._auto_optimizer:
                self._auto_optimizer.hold_rate(self)
            return keras.Model.train_on_batch(
                self, *batch, class_weight=class_weight, return_dict=return_dict
            )

    def test_on_batch(
        self,
        x: Any,
        y: Any = None,
        sample_weight: Any = None,
        return_dict: bool = False,
    ) -> Any:
        """Return loss and metrics on one batch; as `keras.Model.test_on_batch`.

        Args:
            x, y, sample_weight: as for `fit`, without datasets.
            return_dict: as for `keras.Model.test_on_batch`.
        """
        batch = datasets.one_batch(self, x, y, sample_weight, fixed=True)
        return keras.Model.test_on_batch(self, *batch, return_dict=return_dict)

    def predict_on_batch(self, x: Any) -> Any:
        """Return the predictions for one batch of strings or ids, as `predict`."""
        if datasets.takes_texts(self, x):
            one_batch = datasets.TOKENS_OF_ANY_BATCH
            return self.predict(x, verbose=0, max_tokens=one_batch)
        outputs = keras.Model.predict_on_batch(self, x)
        return self.predictions(x, None, prediction.split_ragged(outputs))

    # === What Keras calls ===

    def make_train_function(self, force: bool = False) -> None:
        compiling.check_weights(self)
        compiling.build_optimizer(self)
        super().make_train_function(force)

    def get_metrics_result(self) -> dict[str, Any]:
        # Keras would raise in a `train_step` of the user's own that does without them.
        return (
            {} if compiling.has_unused_metrics(self) else super().get_metrics_result()
        )

    # === Weights and files ===

    def quantize(self, mode=None, config=None, **kwargs) -> None:
        """Quantize the backbone, as `keras.Model.quantize`; heads keep their type."""
        self.backbone.quantize(mode, config=config, **kwargs)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of the task, which are attributes of these names."""
        others = "backbone", "preprocessor"
        return {**super().get_config(), **arguments_of(self, AlbertTask, *others)}

    def export_to_transformers(self, path: str | os.PathLike) -> None:
        """Write a directory that `transformers` reads."""
        save_checkpoint(self, path, layout="huggingface")

    # KerasHub would keep the optimizer's state of all weights in a preset.

    def save_task_weights(self, filepath: str | os.PathLike) -> None:
        with compiling.without_optimizer(self):
            super().save_task_weights(filepath)

    def load_task_weights(self, filepath: str | os.PathLike) -> None:
        with compiling.without_optimizer(self):
            super().load_task_weights(filepath)
