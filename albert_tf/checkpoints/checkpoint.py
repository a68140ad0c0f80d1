"""An opened checkpoint of any form, and loading the encoder of one."""

import math
import warnings

import numpy as np

from albert_tf.backbone import AlbertBackbone
from albert_tf.checkpoints.config import backbone_config, check_sizes
from albert_tf.checkpoints.heads import HEADS, heads_in
from albert_tf.checkpoints.initialization import without_initializing
from albert_tf.checkpoints.layout import CheckpointError, numbers_of
from albert_tf.checkpoints.opening import open_source
from albert_tf.checkpoints.plan import plan_loading
from albert_tf.checkpoints.releases import identify
from albert_tf.checkpoints.weights import ENCODER_PARTS
from albert_tf.tokenizers import load_tokenizer


class Checkpoint:
    """An opened checkpoint: its layout, its config, and its tensors.

    Args:
        path: what `load_checkpoint` takes.
        config: optional path, or dict of config fields. By default the config
            beside the checkpoint.
        progress: optional callable, given the weights read and those to read while
            a model is filled.

    Attributes:
        source: the opened files, an object of one of the `formats`.
        path: path of the checkpoint, for messages.
        layout: the `Layout` found from its variable names.
        config: dict, the fields of the config file.
        arguments: dict, what they mean to `AlbertBackbone`.
        shapes: dict of variable name, as in the tables, to list of ints.
        release: the `Release` it is, or `None`.
        release_differences: list of strings, what is not as in the release.

    Raises:
        FileNotFoundError: if a file is missing.
        CheckpointError: if the layout is unknown, or the config and the tensors
            have different sizes.
    """

    def __init__(self, path, config=None, progress=None):
        self.progress = progress or (lambda done, total: None)
        self.source = open_source(path)
        self.path = self.source.path
        self.layout = self.source.find_layout()
        self._file_names = self.layout.table_names(self.source.shapes, self.path)
        self.shapes = {
            name: self.source.shapes[in_file]
            for name, in_file in self._file_names.items()
        }
        self.release, self.release_differences = identify(self.source.checksums)
        self.config_source, self.config = self.source.find_config(config)
        self.arguments = backbone_config(self.layout, self.config, self.config_source)
        check_sizes(self)
        if config is None:
            self._prefer_release()

    def _prefer_release(self):
        """Correct what no tensor tells of where the config beside is wrong.

        albert_tiny_zh_google was released with a config of one layer; it has four.
        """
        if self.release is None or self.release.layout != self.layout.name:
            return
        wrong = {
            name: value
            for name, value in self.release.arguments.items()
            if self.arguments[name] != value and "dropout" not in name
        }
        if wrong:
            warnings.warn(
                f"{self.config_source} says "
                + ", ".join(f"{name}={self.arguments[name]!r}" for name in wrong)
                + f", but the tensors are those of {self.release.name}, which has "
                + ", ".join(f"{name}={value!r}" for name, value in wrong.items())
                + " and is loaded so. Give `config=` to have it otherwise.",
                stacklevel=2,
            )
            self.arguments.update(wrong)

    @property
    def vocabulary(self):
        """The path of what holds the vocabulary, or `None`."""
        return self.source.vocabulary

    @property
    def lowercase(self):
        """Whether the vocabulary is for lower-cased text, a bool."""
        return self.source.lowercase(self.config)

    def tokenizer(self, lowercase=None, vocabulary=None):
        """The tokenizer of the vocabulary beside the checkpoint, or of another.

        Args:
            lowercase: optional bool. By default as the checkpoint says, else `True`
                as in all releases.
            vocabulary: optional, what `load_tokenizer` takes.

        Returns:
            A tokenizer, or `None` if there is no vocabulary.
        """
        lowercase = self.lowercase if lowercase is None else lowercase
        if vocabulary is not None:
            return load_tokenizer(vocabulary, lowercase)
        return self.source.tokenizer(lowercase)

    def head_config(self, part):
        """How a head is used: arguments of the task it belongs to, a dict.

        Of a `"classifier"` `labels`, `dropout` and `activation`; empty if there is no
        such head.
        """
        classes = self.num_classes(part)
        if part not in self.heads:
            return {}
        arguments = self.source.head_config(part, self.config, self.config_source)
        labels = arguments.get("labels") or arguments.get("tags")
        if labels is not None and len(labels) != classes:
            raise CheckpointError(
                f"{self.config_source} names {len(labels)} classes, but the head of "
                f"{self.path} tells {classes} apart."
            )
        return arguments

    @property
    def heads(self):
        """The heads whose every tensor is in the file, a list of names of `HEADS`."""
        return heads_in(self.layout, self.shapes.keys(), self.config)

    @property
    def has_pooler(self):
        return self.shapes.keys() >= set(self.layout.names(["pooler"]))

    def num_classes(self, part):
        """How many classes a head tells apart; 0 without it, or if it has none."""
        self._check_whole(part)
        if part not in self.heads or not HEADS[part].has_classes:
            return 0
        return math.prod(self.shapes[self.layout.names([part])[-1]])

    @property
    def parts(self):
        """The parts of a model that this checkpoint holds, heads last, a list."""
        for part in ("pooler", *HEADS):
            self._check_whole(part)
        pooler = ["pooler"] if self.has_pooler else []
        return [*ENCODER_PARTS, *pooler, *self.heads]

    def _check_whole(self, part):
        names = self.layout.names([part])
        missing = [name for name in names if name not in self.shapes]
        if 0 < len(missing) < len(names):
            raise CheckpointError(
                f"{self.path} has a part of the {part} only: it lacks {missing}."
            )

    def build_backbone(self, dtype=None, **kwargs):
        """An `AlbertBackbone` of this checkpoint's sizes, weights still zero."""
        with without_initializing():
            return AlbertBackbone(**{**self.arguments, **kwargs}, dtype=dtype)

    def load_into(self, model, new_heads=()):
        """Fill every weight of a backbone or task from the file.

        Args:
            model: an `AlbertBackbone`, or a task on one.
            new_heads: names of heads that keep the weights they have.

        Raises:
            CheckpointError: see `Plan`. Nothing was changed then, unless the data
                itself is damaged.
        """
        plan = plan_loading(self, model, new_heads)
        for row in plan:
            row.target.assign(plan.weight(row))

    def read(self, name):
        """A tensor by its name in the tables, an array of finite float32."""
        value = self.source.read(self._file_names[name])
        numbers = numbers_of(value)
        # bfloat16 is NumPy's by an extension, of kind "V".
        if numbers.dtype.kind not in "fV":
            raise CheckpointError(
                f"{name} in {self.path} holds {numbers.dtype.name}. Expected float32."
            )
        if numbers.dtype != "float32":
            value = numbers = numbers.astype("float32")
        # Two numbers tell, for a NaN is both the smallest and the largest.
        if numbers.size and not np.isfinite([numbers.min(), numbers.max()]).all():
            raise CheckpointError(
                f"{name} in {self.path} holds numbers that are not finite (NaN or "
                "infinity): its training has diverged, or the file is damaged."
            )
        return value

    def unknown_tensors(self, wanted):
        """The names in the file that are neither wanted nor of another kind."""
        # A backbone may come from a file with heads and with or without a pooler.
        others = [part for part in self.layout.weights if part not in ENCODER_PARTS]
        left = set(self.shapes) - {*wanted, *self.layout.names(others)}
        return sorted(name for name in left if self.layout.kind_of(name) is None)


def open_checkpoint(path, config=None, progress=None):
    """Open a checkpoint, see `Checkpoint`; one that is open is returned."""
    if isinstance(path, Checkpoint):
        return path
    return Checkpoint(path, config=config, progress=progress)


def load_checkpoint(path, config=None, dtype=None, pooler=True):
    """Load the encoder of a checkpoint, whatever form it has.

    Reads TF1 checkpoints of google-research/albert and brightmart/albert_zh
    (post-LN and pre-LN) and Google's TF-Hub modules, Hugging Face directories,
    KerasHub's presets and models, and `.keras` files and presets of this package.
    Which one it is, is found from its files and variable names.

    Args:
        path: string: a directory, an archive (.tar.gz, .zip), a prefix, or any
            file of the checkpoint; the name of a release such as
            `"albert_tiny_zh"` (see `albert_tf.checkpoints.RELEASES`), which is
            downloaded unless it was before; `"hf://user/name"` on the Hugging Face
            Hub; or a Keras model.
        config: optional path of the config file, or dict of its fields. By
            default the one beside the checkpoint.
        dtype: optional string or `keras.DTypePolicy` to compute in.
        pooler: bool. `False` for a checkpoint without pooler: the model has no
            `pooled_output` then.

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
    backbone = albert_tf.load_checkpoint("albert_tiny_zh/albert_model.ckpt")
    ```
    """
    checkpoint = open_checkpoint(path, config=config)
    backbone = checkpoint.build_backbone(dtype=dtype, pooler=pooler)
    checkpoint.load_into(backbone)
    return backbone
