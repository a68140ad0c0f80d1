"""Opening, inspecting, loading and saving checkpoints in any known layout."""

import math
import warnings

import numpy as np

from albert_tf.backbone import AlbertBackbone
from albert_tf.checkpoints.config import backbone_config, read_config
from albert_tf.checkpoints.initialization import without_initializing
from albert_tf.checkpoints.layout import CheckpointError, numbers_of
from albert_tf.checkpoints.layouts import ALBERT_ZH, GOOGLE, HUGGINGFACE
from albert_tf.checkpoints.opening import open_source
from albert_tf.checkpoints.releases import identify
from albert_tf.checkpoints.weights import (
    ENCODER_PARTS,
    HEAD_PARTS,
    model_weights,
    parts_of,
    weight_shape,
)
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
        self._progress = progress or (lambda done, total: None)
        self.source = open_source(path)
        self.path = self.source.path
        self.layout = self.source.find_layout()
        self._file_names = _table_names(self.layout, self.source)
        self.shapes = {
            name: self.source.shapes[in_file]
            for name, in_file in self._file_names.items()
        }
        self.release, self.release_differences = self._find_release()
        self.config_source, self.config = self.source.find_config(config)
        self.arguments = backbone_config(self.layout, self.config, self.config_source)
        self._check_sizes()
        if config is None:
            self._prefer_release()

    def _find_release(self):
        checksums = self.source.checksums
        return identify(checksums) if checksums else (None, [])

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

    def _check_sizes(self):
        config = {**self.layout.defaults, **self.config}
        differ = [
            f"{field} is {config[field]}, but {name} is {self.shapes[name]}"
            for name, fields in self.layout.sizes.items()
            for axis, field in enumerate(fields)
            if field
            and name in self.shapes
            # A tensor of another rank is reported when it is loaded.
            and len(self.shapes[name]) > axis
            and self.shapes[name][axis] != config[field]
        ]
        if differ:
            raise CheckpointError(
                f"{self.config_source} is not the config of {self.path}: "
                + "; ".join(differ)
                + ". Give the right one with `config=`."
            )

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
            A `WordPieceTokenizer` or `SentencePieceTokenizer`, or `None` if there
            is no vocabulary.
        """
        lowercase = self.lowercase if lowercase is None else lowercase
        if vocabulary is not None:
            return load_tokenizer(vocabulary, lowercase)
        return self.source.tokenizer(lowercase)

    @property
    def classifier(self):
        """How the classification head is used, arguments of `AlbertTextClassifier`.

        A dict of `labels`, `dropout` and `activation`; empty if there is no head.

        Raises:
            CheckpointError: if there are not as many labels as the head has classes.
        """
        classes = self.num_classes("classifier")
        if not classes:
            return {}
        arguments = self.source.classifier(self.config, self.config_source)
        labels = arguments["labels"]
        if labels is not None and len(labels) != classes:
            raise CheckpointError(
                f"{self.config_source} names {len(labels)} classes, but the head of "
                f"{self.path} tells {classes} apart."
            )
        return arguments

    @property
    def outside(self):
        """The names of weights that are no part of the ALBERT, a list."""
        return list(self.source.outside)

    @property
    def heads(self):
        """The heads whose every tensor is in the file."""
        # A token classifier's weights have a text classifier's names, but it has no
        # pooler for a text classifier to read.
        needs = {
            "masked_lm_head": (),
            "sop_head": ("pooler",),
            "classifier": ("pooler",),
        }
        heads = [
            part
            for part in HEAD_PARTS
            if part in self.layout.weights and self._has((part, *needs[part]))
        ]
        others = [] if self.source.has_text_classifier(self.config) else ["classifier"]
        return [head for head in heads if head not in others]

    def _has(self, parts):
        return all(name in self.shapes for name in self.names(parts))

    @property
    def has_pooler(self):
        return self._has(("pooler",))

    def num_classes(self, head):
        """How many classes a head of this checkpoint tells apart; 0 without it.

        Args:
            head: `"classifier"` or `"sop_head"`.

        Raises:
            CheckpointError: if the head is there in part.
        """
        self._check_whole(head)
        if head not in self.heads:
            return 0
        return math.prod(self.shapes[self.names((head,))[-1]])

    @property
    def parts(self):
        """The parts of a model that this checkpoint holds, heads last.

        Raises:
            CheckpointError: if one is there in part.
        """
        for part in ("pooler", *HEAD_PARTS):
            self._check_whole(part)
        pooler = ["pooler"] if self.has_pooler else []
        return [*ENCODER_PARTS, *pooler, *self.heads]

    def _check_whole(self, part):
        names = self.names((part,)) if part in self.layout.weights else []
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
            CheckpointError: if a weight is not in the file or has another
                shape there, or the file has an encoder weight the model has no
                place for. Nothing was changed then, unless the data itself is
                damaged.
        """
        parts = [part for part in parts_of(model) if part not in new_heads]
        homeless = [part for part in parts if part not in self.layout.weights]
        if homeless:
            raise CheckpointError(
                f"{self.path} has no {', '.join(homeless)}: the "
                f'"{self.layout.name}" layout has no place for it.'
            )
        weights = model_weights(self.layout, model, parts)
        self._check([(tuple(x.shape), tensors) for x, tensors in weights])
        self._check_tied(parts)
        for done, (variable, tensors) in enumerate(weights, start=1):
            variable.assign(self._read_weight(tensors))
            self._progress(done, len(weights))

    def rows(self, layout, parts):
        """Each weight's tensors here and in another layout.

        Args:
            layout: a `Layout`.
            parts: names of parts that both have.

        Returns:
            A list of `(Tensors here, Tensors there, shape of the weight)`.

        Raises:
            CheckpointError: as `load_into`.
        """
        there = {row[:2]: row[2] for row in layout.rows(parts, self.arguments)}
        rows = [
            (here, there[key, attribute], self._shape_of_weight(key[0], attribute))
            for key, attribute, here in self.layout.rows(parts, self.arguments)
        ]
        self._check([(shape, here) for here, _, shape in rows])
        self._check_tied(parts)
        return rows

    def convert(self, rows):
        """Read weight by weight, each as the tensors of another layout.

        Args:
            rows: what `rows` gave.

        Yields:
            Pairs of name and array.
        """
        for done, (here, there, _) in enumerate(rows, start=1):
            weight = self._read_weight(here)
            yield from zip(there.names, there.from_weight(weight), strict=True)
            self._progress(done, len(rows))

    def _shape_of_weight(self, part, attribute):
        classes = self.num_classes(part) if part in ("sop_head", "classifier") else 0
        return weight_shape(part, attribute, self.arguments, classes)

    def _read_weight(self, tensors):
        return tensors.to_weight([self._read(name) for name in tensors.names])

    def _read(self, name):
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

    def is_readable(self, name):
        """Whether a tensor's data are what was written, and finite."""
        try:
            self._read(name)
        except CheckpointError:
            return False
        return True

    def _check(self, weights):
        """Compare what is wanted with what is there, before anything is changed.

        Args:
            weights: list of `(shape of the weight, Tensors)`.
        """
        self._check_names([name for _, tensors in weights for name in tensors.names])
        differ = [
            f"{name} is {tuple(self.shapes[name])} and should be {shape}"
            for whole, tensors in weights
            for shape in [tensors.shapes(whole)]
            for name in tensors.names
            if tuple(self.shapes[name]) != shape
        ]
        if differ:
            raise CheckpointError(
                f"{self.path} does not have the shapes of the model (from "
                f"{self.config_source}): {'; '.join(differ)}. Nothing was loaded."
            )

    def _check_tied(self, parts):
        """Refuse what a file holds twice where the two are not one."""
        for name, original in (
            self.layout.tied.items() if "masked_lm_head" in parts else ()
        ):
            if not {name, original} <= self.shapes.keys():
                continue
            if not np.array_equal(*map(numbers_of, map(self._read, (name, original)))):
                raise CheckpointError(
                    f"{self.path} has a {name} other than its {original}. In an "
                    "ALBERT they are one: its masked language head was trained by "
                    "other code, or the file is damaged. Nothing was loaded."
                )

    def _check_names(self, wanted):
        missing = sorted(set(wanted) - set(self.shapes))
        unused = self.unknown_tensors(wanted)
        problems = []
        if missing:
            problems.append(f"it lacks {missing}")
        if unused:
            problems.append(f"it has {unused}, for which the model has no place")
        if problems:
            raise CheckpointError(
                f"{self.path} does not fit the model: {'; '.join(problems)}. "
                "Nothing was loaded. Compare num_hidden_groups and inner_group_num "
                f"of {self.config_source}, or look with `albert-tf inspect`."
                + self._hint(missing)
            )

    def _hint(self, missing):
        if missing and set(missing) == set(self.names(("pooler",))):
            return (
                " A model saved without its pooler, such as a masked language model, "
                "loads with `pooler=False`."
            )
        return ""

    def unknown_tensors(self, wanted):
        """The names in the file that are neither wanted nor of another kind."""
        # A backbone may come from a file with heads and with or without a pooler.
        known = {*wanted, *self.names(set(self.layout.weights) - set(ENCODER_PARTS))}
        left = set(self.shapes) - known
        return sorted(name for name in left if self.layout.kind_of(name) is None)

    def names(self, parts):
        """The tensors in which this layout keeps the given parts."""
        rows = self.layout.rows(parts, self.arguments)
        return [name for _, _, tensors in rows for name in tensors.names]


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
            downloaded unless it was before; or a Keras model.
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


def _table_names(layout, source):
    """The name in the file of each tensor, by its name in the tables."""
    names = {}
    for in_file in source.shapes:
        name = layout.table_name(in_file)
        if name in names:
            raise CheckpointError(
                f"{source.path} holds two tensors that are both {name}: "
                f"{names[name]} and {in_file}."
            )
        names[name] = in_file
    return names


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
    if "model_type" in fields:
        layout = HUGGINGFACE
    else:
        # Only Google's code has groups; the rest of the fields are the same.
        layout = GOOGLE if "num_hidden_groups" in fields else ALBERT_ZH
    return backbone_config(layout, fields, str(config))
