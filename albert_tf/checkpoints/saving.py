"""Saving models in every layout, and converting checkpoints by loading and saving."""

from __future__ import annotations

import dataclasses
import functools
import os
import pathlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import keras
import keras_hub
import numpy as np

from albert_tf.checkpoints.checkpoint import (
    Checkpoint,
    CheckpointPath,
    Config,
    open_checkpoint,
)
from albert_tf.checkpoints.config import file_config, layout_differences
from albert_tf.checkpoints.formats.bundle import write_tensors
from albert_tf.checkpoints.formats.huggingface import (
    WEIGHTS,
    write_model,
    write_tokenizer,
)
from albert_tf.checkpoints.head_fields import label_fields, write_head
from albert_tf.checkpoints.heads import HEADS, architectures
from albert_tf.checkpoints.layout import (
    CheckpointError,
    Layout,
    first_line,
    float32_of,
    listed,
    numbers_of,
)
from albert_tf.checkpoints.layouts import (
    ALBERT_ZH,
    GOOGLE,
    HUGGINGFACE,
    KERASHUB,
    own_layout,
)
from albert_tf.checkpoints.opening import FORMATS, find_checkpoints
from albert_tf.checkpoints.plan import plan_weights, without_initializing
from albert_tf.files import complete_directory, write_json
from albert_tf.tokenizers import SentencePieceTokenizer
from albert_tf.tokenizers.text_tokenizer import TextTokenizer
from albert_tf_lite.errors import AlbertError

LAYOUTS = {layout.name: layout for layout in (GOOGLE, ALBERT_ZH, HUGGINGFACE, KERASHUB)}
PREFIX = "albert_model.ckpt"

# === Saving and converting ===


def save_checkpoint(
    model: keras.Model,
    path: str | os.PathLike,
    layout: str = "google",
    tokenizer: TextTokenizer | str | os.PathLike | None = None,
) -> None:
    """Write a model in a layout that other tools read.

    | layout | files | read by |
    |---|---|---|
    | `"google"`, `"albert_zh"` | `albert_config.json`, `albert_model.ckpt.*` | the original TensorFlow 1 code |
    | `"huggingface"` | `config.json`, `model.safetensors`, `tokenizer_config.json` | `transformers.AutoModel` |
    | `"kerashub"` | a preset | `keras_hub.models.AlbertBackbone.from_preset` |
    | `"keras"` | a preset | `albert_tf.models.AlbertBackbone.from_preset` |

    The vocabulary is written beside it, as `vocab.txt` or `spiece.model`.

    Args:
        model: an `AlbertBackbone`, or a task on one, which is saved with its heads.
        path: string, the directory to write into. The files appear when all are
            written.
        layout: string, as above.
        tokenizer: optional tokenizer, or path of a vocabulary, to write. By default
            the model's own, if it has one.

    Raises:
        TypeError: if `model` is not a Keras model.
        AlbertError: if the layout is unknown.
        CheckpointError: if the layout cannot hold the model, with every difference.
        FileExistsError: if the directory holds files of another checkpoint.

    Example:
    ```python
    backbone = albert_tf.load_checkpoint("examples/albert_micro_zh")
    albert_tf.save_checkpoint(backbone, "tf1_model", layout="albert_zh")
    ```
    """  # noqa: E501 (a table)
    contents = _contents_of_model(model, layout, tokenizer)
    if contents.lost:
        warnings.warn(
            f'The "{layout}" layout has no place for {", ".join(contents.lost)}, '
            "which is left out.",
            stacklevel=2,
        )
    _write(contents, path)


def check_saving(
    model: keras.Model, path: str | os.PathLike, layout: str, tokenizer: Any
) -> None:
    """Raise the errors of `save_checkpoint` without writing."""
    contents = _contents_of_model(model, layout, tokenizer)
    _refuse_another_checkpoint(pathlib.Path(path), contents)


@dataclasses.dataclass(frozen=True)
class Conversion:
    """The result of `convert_checkpoint`."""

    layout: str  # The layout that was read.
    # For each weight the names read, the names written, and its shape.
    moved: list[tuple[tuple[str, ...], tuple[str, ...], tuple[int, ...]]]
    # Optimizer slots, the step counter, heads and labels without a place in the other
    # layout, and weights outside the ALBERT.
    left_out: list[str]


def convert_checkpoint(
    source: CheckpointPath,
    destination: str | os.PathLike,
    layout: str,
    config: Config | None = None,
    vocabulary: str | os.PathLike | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Conversion:
    """Convert a checkpoint: load its model, and save it in another layout.

    Args:
        source: see `load_checkpoint`.
        destination: string, the directory to write.
        layout: string, see `save_checkpoint`.
        config: optional path or dict, the config of the source. By default the one
            beside it.
        vocabulary: optional path of the vocabulary. By default the one beside the
            source.
        progress: optional callable, called with the weights read and the total.

    Returns:
        A `Conversion`.

    Raises:
        FileNotFoundError, CheckpointError: as `load_checkpoint`, and if the layout
            cannot hold the model.
        AlbertError: if the layout is unknown, or the destination is the source.

    Example:
    ```python
    albert_tf.checkpoints.convert_checkpoint(
        "examples/albert_micro_zh", "converted", "keras"
    )
    ```
    """
    opened = open_checkpoint(source, config=config, progress=progress)
    folders = [folder.resolve() for folder in opened.source.folders]
    if pathlib.Path(destination).resolve() in folders:
        raise AlbertError(f"{destination} holds the source. Choose another directory.")
    contents = _contents_of(opened, layout, vocabulary)
    _write(contents, destination)
    model, parts = contents.model, contents.parts
    written = {id(x): y.names for x, y in plan_weights(contents.layout, model, parts)}
    moved = [
        (tensors.names, written[id(weight)], tuple(weight.shape))
        for weight, tensors in plan_weights(opened.layout, model, parts)
    ]
    read = {name for names, _, _ in moved for name in names}
    left_out = sorted(set(opened.shapes) - read) + opened.source.outside
    return Conversion(opened.layout.name, moved, left_out + contents.lost)


def to_keras_hub(model: keras.Model) -> keras.Model:
    """Return KerasHub's model with the weights of a model of albert_tf.

    Args:
        model: an `AlbertBackbone`, or an `AlbertTextClassifier`.

    Returns:
        A `keras_hub.models.AlbertBackbone`, or an `AlbertTextClassifier` on it,
        without preprocessor.

    Raises:
        CheckpointError: if KerasHub's code cannot express the model.

    Example:
    ```python
    sizes = albert_tf.backbone.SIZES["albert_base_en"]
    backbone = albert_tf.models.AlbertBackbone(**sizes)
    theirs = albert_tf.checkpoints.to_keras_hub(backbone)
    ```
    """
    return _build_keras_hub(_contents_of_model(model, "kerashub"))


# === A model in the terms of a layout ===


@dataclasses.dataclass(frozen=True)
class Contents:
    """A model in the terms of a layout."""

    checkpoint: Checkpoint  # The model, opened.
    layout: Layout
    tokenizer: TextTokenizer | None
    parts: list[str]  # The parts of the model that are written.
    unplaced: list[str]  # The other parts, and weights outside the ALBERT.

    @property
    def model(self) -> keras.Model:
        return self.checkpoint.source.model

    @property
    def config(self) -> dict[str, Any]:
        """The fields of the config file, without those of heads."""
        return file_config(self.layout, self.checkpoint.arguments)

    def tensors(self) -> Iterator[tuple[str, Any]]:
        """Yield pairs of name and array."""
        for weight, tensors in plan_weights(self.layout, self.model, self.parts):
            value = keras.ops.convert_to_tensor(weight)
            value = float32_of(value, tensors.names[0], self.checkpoint.path)
            yield from zip(tensors.names, tensors.from_weight(value), strict=True)

    def head_fields(self) -> dict[str, Any]:
        """Return the config fields of all heads that are written."""
        checkpoint, fields = self.checkpoint, {}
        for part in self.parts:
            if part in HEADS and HEADS[part].fields:
                count = checkpoint.num_classes(part)
                fields.update(write_head(part, count, checkpoint.head_config(part)))
        return fields

    @property
    def lost(self) -> list[str]:
        """Settings without a place in the layout."""
        if self.layout is not KERASHUB:
            return []
        head = self.checkpoint.head_config("classifier")
        lost = [f"the labels {head['labels']}"] if head.get("labels") else []
        if head.get("multi_label"):
            lost.append("multi_label=True")
        if self.keras_hub_tokenizer and not getattr(self.tokenizer, "lowercase", True):
            lost.append("lowercase=False")
        return lost

    @functools.cached_property
    def keras_hub_tokenizer(self) -> keras_hub.tokenizers.AlbertTokenizer | None:
        """The tokenizer for KerasHub's models, if KerasHub has such a tokenizer."""
        # KerasHub's ALBERT has no WordPiece, and its BERT changes Chinese text.
        if not isinstance(self.tokenizer, SentencePieceTokenizer):
            return None
        return keras_hub.tokenizers.AlbertTokenizer(self.tokenizer.proto)


def _contents_of_model(model: Any, layout: str, tokenizer: Any = None) -> Contents:
    if not isinstance(model, keras.Model):
        raise TypeError(
            "`model` should be an AlbertBackbone or a task on one. Received: "
            f"{model!r}. Files are converted by `convert_checkpoint`."
        )
    contents = _contents_of(Checkpoint(model), layout, tokenizer)
    if contents.unplaced:
        raise CheckpointError(
            f'The "{layout}" layout has no place for {", ".join(contents.unplaced)} of '
            "this model. Save `model.backbone`, or choose another layout."
        )
    return contents


def _contents_of(opened: Checkpoint, layout: str, tokenizer: Any) -> Contents:
    if layout not in (*LAYOUTS, "keras"):
        raise AlbertError(f"Unknown layout {layout!r}. Known: {[*LAYOUTS, 'keras']}")
    arguments = opened.arguments
    target = LAYOUTS.get(layout) or own_layout(arguments)
    if differ := layout_differences(target, arguments):
        fit = (x for x, y in LAYOUTS.items() if not layout_differences(y, arguments))
        raise CheckpointError(
            f'The "{layout}" layout cannot hold this model: {"; ".join(differ)}. '
            f"Layouts that can: {', '.join([*fit, 'keras'])}."
        )
    if isinstance(tokenizer, (str, os.PathLike)):
        tokenizer = opened.tokenizer(vocabulary=tokenizer)
    elif tokenizer is None:
        tokenizer = opened.tokenizer()
    else:
        opened.check_vocabulary(tokenizer)
    is_ours = opened.source.is_ours and opened.source.model is not None
    checkpoint = Checkpoint(opened.source.model if is_ours else _build_model(opened))
    parts = [part for part in checkpoint.parts if part in target.weights]
    unplaced = [part for part in checkpoint.parts if part not in parts]
    unplaced += opened.source.outside
    if target in (HUGGINGFACE, KERASHUB):
        _refuse_other_pooling(checkpoint, parts, layout)
    return Contents(checkpoint, target, tokenizer, parts, unplaced)


def _build_model(checkpoint: Checkpoint) -> keras.Model:
    # Imported here, because models load their weights by this package.
    from albert_tf.models.building import build_model

    return build_model(checkpoint)


def _refuse_other_pooling(
    checkpoint: Checkpoint, parts: list[str], layout: str
) -> None:
    """Refuse a pooling that other code would silently replace by the pooler."""
    for part in filter(checkpoint.heads.__contains__, parts):
        mode = checkpoint.head_config(part).get("pooling_mode", "cls")
        if mode != "cls":
            raise CheckpointError(
                f'The "{layout}" layout has no place for pooling_mode="{mode}" of the '
                f"{part}: other code pools by the first token. Save `model.backbone`, "
                'or with layout="keras".'
            )


# === Writing ===


def _write(contents: Contents, path: str | os.PathLike) -> None:
    _refuse_another_checkpoint(pathlib.Path(path), contents)
    with complete_directory(path) as directory:
        _WRITERS[contents.layout.name](directory, contents)


def _refuse_another_checkpoint(folder: pathlib.Path, contents: Contents) -> None:
    """Refuse a folder in which files of two checkpoints would be mixed."""
    if not folder.is_dir():
        return
    tokenizer, replaced = contents.tokenizer, set(_REPLACED[contents.layout.name])
    found = {
        "a preset" if path == folder else path.name
        for _, path in find_checkpoints(folder)
    }
    if tokenizer is not None:
        replaced.add(str(tokenizer.original_file_name))
    for format_ in FORMATS:
        patterns = format_.config_patterns
        # A vocabulary beside a model without tokenizer is not replaced.
        if tokenizer is not None:
            patterns = (*patterns, *format_.vocabulary_patterns)
        found.update(file.name for x in patterns for file in folder.glob(x))
    if others := sorted(found - replaced):
        raise FileExistsError(
            f"{folder} holds files of another checkpoint: {listed(others)}. "
            "Choose another directory."
        )


def _write_bundle(directory: pathlib.Path, contents: Contents) -> None:
    tokenizer, heads = contents.tokenizer, contents.head_fields()
    config, parts = {**contents.config, **heads}, contents.parts
    if heads or any(part in HEADS and HEADS[part].by_architecture for part in parts):
        config["architectures"] = architectures(parts)
    if tokenizer is not None:
        tokenizer.save_original(directory)
        if not tokenizer.lowercase:
            config["do_lower_case"] = False
    write_json(directory / "albert_config.json", config)
    write_tensors(directory / PREFIX, contents.tensors())


def _write_huggingface(directory: pathlib.Path, contents: Contents) -> None:
    checkpoint, parts = contents.checkpoint, contents.parts
    # The sentence-order head of transformers has `num_labels` classes, too.
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


def _write_keras_hub(directory: pathlib.Path, contents: Contents) -> None:
    tokenizer = contents.keras_hub_tokenizer
    model = _build_keras_hub(contents, tokenizer)
    _write_preset(directory, model, tokenizer or contents.tokenizer)


def _write_keras(directory: pathlib.Path, contents: Contents) -> None:
    _write_preset(directory, contents.model, contents.tokenizer)


def _write_preset(directory: pathlib.Path, model: keras.Model, tokenizer: Any) -> None:
    model.save_to_preset(str(directory))
    if tokenizer is not None and getattr(model, "preprocessor", None) is None:
        tokenizer.save_to_preset(str(directory))


def _build_keras_hub(contents: Contents, tokenizer: Any = None) -> keras.Model:
    config, checkpoint = contents.config, contents.checkpoint
    try:
        with without_initializing():
            model = keras_hub.models.AlbertBackbone(**config)
    except ValueError as error:
        raise CheckpointError(
            f'The "kerashub" layout cannot hold this model: {first_line(error)}'
        ) from error
    if classes := checkpoint.num_classes("classifier"):
        head = checkpoint.head_config("classifier")
        preprocessor = tokenizer and keras_hub.models.AlbertTextClassifierPreprocessor(
            tokenizer, sequence_length=config["max_sequence_length"]
        )
        model = keras_hub.models.AlbertTextClassifier(
            model,
            classes,
            preprocessor=preprocessor,
            dropout=head["dropout"],
            activation=head["activation"],
        )
    weights = {weight.path: weight for weight in model.weights}
    for name, value in contents.tensors():
        weights[name].assign(value)
    return model


_WRITERS = {
    "google": _write_bundle,
    "albert_zh": _write_bundle,
    "huggingface": _write_huggingface,
    "kerashub": _write_keras_hub,
    "keras": _write_keras,
}
# Files that may be replaced by a newer checkpoint; presets have too many.
_REPLACED = {
    "google": (PREFIX, "albert_config.json"),
    "albert_zh": (PREFIX, "albert_config.json"),
    "huggingface": (WEIGHTS, "config.json"),
    "kerashub": (),
    "keras": (),
}


# === Verification ===


def verify_conversion(
    source: CheckpointPath,
    destination: CheckpointPath,
    config: Config | None = None,
    seed: int = 0,
) -> dict[str, float]:
    """Run two checkpoints on the same random batch.

    KerasHub's presets are run by KerasHub's own code.

    Args:
        source: the checkpoint that was converted.
        destination: string, the result.
        config: optional path or dict, the config of the source.
        seed: int, seed of the batch.

    Returns:
        A dict of output to the largest absolute difference, for every output that
        both have.

    Raises:
        FileNotFoundError, CheckpointError: as `load_checkpoint`.

    Example:
    ```python
    path = "examples/albert_micro_zh"
    albert_tf.checkpoints.convert_checkpoint(path, "converted", "keras")
    albert_tf.checkpoints.verify_conversion(path, "converted")
    ```
    """
    first = _outputs(open_checkpoint(source, config=config), seed)
    second = _outputs(open_checkpoint(destination), seed)
    return {
        name: float(np.abs(first[name] - second[name]).max())
        for name in first
        if name in second
    }


def _outputs(checkpoint: Checkpoint, seed: int) -> dict[str, np.ndarray]:
    inputs, source = _random_batch(checkpoint.arguments, seed), checkpoint.source
    # A model of albert_tf is built again, to compute in float32.
    model: Any = _build_model(checkpoint) if source.is_ours else source.model
    backbone = getattr(model, "backbone", model)
    outputs = dict(backbone({name: inputs[name] for name in backbone.input}))
    if model is not backbone:
        heads = model({name: inputs[name] for name in model.input})
        outputs.update(heads if isinstance(heads, dict) else {"logits": heads})
    return {name: numbers_of(array) for name, array in outputs.items()}


def _random_batch(arguments: dict[str, Any], seed: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    shape = (3, min(17, arguments["max_sequence_length"]))
    lengths = random.integers(1, shape[1] + 1, (shape[0], 1))
    return {
        "token_ids": random.integers(0, arguments["vocabulary_size"], shape),
        "segment_ids": random.integers(0, arguments["num_segments"], shape),
        "padding_mask": (np.arange(shape[1]) < lengths).astype("int64"),
        "mask_positions": random.integers(0, shape[1], (3, 4)),
    }
