"""Writing checkpoints, complete or not at all."""

import pathlib
import warnings

import keras

from albert_tf.checkpoints.checkpoint import Checkpoint
from albert_tf.checkpoints.formats.bundle import write_tensors
from albert_tf.checkpoints.formats.huggingface import (
    WEIGHTS,
    write_model,
    write_tokenizer,
)
from albert_tf.checkpoints.formats.keras_model import build_keras_hub, write_preset
from albert_tf.checkpoints.head_fields import label_fields
from albert_tf.checkpoints.heads import HEADS, architectures
from albert_tf.checkpoints.layout import CheckpointError, listed
from albert_tf.checkpoints.opening import FORMATS, find_checkpoints
from albert_tf.conversion.build import build_model
from albert_tf.conversion.contents import contents_of
from albert_tf.files import complete_directory, write_json


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
        tokenizer: optional tokenizer, or path of a vocabulary, that is written. By
            default the model's own, if it has one.

    Raises:
        TypeError: if `model` is no Keras model.
        AlbertError: if the layout is unknown.
        CheckpointError: if the layout cannot express the model, saying why.
        FileExistsError: if the directory holds files of another checkpoint.
    """  # noqa: E501 (a table)
    contents = _contents_of_model(model, layout, tokenizer)
    if contents.lost:
        warnings.warn(
            f'The "{layout}" layout has no place for {", ".join(contents.lost)}, '
            "which is left out.",
            stacklevel=2,
        )
    write_checkpoint(contents, path, layout)


def check_saving(model, path, layout, tokenizer):
    """Raise what `save_checkpoint` would, before there is something to lose."""
    contents = _contents_of_model(model, layout, tokenizer)
    _refuse_another_checkpoint(pathlib.Path(path), layout, contents.tokenizer)


def _contents_of_model(model, layout, tokenizer=None):
    if not isinstance(model, keras.Model):
        raise TypeError(
            "`model` should be an AlbertBackbone or a task on one. Received: "
            f"{model!r}. Files are converted by `convert_checkpoint`."
        )
    contents = contents_of(Checkpoint(model), layout, tokenizer)
    if contents.unplaced:
        raise CheckpointError(
            f'The "{layout}" layout has no place for {", ".join(contents.unplaced)} of '
            "this model. Save `model.backbone`, or choose another layout."
        )
    return contents


def write_checkpoint(contents, path, layout):
    """Write the files of a layout, complete or not at all."""
    _refuse_another_checkpoint(pathlib.Path(path), layout, contents.tokenizer)
    with complete_directory(path) as directory:
        WRITERS[layout](directory, contents)


def _refuse_another_checkpoint(folder, layout, tokenizer):
    """Nobody could tell afterwards which files belong together."""
    if not folder.is_dir():
        return
    replaced = set(REPLACED.get(layout, ()))
    found = {
        "a preset" if path == folder else path.name
        for _, path in find_checkpoints(folder)
    }
    if tokenizer is not None:
        replaced.add(tokenizer.original_file_name)
    for format_ in FORMATS:
        patterns = format_.config_patterns
        # A vocabulary that was put there for a model without stays its own.
        if tokenizer is not None:
            patterns = (*patterns, *format_.vocabulary_patterns)
        found.update(file.name for x in patterns for file in folder.glob(x))
    if others := sorted(found - replaced):
        raise FileExistsError(
            f"{folder} holds files of another checkpoint: {listed(others)}. "
            "Give another directory."
        )


def _write_bundle(directory, contents):
    tokenizer, heads = contents.tokenizer, contents.head_fields()
    config = {**contents.config, **heads}
    parts = contents.plan.parts
    if heads or any(part in HEADS and HEADS[part].by_architecture for part in parts):
        config["architectures"] = architectures(parts)
    if tokenizer is not None:
        tokenizer.save_original(directory)
        if not tokenizer.lowercase:
            config["do_lower_case"] = False
    write_json(directory / "albert_config.json", config)
    write_tensors(directory / PREFIX, contents.tensors())


def _write_huggingface(directory, contents):
    checkpoint, parts = contents.checkpoint, contents.plan.parts
    # Its sentence-order head has `num_labels` classes, too.
    classes = [checkpoint.num_classes(part) for part in parts if part in HEADS]
    config = {
        **contents.config,
        **label_fields(next(filter(None, reversed(classes)), 2)),
        "classifier_dropout_prob": 0.1,
        **contents.head_fields(),
        "architectures": architectures(parts),
    }
    if contents.tokenizer is not None:
        positions = checkpoint.arguments["max_sequence_length"]
        config.update(write_tokenizer(directory, contents.tokenizer, positions))
    write_model(directory, contents.tensors())
    write_json(directory / "config.json", config)


def _write_keras_hub(directory, contents):
    tokenizer = contents.keras_hub_tokenizer
    theirs = _keras_hub_model(contents, tokenizer)
    write_preset(directory, theirs, tokenizer or contents.tokenizer)


def _write_keras(directory, contents):
    source = contents.checkpoint.source
    # A model of ours is written as it is, with its preprocessor and all.
    whole = source.model if source.is_ours else None
    model = whole or build_model(contents.checkpoint)
    write_preset(directory, model, contents.tokenizer)


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
    return _keras_hub_model(_contents_of_model(model, "kerashub"))


def _keras_hub_model(contents, tokenizer=None):
    checkpoint = contents.checkpoint
    head = checkpoint.head_config("classifier")
    head = {name: head[name] for name in ("dropout", "activation") if name in head}
    theirs = build_keras_hub(
        contents.config, checkpoint.num_classes("classifier"), head, tokenizer
    )
    weights = {weight.path: weight for weight in theirs.weights}
    for name, value in contents.tensors():
        weights[name].assign(value)
    return theirs


PREFIX = "albert_model.ckpt"
# The files a checkpoint may be replaced by; a preset is too many.
REPLACED = {
    "google": (PREFIX, "albert_config.json"),
    "albert_zh": (PREFIX, "albert_config.json"),
    "huggingface": (WEIGHTS, "config.json"),
}
WRITERS = {
    "google": _write_bundle,
    "albert_zh": _write_bundle,
    "huggingface": _write_huggingface,
    "kerashub": _write_keras_hub,
    "keras": _write_keras,
}
