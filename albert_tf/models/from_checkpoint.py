"""Constructors of tasks: from checkpoints, presets and backbones.

They are the class methods of `AlbertTask`, to which `cls` belongs.
"""

import inspect
import os
import pathlib
import warnings
from collections.abc import Iterable
from typing import Any

import keras
import keras_hub

from albert_tf.backbone.albert_backbone import AlbertBackbone
from albert_tf.backbone.precision import as_dtype
from albert_tf.backbone.presets import Presets
from albert_tf.checkpoints import RELEASES, open_checkpoint
from albert_tf.checkpoints.checkpoint import Checkpoint
from albert_tf.checkpoints.config import read_config
from albert_tf.checkpoints.download import fetch_from_hub
from albert_tf.checkpoints.formats.keras_model import check_files
from albert_tf.checkpoints.heads import HEADS
from albert_tf.files import HUB, find_bundled, split_head
from albert_tf.layers.common import (
    argument_names,
    check_arguments,
)
from albert_tf.tokenizers import load_tokenizer
from albert_tf.tokenizers.checks import check_vocabulary
from albert_tf_lite.errors import AlbertError, listed

# Arguments that start with a new head, those for users first.
_NEW_HEADS = ("labels", "num_classes", "tags")
# Heads of pretraining, which are of no fine-tuned task.
_PRETRAINED = ("masked_lm_head", "sop_head")


# === Constructors ===


def from_checkpoint(
    cls: Any,
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
) -> Any:
    """Build the task on a checkpoint, with its head if that has as many classes.

    Of several named heads it starts from `head`, or from the only one of the task; if
    `labels` are given, from the only one with these labels.

    Args:
        path: as for `albert_tf.load_checkpoint`, or a checkpoint opened by
            `albert_tf.checkpoints.open_checkpoint`.
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
        albert_tf.checkpoints.CheckpointError: as `albert_tf.load_checkpoint`.
        AlbertError: if the vocabulary does not have the checkpoint's size, or
            `num_classes` is missing and the checkpoint has no head, or several.
    """
    # Before a file is missed that a misspelled argument names.
    _preprocessor_arguments(cls, kwargs)
    checkpoint = open_checkpoint(path, config=config, head=head)
    checkpoint = choose_head(cls, checkpoint, kwargs)
    if precision is not None:
        if dtype is not None:
            raise AlbertError("Pass `dtype` or `precision`, not both.")
        dtype = as_dtype(precision)
    tokenizer = None
    if cls.preprocessor_cls is not None:
        tokenizer = checkpoint.tokenizer(lowercase, vocabulary)
        if tokenizer is None:
            raise FileNotFoundError(
                f"There is no vocabulary beside {checkpoint.path} (vocab*.txt or "
                "*.model). Put it there, or pass `vocabulary=`."
            )
    return cls.from_opened(
        checkpoint,
        tokenizer,
        sequence_length=sequence_length,
        dtype=dtype,
        **kwargs,
    )


def from_preset(
    cls: Any, preset: str | os.PathLike, load_weights: bool = True, **kwargs: Any
) -> Any:
    """Build the task from a preset or a checkpoint.

    Args:
        preset: string: the directory of a preset or of a checkpoint of any form;
            `"hf://user/name"`, the same on the Hub; the name of a release, such as
            `"albert_tiny_zh"`; one of these with a named head, such as
            `"my_model:entities"`; or any other preset of KerasHub.
        load_weights: bool. `False` for random weights of a preset.
        **kwargs: passed to `from_checkpoint` for a checkpoint.

    Raises:
        TypeError: if there is no argument of that name.
        AlbertError: if the vocabulary of a preset does not have the model's size.
    """
    of_checkpoints = {"load_task_weights", *_parameters_of(cls.from_checkpoint)}
    others = {x: y for x, y in kwargs.items() if x not in of_checkpoints}
    _preprocessor_arguments(cls, others)
    name, head = split_head(preset)
    preset = _local(name)
    if head is not None:
        preset = f"{preset}:{head}"
    has_head = head is not None or kwargs.get("head") is not None
    if has_head or _is_checkpoint(preset, cls, load_weights):
        if not load_weights:
            raise AlbertError(
                f"{preset} is not a preset. Build a task with random weights on "
                "AlbertBackbone(**open_checkpoint(...).arguments)."
            )
        return cls.from_checkpoint(preset, **kwargs)
    if load_weights and os.path.isdir(preset):
        check_files(pathlib.Path(preset))
    # A task without `backbone_cls` is hidden from KerasHub, which would pick any of
    # several classes, and is loaded by its base.
    owner: Any = cls if cls.backbone_cls else cls.__base__
    model = super(Presets, owner).from_preset(
        preset, load_weights=load_weights, **kwargs
    )
    if not isinstance(model, cls):
        return cls.from_checkpoint(preset, **kwargs)
    # KerasHub reads the vocabulary after building the task.
    check_fits(model.preprocessor, model.backbone)
    # Arguments may bring a new head, or other labels.
    is_own = load_weights and not kwargs
    model.starts_trained = is_own and _holds(str(preset), owner)
    return model


def from_opened(
    cls: Any,
    checkpoint: Checkpoint,
    tokenizer: keras.layers.Layer | None = None,
    *,
    sequence_length: int | None = None,
    dtype: str | keras.DTypePolicy | None = None,
    **kwargs: Any,
) -> Any:
    """Build the task on an open checkpoint, with or without a tokenizer."""
    _preprocessor_arguments(cls, kwargs)
    kwargs, new_heads = cls.read_heads(checkpoint, kwargs)
    reads = {HEADS[head].reads for head in cls.heads}
    # A pooler that no head reads would stay untrained.
    drops_pooler = reads == {"sequence"} and not cls.keeps_pooler
    pooler = not drops_pooler and (
        checkpoint.has_pooler or _reads_pooler(cls, checkpoint, kwargs, new_heads)
    )
    backbone = checkpoint.build_backbone(dtype=dtype, pooler=pooler)
    if pooler and not checkpoint.has_pooler:
        new_heads = [*new_heads, "pooler"]
        _start_pooler(cls, backbone.pooled_dense, checkpoint.path)
    model = cls.from_backbone(
        backbone, tokenizer, sequence_length=sequence_length, **kwargs
    )
    checkpoint.load_into(model, new_heads)
    model.starts_trained = not new_heads and _has_same_labels(model, checkpoint)
    return model


def from_backbone(
    cls: Any,
    backbone: AlbertBackbone,
    vocabulary: Any = None,
    *args: Any,
    sequence_length: int | None = None,
    lowercase: bool = True,
    **kwargs: Any,
) -> Any:
    """Build the task on a backbone and a vocabulary.

    Args:
        backbone: an `AlbertBackbone`.
        vocabulary: as for `from_checkpoint`, or a tokenizer; `None` for a model
            that takes ids.
        *args, **kwargs: arguments of the class after `backbone`, or of its
            preprocessor.
        sequence_length: as for `from_checkpoint`.
        lowercase: bool. Lower-case the text; ignored if `vocabulary` is a
            tokenizer.

    Raises:
        TypeError: if the class has no argument of that name.
    """
    names = _preprocessor_arguments(cls, kwargs)
    settings = {name: kwargs.pop(name) for name in names if name in kwargs}
    if vocabulary is not None:
        if not isinstance(vocabulary, keras.layers.Layer):
            vocabulary = load_tokenizer(vocabulary, lowercase=lowercase)
        length = sequence_length
        if length is None:
            length = backbone.max_sequence_length
        kwargs["preprocessor"] = cls.preprocessor_cls(
            vocabulary, sequence_length=length, **settings
        )
    return cls(backbone, *args, **kwargs)


# === Their steps ===


def choose_head(cls: Any, checkpoint: Checkpoint, arguments: dict[str, Any]) -> Any:
    """Return a checkpoint with the named head that a task starts from, if any does."""
    if checkpoint.head or not (checkpoint.named_heads and cls.heads):
        return checkpoint
    if _starts(cls, checkpoint, arguments):
        return checkpoint
    views = checkpoint.views().values()
    found = [view for view in views if _starts(cls, view, arguments)]
    if len(found) == 1:
        return found[0]
    names = {*_NEW_HEADS}.intersection(argument_names(cls, keras.Model))
    if found and names and not any(arguments.get(x) is not None for x in names):
        new = " or ".join(f"`{x}=`" for x in _NEW_HEADS if x in names)
        raise several_heads(checkpoint, [x.head for x in found], new)
    return checkpoint


def several_heads(
    checkpoint: Checkpoint, names: Iterable[str | None], new: str = ""
) -> AlbertError:
    """Return the error for a checkpoint of which one named head must be chosen.

    `new` are arguments that start with a new head instead.
    """
    heads = list(names)
    choices = ", ".join(f"{checkpoint.name}:{name}" for name in heads)
    start = f" Pass {new} to start with a new one." if new else ""
    return AlbertError(
        f"{checkpoint.name} has several heads. Choose one: {choices}, or as "
        f"`head={heads[0]!r}`.{start}"
    )


def other_heads(checkpoint: Checkpoint) -> str:
    """Return a sentence with the heads of other tasks in a checkpoint, if any."""
    if checkpoint.named_heads:
        names = ", ".join(checkpoint.named_heads)
        return f" Its named heads, to choose by `head=`, are of other tasks: {names}."
    fine_tuned = [head for head in checkpoint.heads if head not in _PRETRAINED]
    if fine_tuned:
        return f" Its head is of another task: {', '.join(fine_tuned)}."
    return ""


def _starts(cls: Any, checkpoint: Checkpoint, arguments: dict[str, Any]) -> bool:
    """Return whether the task would have the head of a checkpoint, without warning."""
    labels = arguments.get("labels"), arguments.get("tags")
    if arguments.get("num_classes") and labels == (None, None):
        # As many classes may be others.
        return checkpoint.head is None and cls.has_heads_in(checkpoint)
    if not cls.has_heads_in(checkpoint):
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, new_heads = cls.read_heads(checkpoint, dict(arguments))
    return not new_heads


def _preprocessor_arguments(cls: Any, given: dict[str, Any]) -> list[str]:
    """Return the arguments of the preprocessor, and check the given ones."""
    names: list[str] = []
    if cls.preprocessor_cls is not None:
        names = argument_names(cls.preprocessor_cls, keras_hub.models.Preprocessor)
    others = *names, *_parameters_of(cls.from_checkpoint)
    check_arguments(cls, given.keys() - names, *others)
    return names


def _parameters_of(function: Any) -> Iterable[str]:
    return inspect.signature(function).parameters


def _reads_pooler(
    cls: Any, checkpoint: Checkpoint, arguments: dict[str, Any], new_heads: list[str]
) -> bool:
    """Return whether the model reads the pooler."""
    tuned = checkpoint.arguments.get("fine_tuning") or {}
    mode = arguments.get("pooling_mode") or tuned.get("pooling_mode")
    heads = set(cls.heads).intersection((*new_heads, *checkpoint.heads))
    return any(HEADS[head].reads_pooler(mode) for head in heads)


def _start_pooler(cls, pooler: keras.layers.Dense, path: Any) -> None:
    """Draw the weights of a new pooler, and warn."""
    pooler.kernel.assign(pooler.kernel_initializer(pooler.kernel.shape))
    takes_mode = "pooling_mode" in argument_names(cls, keras.Model)
    hint = ' pooling_mode="mean" needs none.' if takes_mode else ""
    warnings.warn(
        f"{path} has no pooler: the {cls.__name__} starts with a new one with "
        f"random weights, which has to be trained.{hint}",
        # The caller of `from_checkpoint`.
        stacklevel=4,
    )


def warn_of_new_head(checkpoint: Checkpoint, head: str, wanted: Any) -> None:
    """Warn that a head of the checkpoint has another number of classes."""
    warnings.warn(
        f"The {head} of {checkpoint.path} has {checkpoint.num_classes(head)} classes, "
        f"not {wanted}: the model starts with a new head with random weights.",
        # The caller of `from_checkpoint`.
        stacklevel=5,
    )


def warn_of_unnamed_outputs(
    checkpoint: Checkpoint, kind: str, names: list, argument: str
) -> None:
    """Warn that names were given to the outputs of a head that has none.

    Args:
        checkpoint: the checkpoint with the head.
        kind: string, what the names are: "classes" or "tags".
        names: list, in the order of the outputs.
        argument: string, the argument that takes another order.
    """
    warnings.warn(
        f"{checkpoint.path} does not name its {kind}. Its {len(names)} outputs are "
        f"read as {listed(names, 10)}. Pass `{argument}=` if this is another order.",
        # The caller of `from_checkpoint`.
        stacklevel=5,
    )


def _has_same_labels(model: Any, checkpoint: Checkpoint) -> bool:
    """Return whether the heads of a model have their meaning in the checkpoint."""
    for head in model.heads:
        config, numbers = checkpoint.head_config(head), checkpoint.num_classes(head)
        for field in {"labels", "tags"} & config.keys():
            # The numbers are the names of classes without any.
            names = (
                x or range(numbers) for x in (config[field], getattr(model, field))
            )
            if len({tuple(sorted(map(str, row))) for row in names}) > 1:
                return False
    return type(model).has_heads_in(checkpoint)


# === Presets and checkpoints by name ===


def _local(preset):
    """Return the directory of a preset on the Hub or of a bundled checkpoint."""
    preset = os.fspath(preset)
    if preset.startswith(HUB):
        return str(fetch_from_hub(preset))
    return str(find_bundled(preset) or preset)


def _is_checkpoint(preset, class_, load_weights):
    """Return whether a name is that of a checkpoint, which KerasHub does not read."""
    if not os.path.exists(preset):
        return preset in RELEASES
    config = pathlib.Path(preset, "config.json")
    fields = read_config(config) if config.exists() else {}
    if fields.get("registered_name", "keras_hub>").startswith("keras_hub>"):
        return True
    # KerasHub would not start a pooler, which the task may read.
    has_pooler = fields["config"].get("pooler", True)
    return load_weights and not has_pooler and not _holds(preset, class_)


def _holds(preset: str, class_: type[keras.Model]) -> bool:
    """Return whether a preset has a task of a class."""
    task = pathlib.Path(preset, "task.json")
    if not task.exists():
        return False
    stored = keras.saving.get_registered_object(read_config(task)["registered_name"])
    return stored is None or issubclass(stored, class_)


def check_fits(preprocessor: Any, backbone: Any) -> None:
    """Raise unless a backbone has the positions and vocabulary of a preprocessor."""
    tokenizer = getattr(preprocessor, "tokenizer", None)
    if tokenizer is None:
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
