"""The forms of a checkpoint on disk.

Each module has `find`, for the paths in a folder that it can open, `files_of`, which
raises if a file of weights is missing, and `open_files`.
"""

import dataclasses
import pathlib
from collections.abc import Callable
from typing import Any

import keras

from albert_tf.checkpoints.config import tokenizer_arguments
from albert_tf.checkpoints.layout import Layout
from albert_tf.checkpoints.releases import Release
from albert_tf.tokenizers import load_tokenizer
from albert_tf.tokenizers.text_tokenizer import TextTokenizer


@dataclasses.dataclass(frozen=True)
class Files:
    """The open files of a checkpoint, or a Keras model."""

    path: Any  # For messages.
    folders: list[pathlib.Path]  # Where the config and the vocabulary may lie.
    shapes: dict[str, list[int]]  # By the names in the file.
    read: Callable[[str], Any]  # Returns a tensor by its name in the file.
    layouts: tuple[Layout, ...]  # The candidates; the names decide.
    # Raises if the files of the tensors have changed since they were opened.
    check_unchanged: Callable[[], None] = lambda: None
    # The sizes in the config that the weights were written with, if they are known.
    stored_config: dict[str, Any] = dataclasses.field(default_factory=dict)
    release: Release | None = None  # The one with the same `.index` file.
    # Glob patterns of the files beside the weights.
    config_patterns: tuple[str, ...] = ()
    vocabulary_patterns: tuple[str, ...] = ("vocab*.txt", "*.model")
    # From the config and its name, the arguments of the tokenizer.
    tokenizer_settings: Callable[..., dict[str, Any]] = tokenizer_arguments
    load_tokenizer: Callable[..., TextTokenizer] = load_tokenizer
    # Set for a Keras model only: the model, its config and its tokenizer.
    model: keras.Model | None = None
    config: dict[str, Any] | None = None
    tokenizer: Callable[[], TextTokenizer | None] = lambda: None
