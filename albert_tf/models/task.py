"""Base class of all tasks."""

import operator
import os
import pathlib
from collections.abc import Callable
from typing import Any, Self

import keras
import tensorflow as tf

from albert_tf.backbone import AlbertBackbone
from albert_tf.backbone.presets import Presets
from albert_tf.checkpoints import Checkpoint, open_checkpoint, save_checkpoint
from albert_tf.checkpoints.formats.keras_model import DAMAGE, check_files
from albert_tf.checkpoints.layout import name_damage
from albert_tf.files import complete_file, split_head
from albert_tf.layers.arguments import arguments_of
from albert_tf.layers.private_keras import inner_layers
from albert_tf.preprocessing.texts import Texts
from albert_tf.trainers import from_checkpoint as construction
from albert_tf.trainers.head_choice import choose_head, has_same_labels, reads_pooler
from albert_tf.trainers.prediction import Outputs
from albert_tf.trainers.trainer import Trainer
from albert_tf_lite.errors import AlbertError

# The tasks by name. A class enters itself if it defines `name_of_task`.
TASKS: dict[str, Any] = {}


class AlbertTask(Trainer):
    """Base class of all tasks: a backbone, a head and an optional preprocessor.

    A task inherits from this class, then from `keras_hub.models.Task` or a KerasHub
    class of its kind. (This class cannot be a `Task` itself, because Keras replaces
    the bases of functional models.) Its class attributes describe it to pipelines,
    command line and exports. It defines `__init__`, whose arguments it keeps as
    attributes, `default_loss`, `targets`, `postprocess` and `answers`;
    docs/contributing/new_task.md builds one and lists the methods with defaults.

    `compile`, `fit`, `evaluate` and `predict` are those of `Trainer`.

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
    fields: tuple[str, ...] = ("text",)
    optional_fields: tuple[str, ...] = ()
    monitor: str | None = None
    exported_output: str | None = None
    _preprocessor: Any = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if name := vars(cls).get("name_of_task"):
            TASKS[name] = cls

    # === Construction ===

    @classmethod
    def from_checkpoint(
        cls,
        path: str | os.PathLike | Checkpoint,
        *,
        config: str | os.PathLike | dict | None = None,
        vocabulary: str | os.PathLike | list[str] | None = None,
        sequence_length: int | None = None,
        lowercase: bool | None = None,
        dtype: str | keras.DTypePolicy | None = None,
        precision: str | None = None,
        head: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Build the task on a checkpoint, with its head if that has as many classes.

        Of several named heads it starts from `head`, or from the only one of the task;
        if `labels` are given, from the only one with these labels.

        Args:
            path: path of a directory, a prefix, an `.index` or `.data` file, an
                archive, a `.keras` file or one of tensors; `"hf://user/name"`; the
                name of a release, such as `"albert_tiny_zh"`, which is downloaded
                once; or a checkpoint opened by `albert_tf.checkpoints.open_checkpoint`.
            config: optional path or dict. By default the config beside the
                checkpoint.
            vocabulary: optional path of a `vocab.txt` or a SentencePiece model, or
                list of tokens. By default the one beside the checkpoint.
            sequence_length: optional int. Maximum number of tokens per example; by
                default the number of positions of the model.
            lowercase: optional bool. Lower-case the text. By default as in the
                checkpoint's config, else `True`, as for all releases.
            dtype: optional string or `keras.DTypePolicy` to compute in.
            precision: optional string, instead of `dtype`: `"float32"`, `"bfloat16"`
                (with weights of 32 bits), or `"auto"`, which is bfloat16 on a GPU and
                on processors with units for it.
            head: optional string, the name of one of several heads, as in
                `"my_model:entities"`.
            **kwargs: arguments of the class, such as `num_classes`. By default those
                of the checkpoint's head.

        Returns:
            A model of this class.

        Raises:
            FileNotFoundError: if a file is missing.
            albert_tf.checkpoints.CheckpointError: if the checkpoint is damaged, is not
                of ALBERT, or does not fit its config.
            AlbertError: if the vocabulary does not have the checkpoint's size, or
                `num_classes` is missing and the checkpoint has no head, or several.
        """
        # Before a file is missed that a misspelled argument names.
        construction.check_task_arguments(cls, kwargs)
        checkpoint = open_checkpoint(path, config=config, head=head)
        checkpoint = choose_head(cls, checkpoint, kwargs)
        tokenizer = construction.tokenizer_of(cls, checkpoint, lowercase, vocabulary)
        return cls.from_opened(
            checkpoint,
            tokenizer,
            sequence_length=sequence_length,
            dtype=construction.dtype_of(dtype, precision),
            **kwargs,
        )

    @classmethod
    def from_preset(
        cls, preset: str | os.PathLike, load_weights: bool = True, **kwargs: Any
    ) -> Self:
        """Build the task from a preset or a checkpoint.

        Args:
            preset: string: the directory of a preset or of a checkpoint of any form;
                `"hf://user/name"`, the same on the Hub; the name of a release, such as
                `"albert_tiny_zh"`; one of these with a named head, such as
                `"my_model:entities"`; or any other preset of KerasHub.
            load_weights: bool. `False` for random weights of a preset.
            **kwargs: arguments of `from_checkpoint` for a checkpoint, else those of the
                class.

        Returns:
            A model of this class.

        Raises:
            TypeError: if there is no argument of that name.
            AlbertError: if the vocabulary of a preset does not have the model's size.
        """
        known = {
            "load_task_weights",
            *construction.parameters_of(cls.from_checkpoint),
        }
        construction.check_task_arguments(cls, kwargs.keys() - known)
        name, head = split_head(preset)
        path = construction.local_path(name)
        if head is not None:
            path = f"{path}:{head}"
        has_head = head is not None or kwargs.get("head") is not None
        if has_head or construction.is_checkpoint(path, cls, load_weights):
            if not load_weights:
                raise AlbertError(
                    f"{path} is not a preset. Build a task with random weights on "
                    "AlbertBackbone(**open_checkpoint(...).arguments)."
                )
            return cls.from_checkpoint(path, **kwargs)
        is_folder = os.path.isdir(path)
        if load_weights and is_folder:
            check_files(pathlib.Path(path))
        # A task without `backbone_cls` is hidden from KerasHub, which would pick any of
        # several classes, and is loaded by its base.
        owner: Any = cls if cls.backbone_cls else cls.__base__
        load = super(Presets, owner).from_preset  # type: ignore[misc]
        # Errors about arguments are not about files.
        damage = DAMAGE if is_folder and not kwargs else ()
        with name_damage(path, *damage):
            model = load(path, load_weights=load_weights, **kwargs)
        if not isinstance(model, cls):
            return cls.from_checkpoint(path, **kwargs)
        # KerasHub reads the vocabulary after building the task.
        with name_damage(path, AlbertError):
            construction.check_fits(model.preprocessor, model.backbone)
        # Arguments may bring a new head, or other labels.
        has_stored_head = load_weights and not kwargs
        model.starts_trained = has_stored_head and construction.holds_task(path, owner)
        return model

    @classmethod
    def from_opened(
        cls,
        checkpoint: Checkpoint,
        tokenizer: keras.layers.Layer | None = None,
        *,
        sequence_length: int | None = None,
        dtype: str | keras.DTypePolicy | None = None,
        **kwargs: Any,
    ) -> Self:
        """Build the task on an open checkpoint, with or without a tokenizer.

        Args:
            checkpoint: a `Checkpoint`.
            tokenizer: optional tokenizer; without one, the model takes ids.
            sequence_length: optional int. Maximum number of tokens per example; by
                default the number of positions of the model.
            dtype: optional string or `keras.DTypePolicy` to compute in.
            **kwargs: arguments of the class, by default those of the checkpoint's head.
        """
        construction.check_task_arguments(cls, kwargs)
        arguments, new_heads = cls.read_heads(checkpoint, kwargs)
        has_pooler = reads_pooler(cls, checkpoint, arguments, new_heads)
        backbone = checkpoint.build_backbone(dtype=dtype, pooler=has_pooler)
        if has_pooler and not checkpoint.has_pooler:
            new_heads = [*new_heads, "pooler"]
            construction.start_pooler(cls, backbone, checkpoint.path)
        model = cls.from_backbone(
            backbone, tokenizer, sequence_length=sequence_length, **arguments
        )
        checkpoint.load_into(model, new_heads)
        model.starts_trained = not new_heads and has_same_labels(model, checkpoint)
        return model

    @classmethod
    def from_backbone(
        cls,
        backbone: AlbertBackbone,
        vocabulary: str | os.PathLike | list[str] | keras.layers.Layer | None = None,
        *args: Any,
        sequence_length: int | None = None,
        lowercase: bool = True,
        **kwargs: Any,
    ) -> Self:
        """Build the task on a backbone and a vocabulary.

        Args:
            backbone: an `AlbertBackbone`.
            vocabulary: path of a `vocab.txt` or a SentencePiece model, list of tokens,
                or a tokenizer; `None` for a model that takes ids.
            *args: arguments of the class after `backbone`.
            sequence_length: optional int. Maximum number of tokens per example; by
                default the number of positions of the model.
            lowercase: bool. Lower-case the text; ignored if `vocabulary` is a
                tokenizer.
            **kwargs: arguments of the class or of its preprocessor.

        Returns:
            A model of this class.

        Raises:
            TypeError: if the class has no argument of that name.
        """
        construction.check_task_arguments(cls, kwargs)
        names = construction.preprocessor_arguments(cls)
        settings = {name: kwargs.pop(name) for name in names if name in kwargs}
        if vocabulary is not None:
            if sequence_length is None:
                sequence_length = backbone.max_sequence_length
            kwargs["preprocessor"] = construction.build_preprocessor(
                cls, vocabulary, sequence_length, lowercase, settings
            )
        return cls(backbone, *args, **kwargs)

    def _set_preprocessor(self, preprocessor):
        construction.check_fits(preprocessor, self.backbone)
        self._preprocessor = preprocessor

    preprocessor = property(operator.attrgetter("_preprocessor"), _set_preprocessor)

    # === Answers out ===

    def answers(self, x: Texts, batch_size: int | None = None, **options: Any) -> list:
        """Return the answers that pipelines give, as plain Python, one per example."""
        raise NotImplementedError

    def exported_settings(self) -> dict[str, Any] | None:
        """Return the settings in LiteRT and ONNX files; `None` if it has none."""
        if self.exported_output is None:
            return None
        return {"task": self.name_of_task, "output": self.exported_output}

    def postprocess(self, outputs: Outputs, **options: Any) -> dict[str, Any]:
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

    # === Weights and files ===

    def quantize(
        self,
        mode: str | None = None,
        config: keras.quantizers.QuantizationConfig | None = None,
        **kwargs: Any,
    ) -> None:
        """Quantize the backbone, as `keras.Model.quantize`; heads keep their type.

        Args:
            mode: string, such as `"int8"`.
            config: optional `keras.quantizers` config, instead of `mode`.
            **kwargs: passed to `keras.Model.quantize`.
        """
        self.backbone.quantize(mode, config=config, **kwargs)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of the task, which are attributes of these names."""
        others = "backbone", "preprocessor"
        return {**super().get_config(), **arguments_of(self, AlbertTask, *others)}

    def export_to_transformers(self, path: str | os.PathLike) -> None:
        """Write a directory that `transformers` reads.

        Args:
            path: the directory.
        """
        save_checkpoint(self, path, layout="huggingface")

    def save_task_weights(self, filepath: str | os.PathLike) -> None:
        """Save the weights that are not of the backbone, those of the head.

        Args:
            filepath: a path that ends in `.weights.h5`.
        """
        if not self.has_task_weights():
            raise AlbertError(
                f"{type(self).__name__} has no weights but its backbone's."
            )
        with complete_file(filepath) as temporary:
            keras.saving.save_weights(
                self, temporary, objects_to_skip=self._not_of_the_head()
            )

    def load_task_weights(self, filepath: str | os.PathLike) -> None:
        """Load the weights that are not of the backbone, those of the head.

        Args:
            filepath: a path that ends in `.weights.h5`.
        """
        keras.saving.load_weights(
            self, filepath, objects_to_skip=self._not_of_the_head()
        )

    def _not_of_the_head(self):
        # KerasHub would keep the optimizer's state of all weights beside the head.
        optimizer = getattr(self, "optimizer", None)
        return [self.backbone, *inner_layers(self.backbone), optimizer]
