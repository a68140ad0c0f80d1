"""Opening, inspecting, loading and saving checkpoints in any known layout."""

import dataclasses
import json
import pathlib
import re

import numpy as np

from albert_tf.checkpoints.albert_zh import ALBERT_ZH
from albert_tf.checkpoints.config import backbone_config, file_config, read_config
from albert_tf.checkpoints.files import (
    CONFIG_PATTERNS,
    VOCABULARY_PATTERNS,
    TensorFile,
    find_beside,
    find_prefix,
    write_tensors,
)
from albert_tf.checkpoints.google import GOOGLE
from albert_tf.checkpoints.layout import (
    BACKBONE_PARTS,
    HEAD_PARTS,
    CheckpointError,
    model_weights,
)
from albert_tf.files import complete_directory

LAYOUTS = {layout.name: layout for layout in (GOOGLE, ALBERT_ZH)}

# What a checkpoint may hold besides the weights of the encoder.
OTHER_TENSORS = {
    "optimizer": re.compile(
        r"/(adam|lamb|lars|adafactor)_(m|v)(_\d+)?$|/Adam(_\d+)?$|/Momentum$"
        r"|^beta\d_power(_\d+)?$"
    ),
    "step": re.compile(r"^global_step$"),
    "head": re.compile(r"^(cls|classifier|loss)/|^output_(weights|bias)$"),
}


def kind_of(name):
    """`"optimizer"`, `"step"`, `"head"`, or `None` for anything else."""
    for kind, pattern in OTHER_TENSORS.items():
        if pattern.search(name):
            return kind
    return None


class Checkpoint:
    """An opened TF1 checkpoint: its layout, its config, and its tensors.

    Args:
        path: string or path: a directory, a prefix, or any file of the
            checkpoint.
        config: optional path, or dict of config fields. By default the
            `albert_config*.json` or `bert_config*.json` beside the checkpoint.

    Attributes:
        prefix: path of the checkpoint, without ending.
        layout: the `Layout` found from its variable names.
        config: dict, the fields of the config file.
        arguments: dict, what they mean to `AlbertBackbone`.
        vocabulary: path of the `vocab*.txt` beside it, or `None`.

    Raises:
        FileNotFoundError: if a file is missing.
        CheckpointError: if the layout is unknown, or the config and the tensors
            have different sizes.
    """

    def __init__(self, path, config=None):
        self.prefix = find_prefix(path)
        self.file = TensorFile(self.prefix)
        self.layout = _find_layout(self.prefix, self.file.shapes)
        self.config_source, self.config = _find_config(self.prefix, config)
        self.arguments = backbone_config(self.layout, self.config, self.config_source)
        self._check_sizes()

    @property
    def vocabulary(self):
        return find_beside(self.prefix, VOCABULARY_PATTERNS, "vocabulary")

    def _check_sizes(self):
        config = {**self.layout.defaults, **self.config}
        differ = [
            f"{field} is {config[field]}, but {name} is {self.file.shapes[name]}"
            for name, fields in self.layout.sizes.items()
            for axis, field in enumerate(fields)
            if field
            and name in self.file.shapes
            # A tensor of another rank is reported when it is loaded.
            and len(self.file.shapes[name]) > axis
            and self.file.shapes[name][axis] != config[field]
        ]
        if differ:
            raise CheckpointError(
                f"{self.config_source} is not the config of {self.prefix}: "
                + "; ".join(differ)
                + ". Give the right one with `config=`."
            )

    def build_backbone(self, dtype=None, **kwargs):
        """An `AlbertBackbone` of this checkpoint's sizes, weights still random."""
        from albert_tf.models.albert_backbone import AlbertBackbone

        return AlbertBackbone(**{**self.arguments, **kwargs}, dtype=dtype)

    def load_into(self, model):
        """Fill every weight of a backbone or pretrainer from the file.

        Raises:
            CheckpointError: if a weight is not in the file or has another
                shape there, or the file has an encoder weight the model has no
                place for. Nothing was changed then, unless the data itself is
                damaged.
        """
        weights = model_weights(self.layout, model)
        self._check_names([name for _, tensors in weights for name in tensors.names])
        self._check_shapes(weights)
        for variable, tensors in weights:
            values = [self.file.read(name) for name in tensors.names]
            variable.assign(tensors.to_weight(values))

    def _check_shapes(self, weights):
        """Compare each tensor with the part of a weight that it will be."""
        differ = [
            f"{name} is {tuple(self.file.shapes[name])} and should be {part.shape}"
            for variable, tensors in weights
            for name, part in zip(
                tensors.names,
                tensors.from_weight(np.broadcast_to(0.0, variable.shape)),
                strict=True,
            )
            if self.file.shapes[name] != list(part.shape)
        ]
        if differ:
            raise CheckpointError(
                f"{self.prefix} does not have the shapes of the model (from "
                f"{self.config_source}): {'; '.join(differ)}. Nothing was loaded."
            )

    def _check_names(self, wanted):
        missing = sorted(set(wanted) - set(self.file.shapes))
        unused = self.unknown_tensors(wanted)
        problems = []
        if missing:
            problems.append(f"it lacks {missing}")
        if unused:
            problems.append(f"it has {unused}, for which the model has no place")
        if problems:
            raise CheckpointError(
                f"{self.prefix} does not fit the model: {'; '.join(problems)}. "
                "Nothing was loaded. Compare num_hidden_groups and inner_group_num "
                f"of {self.config_source}, or look with `albert-tf inspect`."
            )

    def unknown_tensors(self, wanted):
        """The names in the file that are neither wanted nor of another kind."""
        left = set(self.file.shapes) - set(wanted)
        return sorted(name for name in left if kind_of(name) is None)

    def names(self, parts):
        """The tensors in which this layout keeps the given parts."""
        rows = self.layout.rows(
            parts,
            self.arguments["num_attention_groups"],
            self.arguments["num_inner_layers"],
        )
        return [name for _, _, tensors in rows for name in tensors.names]

    def report(self):
        """A `CheckpointReport` of what the file holds."""
        shapes = self.file.shapes
        backbone = self.names(BACKBONE_PARTS)
        heads = {part: self.names((part,)) for part in HEAD_PARTS}
        known = {*backbone, *(name for names in heads.values() for name in names)}
        return CheckpointReport(
            path=str(self.prefix),
            layout=self.layout.name,
            config=dict(self.config),
            release=None,
            vocabulary=str(self.vocabulary) if self.vocabulary else None,
            parameters=sum(_size(shapes[name]) for name in backbone if name in shapes),
            heads=[
                part
                for part, names in heads.items()
                if all(name in shapes for name in names)
            ],
            missing=sorted(set(backbone) - set(shapes)),
            unused=self.unknown_tensors(backbone),
            optimizer_slots=sorted(
                name for name in shapes if kind_of(name) == "optimizer"
            ),
            other=sorted(
                name
                for name in set(shapes) - known
                if kind_of(name) in ("step", "head")
            ),
        )


@dataclasses.dataclass(frozen=True)
class CheckpointReport:
    """What `inspect_checkpoint` found.

    Attributes:
        path: string, the prefix of the checkpoint.
        layout: string, `"google"` or `"albert_zh"`.
        config: dict, the fields of the config file.
        release: string or `None`, the released checkpoint this is.
        vocabulary: string or `None`, the vocabulary file beside it.
        parameters: int, numbers in the encoder (pooler included).
        heads: list of the pretraining heads that are complete.
        missing: list of encoder tensors the file lacks.
        unused: list of tensors that belong to nothing known.
        optimizer_slots: list of the optimizer's tensors.
        other: list of the step counter and heads of other tasks.
    """

    path: str
    layout: str
    config: dict
    release: str | None
    vocabulary: str | None
    parameters: int
    heads: list
    missing: list
    unused: list
    optimizer_slots: list
    other: list


def open_checkpoint(path, config=None):
    """Open a TF1 checkpoint; see `Checkpoint`."""
    return Checkpoint(path, config=config)


def inspect_checkpoint(path, config=None):
    """Say what a checkpoint is and holds, without building the model.

    Args:
        path: string: a directory, a prefix, or any file of the checkpoint.
        config: optional path, or dict of config fields.

    Returns:
        A `CheckpointReport`.

    Raises:
        FileNotFoundError, CheckpointError: as `load_checkpoint`.
    """
    return open_checkpoint(path, config=config).report()


def load_checkpoint(path, config=None, dtype=None):
    """Load the encoder of a released TF1 checkpoint.

    Reads google-research/albert and brightmart/albert_zh (post-LN and pre-LN);
    which one it is, is found from the variable names and `ln_type`.

    Args:
        path: string: a directory, a prefix, or any file of the checkpoint.
        config: optional path of the config file, or dict of its fields. By
            default the one beside the checkpoint.
        dtype: optional string or `keras.DTypePolicy` to compute in.

    Returns:
        An `AlbertBackbone` whose every weight came from the file.

    Raises:
        FileNotFoundError: if a file of the checkpoint or its config is missing.
        CheckpointError: if the file is damaged, of an unknown layout, of other
            sizes than its config, or lacks a weight of the model or has one
            that the model has no place for.

    Example:
    ```python
    backbone = albert_tf.load_checkpoint("albert_tiny_zh/albert_model.ckpt")
    ```
    """
    checkpoint = open_checkpoint(path, config=config)
    backbone = checkpoint.build_backbone(dtype=dtype)
    checkpoint.load_into(backbone)
    return backbone


def save_checkpoint(model, path, layout="google"):
    """Write a model as a TF1 checkpoint that the original code reads.

    Args:
        model: an `AlbertBackbone`, or an `AlbertPretrainer`, whose heads are
            written too.
        path: string, the directory to write `albert_config.json`,
            `albert_model.ckpt.*` and, if the model has a tokenizer, `vocab.txt`
            into. The files appear when all are written.
        layout: string, `"google"` or `"albert_zh"`.

    Raises:
        ValueError: if the layout is unknown.
        CheckpointError: if the layout cannot express the model, saying why.
    """
    if layout not in LAYOUTS:
        raise ValueError(f"Unknown layout {layout!r}. Known: {list(LAYOUTS)}")
    layout = LAYOUTS[layout]
    config = file_config(layout, getattr(model, "backbone", model))
    tensors = {}
    for variable, names in model_weights(layout, model):
        tensors.update(
            zip(names.names, names.from_weight(variable.numpy()), strict=True)
        )
    preprocessor = getattr(model, "preprocessor", None)
    with complete_directory(path) as directory:
        text = json.dumps(config, indent=2)
        (directory / "albert_config.json").write_text(text + "\n", encoding="utf-8")
        if preprocessor is not None:
            vocabulary = "\n".join(preprocessor.tokenizer.get_vocabulary())
            (directory / "vocab.txt").write_text(vocabulary + "\n", encoding="utf-8")
        write_tensors(directory / "albert_model.ckpt", tensors)


def config_arguments(config):
    """The arguments of `AlbertBackbone` that a config file of any layout means.

    Args:
        config: path of the file.

    Returns:
        A dict.

    Raises:
        FileNotFoundError, CheckpointError: as `load_checkpoint`.
    """
    fields = read_config(config)
    # Only Google's code has groups; the rest of the fields are the same.
    layout = GOOGLE if "num_hidden_groups" in fields else ALBERT_ZH
    return backbone_config(layout, fields, str(config))


def _find_layout(prefix, names):
    for layout in LAYOUTS.values():
        if layout.matches(names):
            return layout
    raise CheckpointError(
        f"{prefix} has no known ALBERT layout. Known layouts have variables such as "
        + ", ".join(f"{x.signature}... ({x.name})" for x in LAYOUTS.values())
        + f". Found: {sorted(names)[:5]} (of {len(names)})."
    )


def _find_config(prefix, config):
    """The config's fields, and what to call them in messages."""
    if isinstance(config, dict):
        return "the given config", config
    path = pathlib.Path(config) if config else _config_beside(prefix)
    return str(path), read_config(path)


def _config_beside(prefix):
    path = find_beside(prefix, CONFIG_PATTERNS, "config")
    if path is None:
        raise FileNotFoundError(
            f"There is no config beside {prefix}: {' or '.join(CONFIG_PATTERNS)}. "
            "Put it there or give it with `config=`."
        )
    return path


def _size(shape):
    size = 1
    for length in shape:
        size *= length
    return size
