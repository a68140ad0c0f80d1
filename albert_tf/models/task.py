"""Base class of all tasks."""

import contextlib
import functools
import operator
import os
from collections.abc import Callable, Mapping
from typing import Any

import keras
import tensorflow as tf

from albert_tf.backbone import AlbertBackbone
from albert_tf.backbone.presets import Presets
from albert_tf.checkpoints import Checkpoint, save_checkpoint
from albert_tf.layers.common import arguments_of, at_least_float32, dense
from albert_tf.models import batching, datasets, prediction
from albert_tf.models import from_checkpoint as constructors
from albert_tf.preprocessing.segment_packer import PackedTexts
from albert_tf.preprocessing.texts import (
    Texts,
    check_batched,
    count_examples,
    is_pair,
    read_examples,
    scores,
    split_off,
    texts_in_memory,
)
from albert_tf.training import (
    fine_tuning_batch_size,
    fine_tuning_epochs,
    fine_tuning_learning_rate,
)
from albert_tf.training.auto_optimizer import AutoOptimizer
from albert_tf.training.batch_order import BatchOrder
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.inputs import class_positions

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
        pairs: bool. An example is a pair of texts; `fit` sets it.
        labels: optional list, the classes of an example or its parts.
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
    reads_windows = False
    ignored_class: int | None = None
    _auto_optimizer: AutoOptimizer | None = None
    _loss_is_default = False
    _preprocessor: Any = None
    _is_in_fit = False

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

    def order_heads(self, checkpoint: Checkpoint) -> None:
        """Bring loaded heads into the order of the model's classes, if it differs."""

    def _set_preprocessor(self, preprocessor):
        constructors.check_fits(preprocessor, self.backbone)
        self._preprocessor = preprocessor

    preprocessor = property(operator.attrgetter("_preprocessor"), _set_preprocessor)

    @property
    def head_dtype(self) -> str:
        """The type that heads compute in: at least float32, as losses read them."""
        return at_least_float32(self.backbone.compute_dtype)

    def dense_head(
        self, units: int, name: str, activation: Any = None
    ) -> keras.layers.Dense:
        """Return a dense layer with `units` outputs."""
        return dense(units, activation=activation, dtype=self.head_dtype, name=name)

    def head_dropout(self, rate: float) -> keras.layers.Dropout:
        """Return the dropout layer before a head."""
        return keras.layers.Dropout(
            rate, dtype=self.backbone.compute_dtype, name="output_dropout"
        )

    # === Texts and labels in ===

    def prepare_fit(self, x: Any, y: Any) -> tuple[Any, Any]:
        """Check the data of `fit`, set what depends on them, and return them."""
        pairs = is_pair(x)
        self.pairs = self.pairs if pairs is None else pairs
        return x, y

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

    def training_batches(
        self,
        x: Texts,
        y: Any,
        sample_weight: Any = None,
        *,
        fixed: bool = False,
        **options: Any,
    ) -> tf.data.Dataset:
        """Return batches of `(features, targets)`, or with weights of these three.

        `options` are those of `text_batches`; `fixed` as for `prepare_dataset`.
        """
        packed = self.preprocessor.pack_texts(x)
        labels = [self.targets(x, y, packed)]
        if sample_weight is not None:
            weights = packed.of_rows(scores(x, sample_weight, "sample_weight"))
            # The losses of tokens have an axis for the tokens.
            is_per_token = isinstance(labels[0], tf.RaggedTensor)
            labels.append(weights[:, tf.newaxis] if is_per_token else weights)
        return batching.text_batches(
            self.preprocessor, packed, *labels, **options
        ).dataset

    def read_texts(self, x: Any) -> Any:
        """Return the `x` of `predict`; tasks with windows read datasets into memory."""
        return texts_in_memory(x) if self.reads_windows else x

    def prediction_batches(
        self,
        packed: PackedTexts,
        batch_size: int | None = None,
        max_tokens: int | None = None,
    ) -> batching.TextBatches:
        """Return the rows to predict in batches."""
        return batching.text_batches(
            self.preprocessor, packed, batch_size=batch_size, max_tokens=max_tokens
        )

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

    @property
    def default_learning_rate(self) -> float:
        """The peak learning rate of `optimizer="auto"`."""
        backbone = self.backbone
        stored = backbone.fine_tuning.get("learning_rate")
        return stored or fine_tuning_learning_rate(backbone.hidden_dim)

    def default_loss(self) -> Any:
        """Return the loss: the cross-entropy of each output with class ids.

        Targets of `ignored_class` do not count.
        """
        loss = keras.losses.SparseCategoricalCrossentropy(
            from_logits=True, ignore_class=self.ignored_class
        )
        outputs = self.output
        return dict.fromkeys(outputs, loss) if isinstance(outputs, dict) else loss

    def default_metrics(self) -> dict[str, Any]:
        """Return the metrics of the task, as arguments of `keras.Model.compile`."""
        return {"metrics": None}

    def compile(
        self,
        optimizer: Any = "auto",
        loss: Any = "auto",
        *,
        metrics: Any = "auto",
        learning_rate: float | None = None,
        ema_momentum: float | None = None,
        gradient_accumulation_steps: int | None = None,
        **kwargs: Any,
    ) -> None:
        """Configure training, as `keras.Model.compile`, with defaults that train.

        Args:
            optimizer: `"auto"`, or anything Keras takes. `"auto"` is AdamW, whose
                rate rises for the first 10% of the steps of each `fit` of texts and
                falls to 0 with the last.
            loss: `"auto"` for the loss of the task.
            metrics: `"auto"` for the metrics of the task.
            learning_rate: optional float, the peak for `optimizer="auto"`. By default
                that of the backbone's `fine_tuning`, else by its width: 1e-4 for tiny
                and small, 3e-5 up to large, 1e-5 above, 5e-4 and 1e-3 below.
            ema_momentum: optional float below 1, for `optimizer="auto"`. Keep the
                moving average of the weights, which `fit` ends with, as Keras'
                `use_ema`; 0.99 averages about 100 steps. To score the averages after
                each epoch pass Keras' `SwapEMAWeights` to `fit`.
            gradient_accumulation_steps: optional int of at least 2, for
                `optimizer="auto"`: the number of batches per update.
            **kwargs: passed to `keras.Model.compile`. On TensorFlow `jit_compile` is
                `False` by default, because XLA compiles again for every length.

        Raises:
            AlbertError: if `learning_rate`, `ema_momentum` or
                `gradient_accumulation_steps` is given beside an optimizer.
        """
        settings = {
            "learning_rate": learning_rate,
            "ema_momentum": ema_momentum,
            "gradient_accumulation_steps": gradient_accumulation_steps,
        }
        self._loss_is_default = loss == "auto"
        loss = self.default_loss() if self._loss_is_default else loss
        defaults = self.default_metrics() if metrics == "auto" else {"metrics": metrics}
        kwargs = {"metrics": None, **defaults, **kwargs}
        if keras.backend.backend() == "tensorflow":
            kwargs.setdefault("jit_compile", False)
        self._auto_optimizer = None
        if isinstance(optimizer, str) and optimizer == "auto":
            settings["learning_rate"] = learning_rate or self.default_learning_rate
            # A partial, because Keras would track the metrics in a dict of ours as
            # further ones.
            recompile = functools.partial(super().compile, loss=loss, **kwargs)
            self._auto_optimizer = AutoOptimizer(recompile, **settings)
            optimizer = self._auto_optimizer.build()
        elif given := [name for name, value in settings.items() if value is not None]:
            raise AlbertError(
                f"`{given[0]}` goes with optimizer='auto'. Pass it to your own "
                "optimizer instead."
            )
        super().compile(optimizer=optimizer, loss=loss, **kwargs)

    def get_compile_config(self) -> dict[str, Any] | None:
        config = super().get_compile_config()
        if config and self._auto_optimizer:
            # In the optimizer, so that a plain model, as of `clone_model`, reads it.
            config["optimizer"]["config"]["task_settings"] = {
                **self._auto_optimizer.settings,
                **({"loss": "auto"} if self._loss_is_default else {}),
            }
        return config

    def compile_from_config(self, config: Mapping[str, Any]) -> None:
        optimizer = config["optimizer"]
        is_config = isinstance(optimizer, Mapping)
        if settings := is_config and optimizer["config"].get("task_settings"):
            config = {**config, "optimizer": "auto", **settings}
        self.compile(**keras.saving.deserialize_keras_object(config))
        self.optimizer.build(self.trainable_variables)

    def make_train_function(self, force: bool = False) -> Any:
        if self._auto_optimizer:
            self._auto_optimizer.check_weights(self.trainable_variables)
        # A step that builds the optimizer is traced twice, with a condition for each
        # variable, and TensorFlow never frees such graphs.
        if self.optimizer is not None and not self.optimizer.built:
            self.optimizer.build(self.trainable_variables)
        return super().make_train_function(force)

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
        class_weight: dict[Any, float] | None = None,
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
                tasks with one class per example; see `albert_tf.models.class_weights`.
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
        if class_weight is not None and not self.takes_class_weight:
            raise AlbertError(
                "`class_weight` is for classifiers with one class per text. Use "
                f"`sample_weight` or your own loss for {type(self).__name__}."
            )
        if class_weight and self.labels:
            ids = class_positions(list(class_weight), self.labels, "class_weight")
            class_weight = dict(zip(ids.tolist(), class_weight.values(), strict=True))
        if self._auto_optimizer:
            self._auto_optimizer.check_callbacks(callbacks)
        if datasets.takes_texts(self, x):
            x, y, sample_weight = read_examples(x, y, sample_weight)
        x, y = self.prepare_fit(x, y)
        if validation_split and validation_data is None:
            (x, y, sample_weight), validation_data = split_off(
                x, y, sample_weight, validation_split
            )
        if validation_data is not None:
            if not isinstance(validation_data, tuple):
                validation_data = (validation_data,)
            is_dataset = isinstance(validation_data[0], tf.data.Dataset)
            options = {
                "batch_size": validation_batch_size or batch_size,
                "max_tokens": None if is_dataset else max_tokens,
            }
            validation_data = datasets.keras_data(
                self, *validation_data, **options, fixed=True
            )
        if datasets.takes_texts(self, x) or not isinstance(x, tf.data.Dataset):
            examples = count_examples(x)
            epochs = epochs or fine_tuning_epochs(examples)
            if max_tokens is None:
                batch_size = batch_size or fine_tuning_batch_size(examples)
        options = {"batch_size": batch_size, "max_tokens": max_tokens}
        x = datasets.keras_data(self, x, y, sample_weight, **options, shuffle=shuffle)
        skipped = shuffle.skip if isinstance(shuffle, BatchOrder) else 0
        # A resumed epoch has fewer steps, but the schedule counts whole epochs.
        steps = steps_per_epoch or max(int(x.cardinality()) + skipped, 0)
        epochs = epochs or 1
        if self._auto_optimizer:
            self._auto_optimizer.schedule(self, steps, epochs, initial_epoch)
        with datasets.without_expected_warnings(x), self._in_fit():
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
        # The batches of `fit`, which Keras evaluates after an epoch, are ready.
        if not (self._is_in_fit and is_pair(x) is None):
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

    def predict_rows(
        self,
        x: Any,
        batch_size: int | None = None,
        *,
        max_tokens: int | None = None,
        **kwargs: Any,
    ) -> tuple[Any, PackedTexts | None, Any]:
        """Return the texts, their rows, and the outputs of the rows.

        `kwargs` are passed to Keras' `predict`.
        """
        x = self.read_texts(x)
        if datasets.takes_texts(self, x):
            (x,) = read_examples(x)
        else:
            datasets.refuse_for_datasets(max_tokens=max_tokens)
            if isinstance(x, tf.data.Dataset):
                check_batched(x)
            outputs = super().predict(x, batch_size=batch_size, **kwargs)
            return x, None, prediction.split_ragged(outputs)
        if count_examples(x) == 0:
            return x, None, prediction.empty_outputs(self.output)
        packed = self.preprocessor.pack_texts(x)
        batches = self.prediction_batches(packed, batch_size, max_tokens)
        return x, packed, prediction.predict_batches(self, batches, **kwargs)

    def predict_step(self, *args: Any) -> Any:
        outputs = super().predict_step(*args)
        if keras.backend.backend() != "tensorflow":
            return outputs
        x, _, _ = keras.utils.unpack_x_y_sample_weight(args[-1])
        mask = self.predicted_mask(x)
        if mask is None:
            return outputs
        return prediction.without_padding(outputs, self.output, mask)

    @contextlib.contextmanager
    def _in_fit(self):
        self._is_in_fit = True
        try:
            yield
        finally:
            self._is_in_fit = False

    # === Weights and files ===

    def quantize(self, mode=None, config=None, **kwargs) -> None:
        """Quantize the backbone, as `keras.Model.quantize`; heads keep their type."""
        self.backbone.quantize(mode, config=config, **kwargs)
        # As Keras after quantizing: these were traced with the old weights.
        self.train_function = self.test_function = self.predict_function = None

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of the task, which are attributes of these names."""
        others = "backbone", "preprocessor"
        return {**super().get_config(), **arguments_of(self, AlbertTask, *others)}

    def export_to_transformers(self, path: str | os.PathLike) -> None:
        """Write a directory that `transformers` reads."""
        save_checkpoint(self, path, layout="huggingface")

    # KerasHub would keep the optimizer's state of all weights in a preset.

    def save_task_weights(self, filepath: str | os.PathLike) -> None:
        with self._without_optimizer():
            super().save_task_weights(filepath)

    def load_task_weights(self, filepath: str | os.PathLike) -> None:
        with self._without_optimizer():
            super().load_task_weights(filepath)

    @contextlib.contextmanager
    def _without_optimizer(self):
        optimizer, self.optimizer = getattr(self, "optimizer", None), None
        try:
            yield
        finally:
            self.optimizer = optimizer
