"""Steps of building a task: arguments, tokenizer, preprocessor, pooler, presets."""

import inspect
import os
import pathlib
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import keras
import keras_hub

from albert_tf.backbone.albert_backbone import AlbertBackbone
from albert_tf.backbone.precision import as_dtype
from albert_tf.checkpoints import RELEASES
from albert_tf.checkpoints.checkpoint import Checkpoint
from albert_tf.checkpoints.config import read_config
from albert_tf.checkpoints.download import fetch_from_hub
from albert_tf.checkpoints.formats.keras_model import DAMAGE
from albert_tf.checkpoints.layout import name_damage
from albert_tf.files import HUB, find_bundled
from albert_tf.layers.arguments import argument_names, check_arguments
from albert_tf.preprocessing.text_preprocessors import (
    AlbertTextClassifierPreprocessor as TextPreprocessor,
)
from albert_tf.tokenizers import load_tokenizer
from albert_tf.tokenizers.checks import check_vocabulary
from albert_tf.trainers.task_hooks import TaskHooks
from albert_tf_lite.errors import AlbertError

# === Arguments ===


def check_task_arguments(cls: type[TaskHooks], given: Iterable[str]) -> None:
    """Raise if an argument is one of neither a task nor its preprocessor."""
    own = preprocessor_arguments(cls)
    others = *own, *parameters_of(cls.from_checkpoint)
    names = [name for name in given if name not in own]
    check_arguments(cls, names, *others)


def preprocessor_arguments(cls: type[TaskHooks]) -> list[str]:
    """Return the names of the arguments of the preprocessor of a task."""
    if cls.preprocessor_cls is None:
        return []
    return argument_names(cls.preprocessor_cls, keras_hub.models.Preprocessor)


def parameters_of(function: Callable[..., Any]) -> Iterable[str]:
    """Return the names of the parameters of a function."""
    return inspect.signature(function).parameters


def dtype_of(
    dtype: str | keras.DTypePolicy | None, precision: str | None
) -> str | keras.DTypePolicy | None:
    """Return the type to compute in, given as one of two arguments."""
    if precision is None:
        return dtype
    if dtype is not None:
        raise AlbertError("Pass `dtype` or `precision`, not both.")
    return as_dtype(precision)


# === Preprocessor and pooler ===


def tokenizer_of(
    cls: type[TaskHooks],
    checkpoint: Checkpoint,
    lowercase: bool | None,
    vocabulary: str | os.PathLike | list[str] | None,
) -> keras.layers.Layer | None:
    """Return the tokenizer of a checkpoint; `None` for a task that takes ids."""
    if cls.preprocessor_cls is None:
        return None
    tokenizer = checkpoint.tokenizer(lowercase, vocabulary)
    if tokenizer is None:
        raise FileNotFoundError(
            f"There is no vocabulary beside {checkpoint.path} (vocab*.txt or "
            "*.model). Put it there, or pass `vocabulary=`."
        )
    return tokenizer


def build_preprocessor(
    cls: type[TaskHooks],
    vocabulary: str | os.PathLike | list[str] | keras.layers.Layer,
    sequence_length: int,
    lowercase: bool,
    settings: dict[str, Any],
) -> TextPreprocessor:
    """Return the preprocessor of a task; `settings` are its other arguments."""
    if not isinstance(vocabulary, keras.layers.Layer):
        vocabulary = load_tokenizer(vocabulary, lowercase=lowercase)
    preprocessor_cls: Any = cls.preprocessor_cls
    return preprocessor_cls(vocabulary, sequence_length=sequence_length, **settings)


def check_fits(
    preprocessor: TextPreprocessor | None, backbone: keras_hub.models.Backbone
) -> None:
    """Raise unless a backbone has the positions and vocabulary of a preprocessor."""
    tokenizer = getattr(preprocessor, "tokenizer", None)
    if preprocessor is None or tokenizer is None:
        return
    if preprocessor.sequence_length > backbone.max_sequence_length:
        raise AlbertError(
            f"The preprocessor's sequence_length={preprocessor.sequence_length} is "
            f"more than the {backbone.max_sequence_length} positions of the model."
        )
    # The vocabulary of a preset is loaded later.
    if tokenizer.pad_token_id is not None:
        name = tokenizer.original_file_name
        check_vocabulary(tokenizer, backbone.vocabulary_size, name)


def start_pooler(
    cls: type[TaskHooks], backbone: AlbertBackbone, path: str | None
) -> None:
    """Draw the weights of a new pooler, and warn."""
    pooler: Any = backbone.pooled_dense
    pooler.kernel.assign(pooler.kernel_initializer(pooler.kernel.shape))
    names = argument_names(cls, keras.Model)
    hint = ' pooling_mode="mean" needs none.' if "pooling_mode" in names else ""
    warnings.warn(
        f"{path} has no pooler: the {cls.__name__} starts with a new one with "
        f"random weights, which has to be trained.{hint}",
        # The caller of `from_checkpoint`.
        stacklevel=4,
    )


# === Presets and checkpoints by name ===


def local_path(preset: str | os.PathLike) -> str:
    """Return the directory of a preset on the Hub or of a bundled checkpoint."""
    name = os.fspath(preset)
    if name.startswith(HUB):
        return str(fetch_from_hub(name))
    return str(find_bundled(name) or name)


def is_checkpoint(preset: str, cls: type, load_weights: bool) -> bool:
    """Return whether a name is that of a checkpoint, which KerasHub does not read."""
    if not os.path.exists(preset):
        return preset in RELEASES
    config = pathlib.Path(preset, "config.json")
    fields = read_config(config) if config.exists() else {}
    with name_damage(config, *DAMAGE):
        if fields.get("registered_name", "keras_hub>").startswith("keras_hub>"):
            return True
        # KerasHub would not start a pooler, which the task may read.
        has_pooler = fields["config"].get("pooler", True)
    return load_weights and not has_pooler and not holds_task(preset, cls)


def holds_task(preset: str, cls: type) -> bool:
    """Return whether a preset has a task of a class."""
    task = pathlib.Path(preset, "task.json")
    if not task.exists():
        return False
    with name_damage(task, *DAMAGE):
        name = read_config(task)["registered_name"]
        stored = keras.saving.get_registered_object(name)
    return stored is None or issubclass(stored, cls)
