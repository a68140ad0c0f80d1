"""The forms of a checkpoint on disk, a module per form, and their base class."""

from __future__ import annotations

import importlib
import os
import pathlib
import types
from typing import Any

import keras

from albert_tf.checkpoints.config import read_config
from albert_tf.checkpoints.heads import read_head
from albert_tf.checkpoints.layout import CheckpointError, Layout
from albert_tf.checkpoints.releases import Release
from albert_tf.tokenizers import load_tokenizer
from albert_tf.tokenizers.text_tokenizer import TextTokenizer
from albert_tf_lite.errors import MissingPackageError


def import_package(
    name: str, path: Any, package: str = "'albert-tf[hf]'"
) -> types.ModuleType:
    """Import an optional package that a path needs."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingPackageError(
            f"{path} needs {name}. Run: pip install {package}"
        ) from error


class Source:
    """An opened checkpoint: tensors by name, and the files beside them."""

    layouts: tuple[Layout, ...] = ()  # The layouts that the form may have.
    # Glob patterns of the files beside the weights.
    config_patterns: tuple[str, ...] = ()
    vocabulary_patterns: tuple[str, ...] = ("vocab*.txt", "*.model")
    path: Any  # Path of the checkpoint, for messages.
    folders: list[pathlib.Path]  # Where the config and the vocabulary may lie.
    shapes: dict[str, list[int]]  # By the names in the file.
    release: Release | None = None  # The release that the files belong to.
    model: keras.Model | None = None  # The Keras model that holds the tensors.
    is_ours = True  # False if `model` is one of KerasHub's.
    unpacked: Any = None  # The temporary folder of an archive, removed with this.

    def __init__(self, path: Any) -> None:
        raise NotImplementedError

    @classmethod
    def find(cls, folder: pathlib.Path) -> list[pathlib.Path]:
        """Return the paths in a folder that this form can open."""
        raise NotImplementedError

    def read(self, name: str) -> Any:
        """Return a tensor by its name in the file."""
        raise NotImplementedError

    def find_layout(self) -> Layout:
        """Return the `Layout` whose names the file has."""
        for layout in self.layouts:
            if layout.matches(self.shapes):
                return layout
        raise CheckpointError(
            f"{self.path} has no known ALBERT layout. Expected variables such as "
            + ", ".join(f"{x.signature}... ({x.name})" for x in self.layouts)
            + f". Found: {sorted(self.shapes)[:5]} (of {len(self.shapes)})."
        )

    def find_config(
        self, config: str | os.PathLike | dict | None = None
    ) -> tuple[str, dict[str, Any]]:
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

    def head_config(self, part: str, config: dict, name: str) -> dict[str, Any]:
        """Return arguments of the task that a head belongs to; see `read_head`."""
        return read_head(part, config, name)

    def lowercase(self, config: dict) -> bool:
        """Return whether the tokenizer lower-cases, by default `True`."""
        return config.get("do_lower_case", True)

    @property
    def vocabulary(self) -> Any:
        """The path of the vocabulary, or `None`."""
        return self._find_beside(self.vocabulary_patterns, "vocabulary")

    def tokenizer(self, lowercase: bool) -> TextTokenizer | None:
        """Return the tokenizer of the vocabulary, `None` without one."""
        path = self.vocabulary
        return None if path is None else load_tokenizer(path, lowercase=lowercase)

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
