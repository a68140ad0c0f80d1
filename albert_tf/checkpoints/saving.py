"""Writing checkpoints, complete or not at all."""

import dataclasses
import functools
import json
import pathlib

import keras_hub

from albert_tf.checkpoints.checkpoint import Checkpoint
from albert_tf.checkpoints.config import file_config
from albert_tf.checkpoints.formats.bundle import write_tensors
from albert_tf.checkpoints.formats.huggingface import (
    WEIGHTS,
    placeholders,
    write_model,
    write_tokenizer,
)
from albert_tf.checkpoints.formats.keras_model import build_keras_hub, write_preset
from albert_tf.checkpoints.layout import CheckpointError, Layout
from albert_tf.checkpoints.layouts import (
    ALBERT_ZH,
    GOOGLE,
    HUGGINGFACE,
    KERASHUB,
    own_layout,
)
from albert_tf.checkpoints.sources import find_checkpoints
from albert_tf.files import complete_directory
from albert_tf.preprocessing import SentencePieceTokenizer


@dataclasses.dataclass(frozen=True)
class Contents:
    """What is to be written: a checkpoint, in the terms of a layout.

    Args:
        checkpoint: a `Checkpoint`, of files or of a model.
        layout: the `Layout` to write.
        tokenizer: the tokenizer to write beside, or `None`.

    Raises:
        CheckpointError: if the layout cannot express the model.
    """

    checkpoint: Checkpoint
    layout: Layout
    tokenizer: object = None

    @functools.cached_property
    def config(self):
        """The fields of the config file."""
        return file_config(self.layout, self.checkpoint.arguments)

    @property
    def parts(self):
        """The parts of the model that the layout has a place for."""
        return [x for x in self.checkpoint.parts if x in self.layout.weights]

    @functools.cached_property
    def rows(self):
        """A list of `(Tensors read, Tensors written, shape of the weight)`."""
        return self.checkpoint.rows(self.layout, self.parts)

    @property
    def shapes(self):
        """The shape of each tensor to be written, by name."""
        return {
            name: tensors.shapes(shape)
            for _, tensors, shape in self.rows
            for name in tensors.names
        }

    def tensors(self):
        """Pairs of name and array, read one after the other."""
        return self.checkpoint.convert(self.rows)


def save_checkpoint(model, path, layout="google", tokenizer=None):
    """Write a model where the tools of others read it.

    | layout | files | read by |
    |---|---|---|
    | `"google"`, `"albert_zh"` | `albert_config.json`, `albert_model.ckpt.*` | the original TensorFlow 1 code |
    | `"huggingface"` | `config.json`, `model.safetensors`, `tokenizer_config.json` | `transformers.AutoModel` |
    | `"kerashub"` | a preset | `keras_hub.models.AlbertBackbone.from_preset` |
    | `"keras"` | a preset | `albert_tf.models.AlbertBackbone.from_preset` |

    The vocabulary goes beside: `vocab.txt` or `spiece.model`.

    Args:
        model: an `AlbertBackbone`, or a task on one, whose heads are written too.
        path: string, the directory to write into. The files appear when all are
            written.
        layout: string, as above.
        tokenizer: optional tokenizer whose vocabulary is written. By default the
            model's own, if it has one.

    Raises:
        ValueError: if the layout is unknown.
        CheckpointError: if the layout cannot express the model, saying why.
        FileExistsError: if the directory holds a checkpoint of another kind.
    """  # noqa: E501 (a table)
    contents = contents_of(Checkpoint(model), layout, tokenizer)
    _refuse_homeless_heads(contents)
    write_checkpoint(contents, path, layout)


def contents_of(checkpoint, layout, tokenizer=None):
    """The `Contents` of a checkpoint in the layout of a name.

    Raises:
        ValueError: if there is no such layout.
    """
    if layout not in WRITERS:
        raise ValueError(f"Unknown layout {layout!r}. Known: {list(WRITERS)}")
    target = LAYOUTS.get(layout) or own_layout(checkpoint.arguments)
    if tokenizer is None:
        tokenizer = checkpoint.tokenizer()
    rows = checkpoint.arguments["vocabulary_size"]
    if tokenizer is not None and tokenizer.vocabulary_size() != rows:
        raise CheckpointError(
            f"The vocabulary {checkpoint.vocabulary or 'given'} has "
            f"{tokenizer.vocabulary_size()} tokens, the model {rows}. Use the one that "
            "it was trained with."
        )
    return Contents(checkpoint, target, tokenizer)


def _refuse_homeless_heads(contents):
    homeless = [x for x in contents.checkpoint.parts if x not in contents.parts]
    if homeless:
        raise CheckpointError(
            f'The "{contents.layout.name}" layout has no place for '
            f"{', '.join(homeless)} of this model. Save `model.backbone`, or choose "
            "another layout."
        )


def write_checkpoint(contents, path, layout):
    """Write the files of a layout; see `save_checkpoint`."""
    # What cannot be written is refused before anything is read, which may take long.
    contents.config, contents.rows  # noqa: B018
    _refuse_another_checkpoint(pathlib.Path(path), layout)
    with complete_directory(path) as directory:
        WRITERS[layout](directory, contents)


def _refuse_another_checkpoint(folder, layout):
    """Nobody could tell afterwards which files belong together."""
    found = [path for _, path in find_checkpoints(folder)] if folder.is_dir() else []
    if found and found != [folder / WEIGHT_FILES.get(layout, "")]:
        raise FileExistsError(
            f"{folder} holds a checkpoint already: {[path.name for path in found]}. "
            "Give another directory."
        )


def _write_bundle(directory, contents):
    _write_json(directory / "albert_config.json", contents.config)
    if contents.tokenizer is not None:
        contents.tokenizer.save_original(directory)
    write_tensors(directory / PREFIX, dict(contents.tensors()))


def _write_huggingface(directory, contents):
    checkpoint, tokenizer = contents.checkpoint, contents.tokenizer
    config = {**contents.config, "classifier_dropout_prob": checkpoint.head_dropout}
    if tokenizer is not None:
        positions = checkpoint.arguments["max_sequence_length"]
        config.update(write_tokenizer(directory, tokenizer, positions))
    config.update(_named_classes(checkpoint))
    config.update(write_model(directory, contents.shapes, contents.tensors()))
    _write_json(directory / "config.json", config)


def _named_classes(checkpoint):
    """The config fields by which transformers knows how many classes there are."""
    # Its sentence-order head has `num_labels` classes, too.
    heads = ("classifier", "sop_head")
    count = next(filter(None, map(checkpoint.num_classes, heads)), 2)
    names = placeholders(count)
    if checkpoint.labels is not None:
        names = dict(zip(names, checkpoint.labels, strict=True))
    return {"id2label": names, "label2id": {name: int(i) for i, name in names.items()}}


def _write_keras_hub(directory, contents):
    tokenizer = contents.tokenizer
    # KerasHub's ALBERT has no WordPiece, and its BERT changes Chinese text.
    theirs_too = isinstance(tokenizer, SentencePieceTokenizer)
    theirs = _keras_hub_model(contents, tokenizer if theirs_too else None)
    write_preset(
        directory,
        theirs,
        keras_hub.tokenizers.AlbertTokenizer(tokenizer.proto) if theirs_too else None,
    )
    if tokenizer is not None and not theirs_too:
        tokenizer.save_original(directory)


def _write_keras(directory, contents):
    checkpoint = contents.checkpoint
    source = checkpoint.source
    # A model of ours is written as it is, with its preprocessor and all.
    whole = source.model if source.is_ours else None
    write_preset(directory, whole or checkpoint.model(), contents.tokenizer)


def to_keras_hub(model):
    """KerasHub's model with the weights of ours.

    Args:
        model: an `AlbertBackbone`, or an `AlbertTextClassifier`.

    Returns:
        A `keras_hub.models.AlbertBackbone`, or an `AlbertTextClassifier` on it,
        without preprocessor.

    Raises:
        CheckpointError: if KerasHub's code cannot express the model, saying why.
    """
    contents = contents_of(Checkpoint(model), "kerashub")
    _refuse_homeless_heads(contents)
    return _keras_hub_model(contents)


def _keras_hub_model(contents, tokenizer=None):
    checkpoint = contents.checkpoint
    theirs = build_keras_hub(
        contents.config,
        checkpoint.num_classes("classifier"),
        checkpoint.head_dropout,
        tokenizer,
    )
    weights = {weight.path: weight for weight in theirs.weights}
    for name, value in contents.tensors():
        weights[name].assign(value)
    return theirs


def _write_json(path, fields):
    text = json.dumps(fields, ensure_ascii=False, indent=2)
    path.write_text(text + "\n", encoding="utf-8")


LAYOUTS = {layout.name: layout for layout in (GOOGLE, ALBERT_ZH, HUGGINGFACE, KERASHUB)}
PREFIX = "albert_model.ckpt"
# Written anew in their place; a preset is several files of several kinds.
WEIGHT_FILES = {"google": PREFIX, "albert_zh": PREFIX, "huggingface": WEIGHTS}
WRITERS = {
    "google": _write_bundle,
    "albert_zh": _write_bundle,
    "huggingface": _write_huggingface,
    "kerashub": _write_keras_hub,
    "keras": _write_keras,
}
