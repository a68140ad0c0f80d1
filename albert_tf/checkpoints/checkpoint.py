"""An open checkpoint: its layout, config, heads, tokenizer and tensors."""

import copy
import math
import os
import pathlib
import warnings
from collections.abc import Iterable
from typing import Any, TypeAlias

import keras

from albert_tf.backbone import AlbertBackbone
from albert_tf.checkpoints.config import backbone_config, check_groups, read_config
from albert_tf.checkpoints.formats import Files
from albert_tf.checkpoints.heads import heads_in, missing_in, read_head
from albert_tf.checkpoints.layout import (
    ENCODER_PARTS,
    CheckpointError,
    Layout,
    float32_of,
    name_damage,
)
from albert_tf.checkpoints.named_heads import (
    head_prefix,
    read_named_heads,
    select_config,
    select_names,
)
from albert_tf.checkpoints.plan import (
    check_plan,
    parts_of,
    plan_weights,
    without_initializing,
)
from albert_tf.checkpoints.releases import Release
from albert_tf.tokenizers.checks import check_bytes, check_vocabulary
from albert_tf.tokenizers.text_tokenizer import TextTokenizer
from albert_tf_lite.errors import AlbertError, listed

# Errors by values of other types in a config.
_WRONG_VALUES = (TypeError, ValueError, LookupError, AttributeError)
Config: TypeAlias = str | os.PathLike | dict[str, Any]
Vocabulary: TypeAlias = TextTokenizer | str | os.PathLike | bytes | list[str]


class Checkpoint:
    """An open checkpoint, as `open_checkpoint` returns it.

    Attributes:
        name: string, what the user calls it.
        head: optional string, the named head that was chosen; its tensors and config
            fields are those of the only head of this checkpoint.
        named_heads: list of strings, the heads to choose from by `with_head`.
    """

    def __init__(
        self,
        files: Files,
        config: Config | None = None,
        name: str | os.PathLike | None = None,
    ) -> None:
        self.files = files
        self.name = str(files.path if name is None else name)
        self.folders = files.folders
        self.release = files.release
        layout = self.layout = _find_layout(files)
        self._all_names = layout.table_names(files.shapes, files.path)
        # The name of the config for messages, and its fields.
        self.config_source, self._whole_config = _find_config(files, config)
        self._head_configs = read_named_heads(
            layout, self._whole_config, self.config_source
        )
        # The model of albert_tf that holds the tensors.
        self.model = files.model if layout.name == "keras" else None
        self._select(None)
        if config is None:
            self._check_config()
            if self.release is not None:
                self._correct_config(self.release)

    def with_head(self, name: str) -> "Checkpoint":
        """Return this checkpoint with a named head as its only head.

        Raises:
            CheckpointError: if there is no such head, or it is incomplete.
        """
        if name not in self._head_configs:
            raise CheckpointError(
                f"{self.name} has no head named {name!r:.80}. Its named heads: "
                f"{', '.join(self._head_configs) or 'none'}."
            )
        view = copy.copy(self)
        view._select(name)
        if not view.heads:
            prefix = head_prefix(self.layout, name)
            tensors = sorted(x for x in self._all_names if x.startswith(prefix))
            others = [x for x in self._head_configs if x != name]
            raise CheckpointError(
                f"The head {name} of {self.name} is incomplete: {self.config_source} "
                f"describes {view.config.get('architectures', 'a classifier')}, and "
                f"the file has {listed(tensors)}. Other heads: "
                f"{', '.join(others) or 'none'}."
            )
        return view

    def views(self) -> dict[str, "Checkpoint"]:
        """Return this checkpoint with each complete named head, by its name."""
        views = {}
        for name in self.named_heads:
            try:
                views[name] = self.with_head(name)
            except CheckpointError as error:
                warnings.warn(f"{error} It is left out.", stacklevel=3)
        return views

    def _select(self, head: str | None) -> None:
        """Choose a named head, or with `None` the heads without a name."""
        files, layout, names = self.files, self.layout, self._head_configs
        self.head = head
        self.named_heads = list(names) if head is None else []
        # For messages.
        self.path = files.path if head is None else f"{files.path}:{head}"
        self._file_names = select_names(layout, self._all_names, names, head)
        # By the names in the tables.
        self.shapes = {x: files.shapes[y] for x, y in self._file_names.items()}
        self.config = select_config(self._whole_config, self._head_configs, head)
        # The same as arguments of `AlbertBackbone`.
        self.arguments = backbone_config(layout, self.config, self.config_source)
        check_groups(self.arguments, len(files.shapes), self.config_source)
        with name_damage(self.config_source, *_WRONG_VALUES):
            # The complete heads, names of `HEADS`.
            self.heads = heads_in(layout, self.shapes, self.config)

    def read(self, name: str) -> Any:
        """Return a tensor by its name in the tables, an array of finite float32."""
        return float32_of(self.read_stored(name), name, self.path)

    def read_stored(self, name: str) -> Any:
        """Return a tensor by its name in the tables, as it is in the file."""
        tensor = self.files.read(self._file_names[name])
        # Tensors of two states of a training would fit, too.
        self.files.check_unchanged()
        return tensor

    def _check_config(self) -> None:
        """Raise if the weights were written with a config of another model."""
        stored = {**self.config, **self.files.stored_config}
        written = backbone_config(self.layout, stored, str(self.path))
        differ = [
            f"{name}={self.arguments[name]!r} (the weights have {value!r})"
            for name, value in written.items()
            if self.arguments[name] != value and "dropout" not in name
        ]
        if differ:
            raise CheckpointError(
                f"{self.config_source} belongs to another model than {self.path}: "
                f"{', '.join(differ)}. Copy both files of one model, or pass the "
                "config with `config=` if the change is wanted."
            )

    def _correct_config(self, release: Release) -> None:
        """Correct fields of a released config that no tensor could contradict."""
        # albert_tiny_zh_google was released with a config of one layer; it has four.
        for name, value in release.arguments.items():
            stored = self.arguments[name]
            if stored != value and "dropout" not in name:
                self.arguments[name] = value
                warnings.warn(
                    f"{self.config_source} has {name}={stored}, but {release.name} has "
                    f"{value}, which is used. Pass `config=` to change it.",
                    stacklevel=6,
                )

    # === Tokenizer ===

    def tokenizer(
        self, lowercase: bool | None = None, vocabulary: Vocabulary | None = None
    ) -> TextTokenizer | None:
        """Return the tokenizer of the vocabulary, or `None` without one.

        Args:
            lowercase: optional bool. By default the setting of the checkpoint, or
                `True` as in all releases.
            vocabulary: optional tokenizer, path of a vocabulary, or list of tokens. By
                default the vocabulary beside the checkpoint.
        """
        size = self.arguments["vocabulary_size"]
        if isinstance(vocabulary, TextTokenizer):
            check_vocabulary(vocabulary, size, "the given tokenizer")
            return vocabulary
        stored = self.files.tokenizer()
        if stored is not None and vocabulary is None and stored.pad_token_id is None:
            raise CheckpointError(
                f"{self.path} has a tokenizer without its vocabulary. Copy it again, "
                "or pass the file with `vocabulary=`."
            )
        if stored is None:
            settings = self.files.tokenizer_settings(self.config, self.config_source)
        else:
            settings = stored.get_settings()
        if lowercase is not None:
            settings["lowercase"] = lowercase
        source = self.vocabulary if vocabulary is None else vocabulary
        if source is None:
            return None
        # Errors about an argument are not about the checkpoint.
        damage = (AlbertError,) if vocabulary is None else ()
        with name_damage(self.path, *damage):
            if stored is not None and vocabulary is None:
                tokenizer = stored.with_settings(**settings)
            else:
                check_bytes(source, size)
                tokenizer = self.files.load_tokenizer(source, **settings)
        name = "the given vocabulary"
        if isinstance(source, (str, os.PathLike)):
            name = os.fspath(source)
        check_vocabulary(tokenizer, size, name)
        return tokenizer

    @property
    def vocabulary(self) -> str | os.PathLike | None:
        """The path of the vocabulary, or of the Keras model that has it, or `None`."""
        if self.files.tokenizer() is not None:
            return self.path
        return _find_beside(self.files, self.files.vocabulary_patterns, "vocabulary")

    # === Parts and heads ===

    @property
    def has_pooler(self) -> bool:
        return self._has("pooler")

    @property
    def parts(self) -> list[str]:
        """The parts of a model that this checkpoint holds, heads last."""
        parts = list(ENCODER_PARTS)
        if not self._lacks("pooler"):
            parts.append("pooler")
        return parts + self.heads

    @property
    def incomplete_heads(self) -> dict[str, list[str]]:
        """The tensors that the file lacks of each head of which it has a part."""
        return missing_in(self.layout, self.shapes)

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
            arguments = read_head(part, self.config, self.config_source)
        if self.files.model is None:
            return arguments
        # A Keras model has them as attributes.
        return {
            name: getattr(self.files.model, name, default)
            for name, default in arguments.items()
        }

    def _has(self, part: str) -> bool:
        """Return whether the pooler or a head is complete; raise if it is in part."""
        missing = self._lacks(part)
        if 0 < len(missing) < len(self.layout.names([part])):
            raise CheckpointError(
                f"{self.path} has only a part of the {part}: it lacks {missing}."
            )
        return not missing if part == "pooler" else part in self.heads

    def _lacks(self, part: str) -> list[str]:
        """Return the tensors of the pooler or a head that the file lacks."""
        names = self.layout.names([part])
        return [name for name in names if name not in self.shapes]

    # === Loading ===

    def build_backbone(
        self, dtype: str | keras.DTypePolicy | None = None, **kwargs: Any
    ) -> AlbertBackbone:
        """Return an `AlbertBackbone` of this checkpoint's sizes, filled with zeros."""
        stored = sum(map(math.prod, self.files.shapes.values()))
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
        for part, missing in self.incomplete_heads.items():
            if part not in parts:
                warnings.warn(
                    f"{self.path} has only a part of the {part}: it lacks {missing}. "
                    "The head is left out.",
                    stacklevel=4,
                )
        plan = plan_weights(self.layout, model, parts)
        check_plan(plan, self.layout, self.shapes, self.path, self.config_source)
        for weight, tensors in plan:
            weight.assign(tensors.to_weight([self.read(x) for x in tensors.names]))


# === Layout and config ===


def _find_layout(files: Files) -> Layout:
    """Return the `Layout` whose names the files have."""
    for layout in files.layouts:
        if any(layout.signature in name for name in files.shapes):
            return layout
    known = ", ".join(f"{x.signature}... ({x.name})" for x in files.layouts)
    raise CheckpointError(
        f"{files.path} has no known ALBERT layout. Expected variables such as "
        f"{known}. Found: {listed(sorted(files.shapes))}"
    )


def _find_config(files: Files, config: Config | None) -> tuple[str, dict[str, Any]]:
    """Return the name of the config for messages, and its fields."""
    if files.config is not None:
        if config is not None:
            raise AlbertError(
                f"{files.path} is a Keras model, which has its own config. Leave out "
                f"`config=`. Received: {config}"
            )
        return f"the config of {files.path}", files.config
    if isinstance(config, dict):
        return "the given config", config
    path = config or _find_beside(files, files.config_patterns, "config")
    if path is None:
        raise FileNotFoundError(
            f"There is no config beside {files.path}. Expected "
            f"{' or '.join(files.config_patterns)}. Put it there or pass it with "
            "`config=`."
        )
    return str(path), read_config(path)


def _find_beside(
    files: Files, patterns: tuple[str, ...], kind: str
) -> pathlib.Path | None:
    """Return the only file that matches the first pattern with a match."""
    for pattern in patterns:
        found = (x for folder in files.folders for x in folder.glob(pattern))
        paths = sorted(filter(pathlib.Path.is_file, found))
        if len(paths) > 1:
            raise CheckpointError(
                f"{paths[0].parent} holds several {kind} files: "
                f"{[file.name for file in paths]}. Choose one with `{kind}=`."
            )
        if paths:
            return paths[0]
    return None
