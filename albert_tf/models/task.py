"""What every task is: a backbone, a head, perhaps a preprocessor."""

from __future__ import annotations

import contextlib
import difflib
import functools
import inspect
import os
import warnings
from collections.abc import Iterator
from typing import Any

import keras
import keras_hub

from albert_tf.backbone.albert_backbone import AlbertBackbone
from albert_tf.backbone.precision import as_dtype
from albert_tf.backbone.presets import Presets
from albert_tf.checkpoints import open_checkpoint
from albert_tf.checkpoints.checkpoint import Checkpoint
from albert_tf.checkpoints.heads import HEADS
from albert_tf.layers.common import albert_initializer, at_least_float32
from albert_tf.models.auto_compile import AutoCompile
from albert_tf.preprocessing.text_classifier_preprocessor import check_fits
from albert_tf.tokenizers.load_tokenizer import load_tokenizer
from albert_tf_lite.errors import AlbertError


class AlbertTask(AutoCompile, Presets):
    """The base of all tasks on an `AlbertBackbone`.

    A task inherits from this, and after it from `keras_hub.models.Task` or such as
    `TextClassifier`. (This is no `Task` itself: Keras gives functional models other
    bases, and fails where two paths lead to one.) It adds its heads, `default_loss`
    and `default_metrics`, `get_config`, and where it takes texts, `FitsTexts`.

    Attributes:
        heads: the names of its heads, as checkpoints have them.
        keeps_pooler: bool. Keep a checkpoint's pooler though no head reads it, for
            those who start from what this task writes.
        preprocessor_cls: the class that turns its texts into ids; `None` for a task
            that takes ids.
    """

    backbone_cls = AlbertBackbone
    preprocessor_cls = None
    heads: tuple[str, ...] = ()
    keeps_pooler = False

    @property
    def preprocessor(self) -> keras_hub.models.Preprocessor | None:
        return getattr(self, "_preprocessor", None)

    @preprocessor.setter
    def preprocessor(self, preprocessor):
        check_fits(preprocessor, self.backbone)
        self._preprocessor = preprocessor

    # === Heads ===

    @property
    def head_dtype(self) -> str:
        """What a head computes in: float32 at least, for the loss is taken of it."""
        return at_least_float32(self.backbone.compute_dtype)

    def dense_head(
        self, units: int, name: str, activation: Any = None
    ) -> keras.layers.Dense:
        """A dense layer for `units` outputs."""
        return keras.layers.Dense(
            units,
            activation=activation,
            kernel_initializer=albert_initializer(),
            dtype=self.head_dtype,
            name=name,
        )

    def quantize(self, mode=None, config=None, **kwargs) -> None:
        """Quantize the backbone, as `keras.Model.quantize`.

        A head keeps its numbers: it is small, and the answer is read from it.
        """
        self.backbone.quantize(mode, config=config, **kwargs)
        # As Keras after quantizing: these were traced with the old weights.
        self.train_function = self.test_function = self.predict_function = None

    # === From a checkpoint, a backbone, a preset ===

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "from_checkpoint" not in vars(cls):
            cls.from_checkpoint = classmethod(_naming_arguments(cls))

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
        **kwargs: Any,
    ) -> AlbertTask:
        """Build the task on a checkpoint, with its head if that has as many classes.

        Args:
            path: what `albert_tf.load_checkpoint` takes, or a checkpoint opened by
                `albert_tf.checkpoints.open_checkpoint`.
            config: optional path or dict. By default the config beside the
                checkpoint.
            vocabulary: optional path of a `vocab.txt` or a SentencePiece model, or
                list of tokens. By default the one beside the checkpoint.
            sequence_length: optional int. Most tokens of an example; by default
                as many as the model has positions for.
            lowercase: optional bool. Lower-case the text. By default as the
                checkpoint says, else `True`, as for all releases.
            dtype: optional string or `keras.DTypePolicy` to compute in.
            precision: optional string in its place: `"float32"`, `"bfloat16"` (with
                weights of 32 bits), or `"auto"` for what `choose_precision` finds
                faster on this machine.
            **kwargs: arguments of the task, such as `num_classes`. What is not
                given is as the head of the checkpoint says.

        Returns:
            A model of this class.

        Raises:
            FileNotFoundError: if a file is missing.
            albert_tf.checkpoints.CheckpointError: as `albert_tf.load_checkpoint`.
            AlbertError: if the vocabulary has not the checkpoint's size, or
                `num_classes` is not given and the checkpoint has no head.
        """
        checkpoint = open_checkpoint(path, config=config)
        if precision is not None:
            if dtype is not None:
                raise AlbertError("Give `dtype` or `precision`, not both.")
            dtype = as_dtype(precision, checkpoint.arguments["hidden_dim"])
        tokenizer = None
        if cls.preprocessor_cls is not None:
            tokenizer = checkpoint.tokenizer(lowercase, vocabulary)
            if tokenizer is None:
                raise FileNotFoundError(
                    f"There is no vocabulary beside {checkpoint.path} (vocab*.txt or "
                    "*.model). Put it there or give it with `vocabulary=`."
                )
        elif (vocabulary, sequence_length, lowercase) != (None, None, None):
            raise AlbertError(
                f"{cls.__name__} takes ids, not texts: leave out `vocabulary`, "
                "`sequence_length` and `lowercase`."
            )
        return cls.from_opened(
            checkpoint,
            tokenizer,
            sequence_length=sequence_length,
            dtype=dtype,
            **kwargs,
        )

    @classmethod
    def from_opened(
        cls,
        checkpoint: Checkpoint,
        tokenizer: keras.layers.Layer | None = None,
        *,
        sequence_length: int | None = None,
        dtype: str | keras.DTypePolicy | None = None,
        **kwargs: Any,
    ) -> AlbertTask:
        """`from_checkpoint` of an open checkpoint, with or without tokenizer."""
        kwargs, new_heads = cls.read_heads(checkpoint, kwargs)
        # A checkpoint with a head that reads the pooler has one.
        new_pooler = any(HEADS[head].reads == "pooled" for head in new_heads)
        # Heads that do not read it would leave it untrained.
        unread = {HEADS[head].reads for head in cls.heads} == {"sequence"}
        drops = unread and not cls.keeps_pooler
        pooler = (checkpoint.has_pooler or new_pooler) and not drops
        backbone = checkpoint.build_backbone(dtype=dtype, pooler=pooler)
        model = cls.from_backbone(
            backbone, tokenizer, sequence_length=sequence_length, **kwargs
        )
        checkpoint.load_into(model, new_heads)
        return model

    @classmethod
    def read_heads(
        cls, checkpoint: Checkpoint, arguments: dict[str, Any]
    ) -> tuple[dict[str, Any], list[str]]:
        """The arguments of the task, completed by what the checkpoint says.

        Returns:
            These, and the names of the heads that start with random weights.
        """
        return arguments, []

    @classmethod
    def from_backbone(
        cls,
        backbone: AlbertBackbone,
        vocabulary: Any = None,
        *args: Any,
        sequence_length: int | None = None,
        lowercase: bool = True,
        **kwargs: Any,
    ) -> AlbertTask:
        """Build the task on a backbone and a vocabulary.

        Args:
            backbone: an `AlbertBackbone`.
            vocabulary: as for `from_checkpoint`, or a tokenizer; `None` for a model
                that takes ids.
            *args, **kwargs: arguments of the task after `backbone`.
            sequence_length: as for `from_checkpoint`.
            lowercase: bool. Lower-case the text. A tokenizer has its own.

        Raises:
            TypeError: if the task has no argument of that name, which Keras would
                drop without a word.
        """
        check_arguments(cls, kwargs)
        if vocabulary is not None:
            if not isinstance(vocabulary, keras.layers.Layer):
                vocabulary = load_tokenizer(vocabulary, lowercase=lowercase)
            kwargs["preprocessor"] = cls.preprocessor_cls(
                vocabulary,
                sequence_length=sequence_length or backbone.max_sequence_length,
            )
        return cls(backbone, *args, **kwargs)

    @classmethod
    def from_preset(
        cls, preset: str | os.PathLike, load_weights: bool = True, **kwargs: Any
    ) -> AlbertTask:
        if "num_classes" in kwargs:
            # The preset's labels name the classes of its own head.
            kwargs.setdefault("labels", None)
        return super().from_preset(preset, load_weights, **kwargs)

    def save_task_weights(self, filepath: str | os.PathLike) -> None:
        with self._without_optimizer():
            super().save_task_weights(filepath)

    def load_task_weights(self, filepath: str | os.PathLike) -> None:
        with self._without_optimizer():
            super().load_task_weights(filepath)

    @contextlib.contextmanager
    def _without_optimizer(self) -> Iterator[None]:
        """KerasHub would keep the optimizer's state of all weights in a preset."""
        optimizer, self.optimizer = getattr(self, "optimizer", None), None
        try:
            yield
        finally:
            self.optimizer = optimizer


def _naming_arguments(cls):
    """`from_checkpoint` with the arguments of a task in its signature, for `help`."""
    function = vars(AlbertTask)["from_checkpoint"].__func__

    @functools.wraps(function)
    def from_checkpoint(cls, *args, **kwargs):
        return function(cls, *args, **kwargs)

    *shared, rest = inspect.signature(function).parameters.values()
    there = {"self", "backbone", "preprocessor", *(x.name for x in shared)}
    own = [
        x.replace(kind=x.KEYWORD_ONLY)
        for x in inspect.signature(cls.__init__).parameters.values()
        if x.name not in there and x.kind in (x.POSITIONAL_OR_KEYWORD, x.KEYWORD_ONLY)
    ]
    from_checkpoint.__signature__ = inspect.Signature([*shared, *own, rest])
    return from_checkpoint


def check_arguments(cls: type, given: dict[str, Any]) -> None:
    """Refuse the arguments that no constructor of a task names."""
    known = {"trainable"}.union(
        *(inspect.signature(base.__init__).parameters for base in cls.__mro__)
    )
    for name in sorted(set(given) - known):
        own = [x for x in inspect.signature(cls.__init__).parameters if x != "self"]
        similar = difflib.get_close_matches(name, own, 1)
        raise TypeError(
            f"{cls.__name__} has no argument `{name}`. "
            + (f"Did you mean `{similar[0]}`?" if similar else f"It has {own[1:-1]}.")
        )


def warn_of_new_head(checkpoint: Checkpoint, head: str, wanted: int) -> None:
    """Say that a head of the checkpoint has another number of classes."""
    warnings.warn(
        f"The {head} of {checkpoint.path} has {checkpoint.num_classes(head)} classes, "
        f"not {wanted}: the model begins with a new one, with random weights.",
        # Of whoever called `from_checkpoint`.
        stacklevel=6,
    )
