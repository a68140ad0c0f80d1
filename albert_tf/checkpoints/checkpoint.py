"""An open checkpoint: its layout, config, heads, tokenizer and tensors."""

import math
import os
import pathlib
import warnings
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import keras

from albert_tf.backbone import AlbertBackbone
from albert_tf.checkpoints.config import (
    backbone_config,
    check_groups,
    read_config,
    tokenizer_arguments,
)
from albert_tf.checkpoints.heads import HEADS, heads_in, read_head
from albert_tf.checkpoints.layout import (
    ENCODER_PARTS,
    CheckpointError,
    Layout,
    float32_of,
    listed,
    name_damage,
)
from albert_tf.checkpoints.plan import (
    check_plan,
    parts_of,
    plan_weights,
    without_initializing,
)
from albert_tf.checkpoints.releases import Release
from albert_tf.tokenizers import load_tokenizer
from albert_tf.tokenizers.checks import check_bytes, check_vocabulary
from albert_tf.tokenizers.text_tokenizer import TextTokenizer

# Errors by values of other types in a config.
_WRONG_VALUES = (TypeError, ValueError, LookupError, AttributeError)
Config: TypeAlias = str | os.PathLike | dict[str, Any]


class Checkpoint:
    """An open checkpoint, as `open_checkpoint` returns it.

    Base class of the `formats`. Each of them opens its files in `__init__`, then calls
    that of this class, and has `find`, for the paths in a folder that it can open.
    """

    layouts: tuple[Layout, ...] = ()  # The layouts that the form may have.
    # Glob patterns of the files beside the weights.
    config_patterns: tuple[str, ...] = ()
    vocabulary_patterns: tuple[str, ...] = ("vocab*.txt", "*.model")
    path: Any  # For messages.
    folders: list[pathlib.Path]  # Where the config and the vocabulary may lie.
    file_shapes: dict[str, list[int]]  # By the names in the file.
    shapes: dict[str, list[int]]  # By the names in the tables.
    layout: Layout  # Found from the variable names.
    config: dict[str, Any]  # The fields of the config file.
    arguments: dict[str, Any]  # The same as arguments of `AlbertBackbone`.
    heads: list[str]  # The complete heads, names of `HEADS`.
    release: Release | None = None  # The one with the same `.index` file.
    # The model of albert_tf or KerasHub that holds the tensors.
    model: keras.Model | None = None
    keras_hub_model: keras.Model | None = None
    # Raises if the files of the tensors have changed since they were opened.
    check_unchanged: Callable[[], None] = staticmethod(lambda: None)
    unpacked: Any = None  # The temporary folder of an archive, removed with this.

    def __init__(self, config: Config | None = None):
        layout = self.layout = self.find_layout()
        self._file_names = layout.table_names(self.file_shapes, self.path)
        self.shapes = {x: self.file_shapes[y] for x, y in self._file_names.items()}
        self.config_source, self.config = self.find_config(config)
        self.arguments = backbone_config(layout, self.config, self.config_source)
        check_groups(self.arguments, len(self.file_shapes), self.config_source)
        with name_damage(self.config_source, *_WRONG_VALUES):
            self.heads = heads_in(layout, self.shapes, self.config)
        if config is None and self.release is not None:
            self._correct_config(self.release)

    def read_tensor(self, name: str) -> Any:
        """Return a tensor by its name in the file."""
        raise NotImplementedError

    def read(self, name: str) -> Any:
        """Return a tensor by its name in the tables, an array of finite float32."""
        return float32_of(self.read_stored(name), name, self.path)

    def read_stored(self, name: str) -> Any:
        """Return a tensor by its name in the tables, as it is in the file."""
        tensor = self.read_tensor(self._file_names[name])
        # Tensors of two states of a training would fit, too.
        self.check_unchanged()
        return tensor

    # === Layout and config ===

    def find_layout(self) -> Layout:
        """Return the `Layout` whose names the file has."""
        for layout in self.layouts:
            if any(layout.signature in name for name in self.file_shapes):
                return layout
        known = ", ".join(f"{x.signature}... ({x.name})" for x in self.layouts)
        raise CheckpointError(
            f"{self.path} has no known ALBERT layout. Expected variables such as "
            f"{known}. Found: {listed(sorted(self.file_shapes))}"
        )

    def find_config(self, config: Config | None) -> tuple[str, dict[str, Any]]:
        """Return the name of the config for messages, and its fields."""
        if isinstance(config, dict):
            return "the given config", config
        path = config or self._find_beside(self.config_patterns, "config")
        if path is None:
            raise FileNotFoundError(
                f"There is no config beside {self.path}. Expected "
                f"{' or '.join(self.config_patterns)}. Put it there or pass it with "
                "`config=`."
            )
        return str(path), read_config(path)

    def _find_beside(self, patterns: tuple[str, ...], kind: str) -> pathlib.Path | None:
        """Return the only file that matches the first pattern with a match."""
        for pattern in patterns:
            found = sorted(x for folder in self.folders for x in folder.glob(pattern))
            if len(found) > 1:
                raise CheckpointError(
                    f"{found[0].parent} holds several {kind} files: "
                    f"{[file.name for file in found]}. Choose one with `{kind}=`."
                )
            if found:
                return found[0]
        return None

    def _correct_config(self, release: Release) -> None:
        """Correct fields of a released config that no tensor could contradict."""
        # albert_tiny_zh_google was released with a config of one layer; it has four.
        for name, value in release.arguments.items():
            found = self.arguments[name]
            if found != value and "dropout" not in name:
                self.arguments[name] = value
                warnings.warn(
                    f"{self.config_source} has {name}={found}, but {release.name} has "
                    f"{value}, which is used. Pass `config=` to change it.",
                    stacklevel=6,
                )

    # === Tokenizer ===

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
        tokenizer, name = vocabulary, vocabulary
        if not isinstance(vocabulary, TextTokenizer):
            settings = self.tokenizer_settings
            if lowercase is not None:
                settings |= {"lowercase": lowercase}
            tokenizer = self.find_tokenizer(vocabulary, settings)
            name = self.vocabulary if vocabulary is None else "the given vocabulary"
            if isinstance(vocabulary, (str, os.PathLike)):
                name = vocabulary
        if tokenizer is not None:
            size = self.arguments["vocabulary_size"]
            check_vocabulary(tokenizer, size, name)
        return tokenizer

    @property
    def tokenizer_settings(self) -> dict[str, Any]:
        """The arguments of the tokenizer that the config has."""
        return tokenizer_arguments(self.config, self.config_source)

    @property
    def vocabulary(self) -> Any:
        """The path of the vocabulary, or `None`."""
        return self._find_beside(self.vocabulary_patterns, "vocabulary")

    def find_tokenizer(
        self, vocabulary: Any, settings: dict[str, Any]
    ) -> TextTokenizer | None:
        """Return the tokenizer of a vocabulary, by default that of the checkpoint."""
        vocabulary = self.vocabulary if vocabulary is None else vocabulary
        if vocabulary is None:
            return None
        check_bytes(vocabulary, self.arguments["vocabulary_size"])
        return load_tokenizer(vocabulary, **settings)

    # === Parts and heads ===

    @property
    def has_pooler(self) -> bool:
        return self._has("pooler")

    @property
    def parts(self) -> list[str]:
        """The parts of a model that this checkpoint holds, heads last."""
        for part in HEADS:
            self._has(part)
        return [*ENCODER_PARTS, *["pooler"] * self.has_pooler, *self.heads]

    def num_classes(self, part: str) -> int:
        """Return the number of classes of a head; 0 without it, or if it has none."""
        if not self._has(part) or part == "masked_lm_head":
            return 0
        return math.prod(self.shapes[self.layout.names([part])[-1]])

    def head_config(self, part: str) -> dict[str, Any]:
        """Return the arguments of the task of a head, an empty dict without it."""
        if not self._has(part):
            return {}
        with name_damage(self.config_source, *_WRONG_VALUES):
            return read_head(part, self.config, self.config_source)

    def _has(self, part: str) -> bool:
        """Return whether the pooler or a head is complete; raise if it is in part."""
        names = self.layout.names([part])
        missing = [name for name in names if name not in self.shapes]
        if 0 < len(missing) < len(names):
            raise CheckpointError(
                f"{self.path} has only a part of the {part}: it lacks {missing}."
            )
        return not missing if part == "pooler" else part in self.heads

    # === Loading ===

    def build_backbone(self, dtype: Any = None, **kwargs: Any) -> AlbertBackbone:
        """Return an `AlbertBackbone` of this checkpoint's sizes, filled with zeros."""
        stored = sum(map(math.prod, self.file_shapes.values()))
        with without_initializing(stored, self.path, self.config_source):
            return AlbertBackbone(**{**self.arguments, **kwargs}, dtype=dtype)

    def load_into(self, model: keras.Model, new_parts: Iterable[str] = ()) -> None:
        """Fill every weight of a backbone or task, except those of `new_parts`.

        If the file and the model differ, it raises before any weight has changed.
        """
        parts = [part for part in parts_of(model) if part not in new_parts]
        if unplaced := [part for part in parts if part not in self.layout.weights]:
            raise CheckpointError(
                f'{self.path} has the "{self.layout.name}" layout, which has no place '
                f"for {', '.join(unplaced)}."
            )
        plan = plan_weights(self.layout, model, parts)
        check_plan(plan, self.layout, self.shapes, self.path, self.config_source)
        for weight, tensors in plan:
            weight.assign(tensors.to_weight([self.read(x) for x in tensors.names]))
