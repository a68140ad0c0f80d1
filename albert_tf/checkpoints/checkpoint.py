"""An opened checkpoint of any form, and loading the encoder of one."""

from __future__ import annotations

import math
import os
import pathlib
import warnings
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import keras

from albert_tf.backbone import AlbertBackbone
from albert_tf.checkpoints.config import backbone_config, check_sizes, read_config
from albert_tf.checkpoints.download import fetch_from_hub, is_on_hub
from albert_tf.checkpoints.heads import HEADS, heads_in
from albert_tf.checkpoints.layout import ENCODER_PARTS, CheckpointError, float32_of
from albert_tf.checkpoints.opening import open_source
from albert_tf.checkpoints.plan import (
    check_plan,
    check_tied,
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
    """An opened checkpoint: its layout, its config, and its tensors.

    Args:
        path: see `load_checkpoint`.
        config: optional path, or dict of config fields. By default the config
            beside the checkpoint.
        progress: optional callable, called with the weights read and the total while
            a model is filled.

    Attributes:
        source: the opened files, an object of one of the `formats`.
        path: path of the checkpoint, for messages.
        layout: the `Layout` found from its variable names.
        config: dict, the fields of the config file.
        arguments: dict, the same as arguments of `AlbertBackbone`.
        shapes: dict of variable name, as in the tables, to list of ints.
        release: the `Release` with the same `.index` file, or `None`.

    Raises:
        FileNotFoundError: if a file is missing.
        CheckpointError: if the layout is unknown, or the config and the tensors
            have different sizes.
    """

    def __init__(
        self,
        path: CheckpointPath,
        config: Config | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.progress = progress or (lambda done, total: None)
        self.source = open_source(path)
        self.path = self.source.path
        self.release = self.source.release
        self.layout = self.source.find_layout()
        self._file_names = self.layout.table_names(self.source.shapes, self.path)
        self.shapes = {
            name: self.source.shapes[in_file]
            for name, in_file in self._file_names.items()
        }
        self.config_source, self.config = self.source.find_config(config)
        self.arguments = backbone_config(self.layout, self.config, self.config_source)
        check_sizes(
            self.layout, self.config, self.shapes, self.path, self.config_source
        )
        if config is None and self.release is not None:
            self._correct_config(self.release)

    def _correct_config(self, release: Release) -> None:
        """Correct fields of a released config that no tensor could contradict.

        albert_tiny_zh_google was released with a config of one layer; it has four.
        """
        wrong = {
            name: value
            for name, value in release.arguments.items()
            if self.arguments[name] != value and "dropout" not in name
        }
        if wrong:
            found = {name: self.arguments[name] for name in wrong}
            warnings.warn(
                f"{self.config_source} has {found}, but {release.name}, to which the "
                f"tensors belong, is loaded with {wrong}. Pass `config=` to change it.",
                stacklevel=2,
            )
            self.arguments.update(wrong)

    @property
    def vocabulary(self) -> Any:
        """The path of the vocabulary, or `None`."""
        return self.source.vocabulary

    def tokenizer(
        self, lowercase: bool | None = None, vocabulary: Any = None
    ) -> TextTokenizer | None:
        """Return the tokenizer of the vocabulary, or `None` without one.

        Args:
            lowercase: optional bool. By default the setting of the checkpoint, or
                `True` as in all releases.
            vocabulary: optional, see `load_tokenizer`. By default the one beside the
                checkpoint.

        Raises:
            CheckpointError: if the vocabulary does not have the size of the model.
        """
        if lowercase is None:
            lowercase = self.source.lowercase(self.config)
        if vocabulary is None:
            tokenizer, name = self.source.tokenizer(lowercase), self.vocabulary
        else:
            tokenizer, name = load_tokenizer(vocabulary, lowercase), vocabulary
        if tokenizer is not None:
            self.check_vocabulary(tokenizer, name)
        return tokenizer

    def check_vocabulary(self, tokenizer: TextTokenizer, name: Any = None) -> None:
        """Check that a tokenizer has as many tokens as the model."""
        found, expected = tokenizer.vocabulary_size(), self.arguments["vocabulary_size"]
        if found != expected:
            name = f" {name}" if isinstance(name, (str, os.PathLike)) else ""
            raise CheckpointError(
                f"The vocabulary{name} has {found} tokens, the model {expected}. It is "
                "cut short or belongs to another model: use the one that the model was "
                "trained with."
            )

    def head_config(self, part: str) -> dict[str, Any]:
        """Return the arguments of the task of a head, an empty dict without it."""
        classes = self.num_classes(part)
        if part not in self.heads:
            return {}
        arguments = self.source.head_config(part, self.config, self.config_source)
        labels = arguments.get("labels") or arguments.get("tags")
        if labels is not None and len(labels) != classes:
            raise CheckpointError(
                f"{self.config_source} names {len(labels)} classes, but the head of "
                f"{self.path} has {classes}."
            )
        return arguments

    @property
    def heads(self) -> list[str]:
        """The heads whose every tensor is in the file, names of `HEADS`."""
        return heads_in(self.layout, self.shapes.keys(), self.config)

    @property
    def has_pooler(self) -> bool:
        return self.shapes.keys() >= set(self.layout.names(["pooler"]))

    def num_classes(self, part: str) -> int:
        """Return the number of classes of a head; 0 without it, or if it has none."""
        self._check_complete(part)
        if part not in self.heads or not HEADS[part].has_classes:
            return 0
        return math.prod(self.shapes[self.layout.names([part])[-1]])

    @property
    def parts(self) -> list[str]:
        """The parts of a model that this checkpoint holds, heads last."""
        for part in ("pooler", *HEADS):
            self._check_complete(part)
        pooler = ["pooler"] if self.has_pooler else []
        return [*ENCODER_PARTS, *pooler, *self.heads]

    def _check_complete(self, part: str) -> None:
        names = self.layout.names([part])
        missing = [name for name in names if name not in self.shapes]
        if 0 < len(missing) < len(names):
            raise CheckpointError(
                f"{self.path} has a part of the {part} only: it lacks {missing}."
            )

    def build_backbone(self, dtype: Any = None, **kwargs: Any) -> AlbertBackbone:
        """Return an `AlbertBackbone` of this checkpoint's sizes, filled with zeros."""
        with without_initializing():
            return AlbertBackbone(**{**self.arguments, **kwargs}, dtype=dtype)

    def load_into(self, model: keras.Model, new_heads: Iterable[str] = ()) -> None:
        """Fill every weight of a backbone or task, except those of `new_heads`.

        Raises:
            CheckpointError: if the file and the model differ, before any weight has
                changed, or if the data of a tensor are damaged.
        """
        layout = self.layout
        parts = [part for part in parts_of(model) if part not in new_heads]
        if unplaced := [part for part in parts if part not in layout.weights]:
            raise CheckpointError(
                f"{self.path} has no {', '.join(unplaced)}: the "
                f'"{layout.name}" layout has no place for it.'
            )
        plan = plan_weights(layout, model, parts)
        check_plan(plan, layout, self.shapes, self.path, self.config_source)
        if "masked_lm_head" in parts:
            check_tied(layout, self.shapes, self.read, self.path)
        for done, (weight, tensors) in enumerate(plan, start=1):
            weight.assign(tensors.to_weight([self.read(x) for x in tensors.names]))
            self.progress(done, len(plan))

    def read(self, name: str) -> Any:
        """Return a tensor by its name in the tables, an array of finite float32."""
        return float32_of(self.source.read(self._file_names[name]), name, self.path)


def open_checkpoint(
    path: CheckpointPath | Checkpoint,
    config: Config | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Checkpoint:
    """Open a checkpoint, see `Checkpoint`; an open one is returned.

    Raises:
        FileNotFoundError, CheckpointError: as `load_checkpoint`.

    Example:
    ```python
    checkpoint = albert_tf.checkpoints.open_checkpoint("examples/albert_micro_zh")
    checkpoint.arguments["num_layers"]
    ```
    """
    if isinstance(path, Checkpoint):
        return path
    return Checkpoint(path, config=config, progress=progress)


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
        path: string: a directory, an archive (.tar.gz, .zip), a prefix, or any
            file of the checkpoint; the name of a release such as
            `"albert_tiny_zh"` (see `albert_tf.checkpoints.RELEASES`), which is
            downloaded once; `"hf://user/name"` on the Hugging Face Hub; or a Keras
            model.
        config: optional path of the config file, or dict of its fields. By
            default the one beside the checkpoint.
        dtype: optional string or `keras.DTypePolicy` to compute in.
        pooler: bool. Pass `False` for a checkpoint without pooler: the model then has
            no `pooled_output`.

    Returns:
        An `AlbertBackbone` whose every weight came from the file.

    Raises:
        FileNotFoundError: if a file of the checkpoint or its config is missing.
        CheckpointError: if the file is damaged, of an unknown layout, of other
            sizes than its config, or lacks a weight of the model or has one
            that the model has no place for.
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


def load_named(
    class_: type[keras.Model], preset: str, load_weights: bool, **kwargs: Any
) -> keras.Model | None:
    """Build a model for `from_preset`, or return `None` if KerasHub reads it."""
    if is_on_hub(preset):
        preset = str(fetch_from_hub(preset))
        config = pathlib.Path(preset, "config.json")
        fields = read_config(config) if config.exists() else {}
        if str(fields.get("registered_name")).startswith("albert_tf>"):
            return class_.from_preset(preset, load_weights, **kwargs)
    elif not _is_checkpoint(preset):
        return None
    if not load_weights:
        if not issubclass(class_, AlbertBackbone):
            raise AlbertError(
                "Build a task with random weights on a backbone: "
                "AlbertBackbone.from_preset(..., load_weights=False)."
            )
        return class_(**{**open_checkpoint(preset).arguments, **kwargs})
    if issubclass(class_, AlbertBackbone):
        return load_checkpoint(preset, **kwargs)
    return class_.from_checkpoint(preset, **kwargs)


def _is_checkpoint(preset: str) -> bool:
    path = pathlib.Path(preset)
    if path.is_dir():
        return not (path / "config.json").exists()
    return path.is_file() or preset in RELEASES
