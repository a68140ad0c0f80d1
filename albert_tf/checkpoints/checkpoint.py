"""Checkpoints of every form: opening, inspecting, and loading into models."""

from __future__ import annotations

import dataclasses
import math
import os
import pathlib
import warnings
from collections.abc import Iterable
from typing import Any, TypeAlias

import keras

from albert_tf.backbone import AlbertBackbone
from albert_tf.checkpoints.config import backbone_config, read_config
from albert_tf.checkpoints.download import HUB, fetch_from_hub
from albert_tf.checkpoints.heads import HEADS, heads_in
from albert_tf.checkpoints.layout import ENCODER_PARTS, CheckpointError, float32_of
from albert_tf.checkpoints.opening import open_source
from albert_tf.checkpoints.plan import (
    check_plan,
    parts_of,
    plan_weights,
    without_initializing,
)
from albert_tf.checkpoints.releases import RELEASES, Release
from albert_tf.tokenizers import load_tokenizer
from albert_tf.tokenizers.text_tokenizer import TextTokenizer
from albert_tf_lite.errors import AlbertError

CheckpointPath: TypeAlias = str | os.PathLike | keras.Model
Config: TypeAlias = str | os.PathLike | dict[str, Any]


class Checkpoint:
    """An opened checkpoint, as `open_checkpoint` returns it.

    Attributes:
        source: the opened files, an object of one of the `formats`.
        path: path of the checkpoint, for messages.
        layout: the `Layout` found from its variable names.
        config: dict, the fields of the config file.
        arguments: dict, the same as arguments of `AlbertBackbone`.
        shapes: dict of variable name, as in the tables, to list of ints.
        heads: the complete heads, names of `HEADS`.
        release: the `Release` with the same `.index` file, or `None`.
    """

    def __init__(self, path: CheckpointPath, config: Config | None = None) -> None:
        self.source = source = open_source(path)
        self.path, self.release = source.path, source.release
        self.layout = layout = source.find_layout()
        self._file_names = layout.table_names(source.shapes, self.path)
        self.shapes = {x: source.shapes[y] for x, y in self._file_names.items()}
        self.config_source, self.config = source.find_config(config)
        self.arguments = backbone_config(layout, self.config, self.config_source)
        self.heads = heads_in(layout, self.shapes, self.config)
        if config is None and self.release is not None:
            self._correct_config(self.release)

    def _correct_config(self, release: Release) -> None:
        """Correct fields of a released config that no tensor could contradict."""
        # albert_tiny_zh_google was released with a config of one layer; it has four.
        wrong = {
            name: value
            for name, value in release.arguments.items()
            if self.arguments[name] != value and "dropout" not in name
        }
        if wrong:
            found = {name: self.arguments[name] for name in wrong}
            warnings.warn(
                f"{self.config_source} has {found}, but {release.name} has {wrong}, "
                "which is used. Pass `config=` to change it.",
                stacklevel=2,
            )
            self.arguments.update(wrong)

    def tokenizer(
        self, lowercase: bool | None = None, vocabulary: Any = None
    ) -> TextTokenizer | None:
        """Return the tokenizer of the vocabulary, or `None` without one.

        Args:
            lowercase: optional bool. By default the setting of the checkpoint, or
                `True` as in all releases.
            vocabulary: optional tokenizer, or argument of `load_tokenizer`. By default
                the vocabulary beside the checkpoint.
        """
        if lowercase is None:
            lowercase = self.source.lowercase(self.config)
        if vocabulary is None:
            vocabulary = self.source.tokenizer(lowercase)
        elif not isinstance(vocabulary, TextTokenizer):
            vocabulary = load_tokenizer(vocabulary, lowercase)
        expected = self.arguments["vocabulary_size"]
        if vocabulary is not None and vocabulary.vocabulary_size() != expected:
            raise CheckpointError(
                f"The vocabulary has {vocabulary.vocabulary_size()} tokens, the model "
                f"{expected} ({self.path}). The vocabulary is truncated or belongs to "
                "another model."
            )
        return vocabulary

    @property
    def has_pooler(self) -> bool:
        return self.shapes.keys() >= set(self.layout.names(["pooler"]))

    @property
    def parts(self) -> list[str]:
        """The parts of a model that this checkpoint holds, heads last."""
        for part in ("pooler", *HEADS):
            self._check_complete(part)
        return [*ENCODER_PARTS, *["pooler"] * self.has_pooler, *self.heads]

    def num_classes(self, part: str) -> int:
        """Return the number of classes of a head; 0 without it, or if it has none."""
        self._check_complete(part)
        if part not in self.heads or not HEADS[part].has_classes:
            return 0
        return math.prod(self.shapes[self.layout.names([part])[-1]])

    def head_config(self, part: str) -> dict[str, Any]:
        """Return the arguments of the task of a head, an empty dict without it."""
        self._check_complete(part)
        if part not in self.heads:
            return {}
        return self.source.head_config(part, self.config, self.config_source)

    def _check_complete(self, part: str) -> None:
        names = self.layout.names([part])
        missing = [name for name in names if name not in self.shapes]
        if 0 < len(missing) < len(names):
            raise CheckpointError(
                f"{self.path} has only a part of the {part}: it lacks {missing}."
            )

    def build_backbone(self, dtype: Any = None, **kwargs: Any) -> AlbertBackbone:
        """Return an `AlbertBackbone` of this checkpoint's sizes, filled with zeros."""
        with without_initializing():
            return AlbertBackbone(**{**self.arguments, **kwargs}, dtype=dtype)

    def load_into(self, model: keras.Model, new_heads: Iterable[str] = ()) -> None:
        """Fill every weight of a backbone or task, except those of `new_heads`.

        If the file and the model differ, it raises before any weight has changed.
        """
        parts = [part for part in parts_of(model) if part not in new_heads]
        if unplaced := [part for part in parts if part not in self.layout.weights]:
            raise CheckpointError(
                f"{self.path} has no {', '.join(unplaced)}, because the "
                f'"{self.layout.name}" layout has no place for it.'
            )
        plan = plan_weights(self.layout, model, parts)
        check_plan(plan, self.layout, self.shapes, self.path, self.config_source)
        for weight, tensors in plan:
            weight.assign(tensors.to_weight([self.read(x) for x in tensors.names]))

    def read(self, name: str) -> Any:
        """Return a tensor by its name in the tables, an array of finite float32."""
        return float32_of(self.source.read(self._file_names[name]), name, self.path)


def open_checkpoint(
    path: CheckpointPath | Checkpoint, config: Config | None = None
) -> Checkpoint:
    """Open a checkpoint without building a model.

    Args:
        path, config: see `load_checkpoint`. An open checkpoint is returned.

    Returns:
        A `Checkpoint`.

    Raises:
        FileNotFoundError: if a file of the checkpoint or its config is missing.
        CheckpointError: if the index or the config is damaged or of unknown form.

    Example:
    ```python
    checkpoint = albert_tf.checkpoints.open_checkpoint("examples/albert_micro_zh")
    checkpoint.arguments["num_layers"]
    ```
    """
    return path if isinstance(path, Checkpoint) else Checkpoint(path, config)


def load_checkpoint(
    path: CheckpointPath,
    config: Config | None = None,
    dtype: str | keras.DTypePolicy | None = None,
    pooler: bool = True,
) -> AlbertBackbone:
    """Load the encoder of a checkpoint of any form.

    Reads TF1 checkpoints of google-research/albert and brightmart/albert_zh
    (post-LN and pre-LN) and Google's TF-Hub modules, Hugging Face directories,
    KerasHub's presets and models, and `.keras` files and presets of this package.
    The form is found from the files and variable names.

    Args:
        path: string: a directory, an archive (.tar.gz, .zip), a prefix, or any file of
            the checkpoint; the name of a release in `albert_tf.checkpoints.RELEASES`,
            which is downloaded once; `"hf://user/name"` on the Hugging Face Hub; or a
            Keras model.
        config: optional path of the config file, or dict of its fields. By
            default the one beside the checkpoint.
        dtype: optional string or `keras.DTypePolicy` to compute in.
        pooler: bool. Pass `False` for a checkpoint without pooler: the model then has
            no `pooled_output`.

    Returns:
        An `AlbertBackbone` whose every weight came from the file.

    Raises:
        FileNotFoundError: if a file of the checkpoint or its config is missing.
        CheckpointError: if the file is damaged, of an unknown layout, of other sizes
            than its config, or if a weight is missing or has no place in the model.
        OSError: if a release cannot be downloaded.

    Example:
    ```python
    backbone = albert_tf.load_checkpoint("examples/albert_micro_zh")
    ```
    """
    checkpoint = open_checkpoint(path, config=config)
    backbone = checkpoint.build_backbone(dtype=dtype, pooler=pooler)
    checkpoint.load_into(backbone)
    return backbone


@dataclasses.dataclass(frozen=True)
class CheckpointReport:
    """The result of `inspect_checkpoint`."""

    path: str  # The prefix of the checkpoint, or the file or folder.
    layout: str  # "google", "albert_zh", "huggingface", "kerashub" or "keras".
    config: dict[str, Any]  # The fields of the config file.
    release: str | None  # The release with the same `.index` file.
    vocabulary: str | None  # The path of the vocabulary.
    parameters: int  # Numbers in the encoder and the pooler.
    heads: list[str]  # The complete heads, by their names in `heads.HEADS`.
    num_classes: int | None  # The classes of a task's head.
    missing: list[str]  # Encoder tensors that the file lacks.
    damaged: list[str]  # Tensors that cannot be read or are not finite.
    unused: list[str]  # Tensors that belong to nothing known.
    optimizer_slots: list[str]
    other: list[str]  # The step counter, tied copies, heads of other tasks.


def inspect_checkpoint(
    path: CheckpointPath, config: Config | None = None
) -> CheckpointReport:
    """Report the contents of a checkpoint, without building the model.

    Reads the data of every weight to find damage.

    Args:
        path, config: see `load_checkpoint`.

    Returns:
        A `CheckpointReport`.

    Raises:
        FileNotFoundError, CheckpointError: as `open_checkpoint`.

    Example:
    ```python
    report = albert_tf.inspect_checkpoint("examples/albert_micro_zh")
    report.missing, report.parameters
    ```
    """
    checkpoint = open_checkpoint(path, config=config)
    shapes, heads, layout = checkpoint.shapes, checkpoint.heads, checkpoint.layout
    vocabulary = checkpoint.source.vocabulary
    backbone = layout.names((*ENCODER_PARTS, "pooler"), checkpoint.arguments)
    known = [*backbone, *layout.names(heads)]
    kinds = {x: layout.kind_of(x) for x in sorted(shapes) if x not in known}
    classes = (checkpoint.num_classes(part) for part in heads if HEADS[part].fields)
    slots = [name for name, kind in kinds.items() if kind == "optimizer"]
    others = [name for name, kind in kinds.items() if kind not in (None, "optimizer")]
    return CheckpointReport(
        path=str(checkpoint.path),
        layout=layout.name,
        config=dict(checkpoint.config),
        release=checkpoint.release.name if checkpoint.release else None,
        vocabulary=vocabulary and str(vocabulary),
        parameters=sum(math.prod(shapes.get(name, [0])) for name in backbone),
        heads=heads,
        num_classes=next(classes, None),
        missing=sorted(set(backbone) - set(shapes)),
        damaged=[x for x in known if x in shapes and _is_damaged(checkpoint, x)],
        unused=layout.unknown(shapes, backbone),
        optimizer_slots=slots,
        other=others,
    )


def _is_damaged(checkpoint: Checkpoint, name: str) -> bool:
    try:
        checkpoint.read(name)
    except CheckpointError:
        return True
    return False


def load_named(
    class_: type[keras.Model], preset: str, load_weights: bool, **kwargs: Any
) -> keras.Model | None:
    """Build a model for `from_preset`, or return `None` if KerasHub reads it."""
    preset = os.fspath(preset)
    path = pathlib.Path(preset)
    if preset.startswith(HUB):
        preset = str(fetch_from_hub(preset))
        config = pathlib.Path(preset, "config.json")
        fields = read_config(config) if config.exists() else {}
        if str(fields.get("registered_name")).startswith("albert_tf>"):
            return class_.from_preset(preset, load_weights, **kwargs)
    elif (
        (path / "config.json").exists() or not path.exists() and preset not in RELEASES
    ):
        return None
    if load_weights:
        is_backbone = issubclass(class_, AlbertBackbone)
        load = load_checkpoint if is_backbone else class_.from_checkpoint
        return load(preset, **kwargs)
    if not issubclass(class_, AlbertBackbone):
        raise AlbertError(
            "Build a task with random weights on a backbone: "
            "AlbertBackbone.from_preset(..., load_weights=False)."
        )
    return class_(**{**open_checkpoint(preset).arguments, **kwargs})
