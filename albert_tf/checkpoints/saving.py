"""Saving models in every layout, and converting checkpoints by loading and saving."""

from __future__ import annotations

import dataclasses
import os
import pathlib
from collections.abc import Iterator
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
from albert_tf.checkpoints.heads import HEADS, architectures, label_fields, write_head
from albert_tf.checkpoints.layout import (
    CheckpointError,
    Layout,
    first_line,
    float32_of,
    listed,
)
from albert_tf.checkpoints.layouts import (
    ALBERT_ZH,
    GOOGLE,
    HUGGINGFACE,
    KERASHUB,
    LAYOUTS,
    own_layout,
)
from albert_tf.checkpoints.plan import plan_weights, without_initializing
from albert_tf.files import complete_directory, write_json
from albert_tf.tokenizers import SentencePieceTokenizer
from albert_tf.tokenizers.text_tokenizer import TextTokenizer
from albert_tf_lite.errors import AlbertError

PREFIX = "albert_model.ckpt"


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
    _write(_contents_of_model(model, layout, tokenizer), path)


def check_saving(
    model: keras.Model, path: str | os.PathLike, layout: str, tokenizer: Any
) -> None:
    """Raise the errors of `save_checkpoint` without writing."""
    contents = _contents_of_model(model, layout, tokenizer)
    _check_folder(pathlib.Path(path), contents)


@dataclasses.dataclass(frozen=True)
class Conversion:
    """The result of `convert_checkpoint`."""

    layout: str  # The layout that was read.
    # For each weight the names read, the names written, and its shape.
    moved: list[tuple[tuple[str, ...], tuple[str, ...], tuple[int, ...]]]
    # Optimizer slots, the step counter, heads and settings without a place.
    left_out: list[str]


def convert_checkpoint(
    source: CheckpointPath,
    destination: str | os.PathLike,
    layout: str,
    config: Config | None = None,
    vocabulary: str | os.PathLike | None = None,
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

    Returns:
        A `Conversion`.

    Raises:
        FileNotFoundError: if a file of the source is missing.
        CheckpointError: as `load_checkpoint`, or if the layout cannot hold the model.
        AlbertError: if the layout is unknown, or the directory holds the source.
        FileExistsError: if the directory holds files of another checkpoint.

    Example:
    ```python
    albert_tf.checkpoints.convert_checkpoint(
        "examples/albert_micro_zh", "converted", "keras"
    )
    ```
    """
    opened = open_checkpoint(source, config=config)
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
    left_out = sorted(set(opened.shapes) - read) + contents.left_out
    return Conversion(opened.layout.name, moved, left_out)


# === A model in the terms of a layout ===


@dataclasses.dataclass(frozen=True)
class _Contents:
    checkpoint: Checkpoint  # The model, opened.
    layout: Layout
    tokenizer: TextTokenizer | None
    parts: list[str]  # The parts of the model that are written.
    left_out: list[str]  # Parts and settings without a place in the layout.

    @property
    def model(self) -> Any:
        return self.checkpoint.source.model

    def tensors(self) -> Iterator[tuple[str, Any]]:
        """Yield pairs of name and array."""
        for weight, tensors in plan_weights(self.layout, self.model, self.parts):
            value = keras.ops.convert_to_tensor(weight)
            value = float32_of(value, tensors.names[0], self.checkpoint.path)
            yield from zip(tensors.names, tensors.from_weight(value), strict=True)

    def config(self) -> dict[str, Any]:
        """Return the fields of the config file."""
        fields = file_config(self.layout, self.checkpoint.arguments)
        heads = {x: self.checkpoint.num_classes(x) for x in self.parts if x in HEADS}
        if self.layout is HUGGINGFACE:
            # The sentence-order head of transformers has `num_labels` classes, too.
            classes = [count for count in heads.values() if count]
            fields.update(label_fields(classes[-1] if classes else 2))
            fields["classifier_dropout_prob"] = 0.1
        # Pretrained checkpoints in the original form are later used for other tasks.
        if self.layout is HUGGINGFACE or set(heads) - {"masked_lm_head", "sop_head"}:
            fields["architectures"] = architectures(heads)
        for part, count in heads.items():
            if HEADS[part].fields:
                arguments = self.checkpoint.head_config(part)
                fields.update(write_head(part, count, arguments))
        return fields


def _contents_of_model(model: Any, layout: str, tokenizer: Any) -> _Contents:
    if not isinstance(model, keras.Model):
        raise TypeError(
            "`model` must be an AlbertBackbone or a task on one. Received: "
            f"{model!r}. Files are converted by `convert_checkpoint`."
        )
    contents = _contents_of(Checkpoint(model), layout, tokenizer)
    if contents.left_out:
        raise CheckpointError(
            f'The "{layout}" layout has no place for {", ".join(contents.left_out)} of '
            "this model. Save `model.backbone`, or choose another layout."
        )
    return contents


def _contents_of(opened: Checkpoint, layout: str, tokenizer: Any) -> _Contents:
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
    tokenizer = opened.tokenizer(vocabulary=tokenizer)
    model = opened.source.model if opened.source.is_ours else None
    checkpoint = Checkpoint(_build_model(opened) if model is None else model)
    parts, left_out = [], []
    for part in checkpoint.parts:
        head = checkpoint.head_config(part) if part in HEADS else {}
        pooling = head.get("pooling_mode", "cls")
        # Other code would silently pool by the first token.
        if pooling != "cls" and target in (HUGGINGFACE, KERASHUB):
            left_out.append(f'{part} with pooling_mode="{pooling}"')
        elif part not in target.weights:
            left_out.append(part)
        else:
            parts.append(part)
            if target is KERASHUB:
                names = ("labels", "multi_label", "thresholds")
                left_out += [f"{x}={head[x]}" for x in names if head.get(x)]
    is_pieces = isinstance(tokenizer, SentencePieceTokenizer)
    if target is KERASHUB and is_pieces and not tokenizer.lowercase:
        left_out.append("lowercase=False")
    return _Contents(checkpoint, target, tokenizer, parts, left_out)


def _build_model(checkpoint: Checkpoint) -> keras.Model:
    # Here, because models load their weights by this package.
    from albert_tf.models.building import build_model

    return build_model(checkpoint)


# === Writing ===

# Files of a checkpoint, and those that a newer one of the same layout replaces. A
# preset has too many.
_FILES = ("*.index", "*.safetensors", "*.bin", "*.keras", "*.h5", "*config*.json")
_REPLACED = {
    "google": {f"{PREFIX}.index", "albert_config.json"},
    "albert_zh": {f"{PREFIX}.index", "albert_config.json"},
    "huggingface": {WEIGHTS, "config.json", "tokenizer_config.json"},
}


def _write(contents: _Contents, path: str | os.PathLike) -> None:
    _check_folder(pathlib.Path(path), contents)
    with complete_directory(path) as directory:
        if contents.layout is HUGGINGFACE:
            _write_huggingface(directory, contents)
        elif contents.layout in (GOOGLE, ALBERT_ZH):
            _write_bundle(directory, contents)
        else:
            _write_preset(directory, contents)


def _check_folder(folder: pathlib.Path, contents: _Contents) -> None:
    """Raise if files of two checkpoints would be mixed in a folder."""
    if not folder.is_dir():
        return
    patterns, replaced = [*_FILES], {*_REPLACED.get(contents.layout.name, ())}
    if contents.tokenizer is not None:
        patterns += ["vocab*.txt", "*.model", "tokenizer.json"]
        replaced.add(str(contents.tokenizer.original_file_name))
    found = {file.name for x in patterns for file in folder.glob(x)}
    if others := sorted(found - replaced):
        raise FileExistsError(
            f"{folder} holds files of another checkpoint: {listed(others)}. "
            "Choose another directory."
        )


def _write_bundle(directory: pathlib.Path, contents: _Contents) -> None:
    tokenizer, config = contents.tokenizer, contents.config()
    if tokenizer is not None:
        tokenizer.save_original(directory)
        if not tokenizer.lowercase:
            config["do_lower_case"] = False
    write_json(directory / "albert_config.json", config)
    write_tensors(directory / PREFIX, contents.tensors())


def _write_huggingface(directory: pathlib.Path, contents: _Contents) -> None:
    config = contents.config()
    if contents.tokenizer is not None:
        positions = contents.checkpoint.arguments["max_sequence_length"]
        config.update(write_tokenizer(directory, contents.tokenizer, positions))
    write_model(directory, contents.tensors())
    write_json(directory / "config.json", config)


def _write_preset(directory: pathlib.Path, contents: _Contents) -> None:
    model, tokenizer = contents.model, contents.tokenizer
    if contents.layout is KERASHUB:
        # KerasHub's ALBERT has no WordPiece, and its BERT changes Chinese text.
        if isinstance(tokenizer, SentencePieceTokenizer):
            tokenizer = keras_hub.tokenizers.AlbertTokenizer(tokenizer.proto)
        model = _build_keras_hub(contents, tokenizer)
    model.save_to_preset(str(directory))
    if tokenizer is not None and getattr(model, "preprocessor", None) is None:
        tokenizer.save_to_preset(str(directory))


def _build_keras_hub(contents: _Contents, tokenizer: Any) -> keras.Model:
    checkpoint = contents.checkpoint
    try:
        with without_initializing():
            model = keras_hub.models.AlbertBackbone(
                **file_config(KERASHUB, checkpoint.arguments)
            )
    except ValueError as error:
        raise CheckpointError(
            f'The "kerashub" layout cannot hold this model: {first_line(error)}'
        ) from error
    if "classifier" in contents.parts:
        head = checkpoint.head_config("classifier")
        preprocessor = None
        if isinstance(tokenizer, keras_hub.tokenizers.AlbertTokenizer):
            preprocessor = keras_hub.models.AlbertTextClassifierPreprocessor(
                tokenizer, sequence_length=checkpoint.arguments["max_sequence_length"]
            )
        model = keras_hub.models.AlbertTextClassifier(
            model,
            checkpoint.num_classes("classifier"),
            preprocessor=preprocessor,
            dropout=head["dropout"],
            activation=head["activation"],
        )
    weights = {weight.path: weight for weight in model.weights}
    for name, value in contents.tensors():
        weights[name].assign(value)
    return model


# === Verification ===


def verify_conversion(
    source: CheckpointPath, destination: CheckpointPath, config: Config | None = None
) -> dict[str, float]:
    """Run two checkpoints on a random batch and compare their outputs.

    KerasHub's presets are run by KerasHub's own code.

    Args:
        source, config: see `convert_checkpoint`.
        destination: string, the converted checkpoint.

    Returns:
        The largest absolute difference of each output that both have, a dict.

    Example:
    ```python
    path = "examples/albert_micro_zh"
    albert_tf.checkpoints.convert_checkpoint(path, "converted", "keras")
    albert_tf.checkpoints.verify_conversion(path, "converted")
    ```
    """
    first = _outputs(open_checkpoint(source, config=config))
    second = _outputs(open_checkpoint(destination))
    return {
        name: float(np.abs(first[name] - second[name]).max())
        for name in first
        if name in second
    }


def _outputs(checkpoint: Checkpoint) -> dict[str, np.ndarray]:
    inputs, source = _random_batch(checkpoint.arguments), checkpoint.source
    # A model of albert_tf is built again, to compute in float32.
    model: Any = _build_model(checkpoint) if source.is_ours else source.model
    backbone = getattr(model, "backbone", model)
    outputs = dict(backbone({name: inputs[name] for name in backbone.input}))
    if model is not backbone:
        heads = model({name: inputs[name] for name in model.input})
        outputs.update(heads if isinstance(heads, dict) else {"logits": heads})
    return {name: np.asarray(array) for name, array in outputs.items()}


def _random_batch(arguments: dict[str, Any]) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    shape = (3, min(17, arguments["max_sequence_length"]))
    lengths = random.integers(1, shape[1] + 1, (shape[0], 1))
    return {
        "token_ids": random.integers(0, arguments["vocabulary_size"], shape),
        "segment_ids": random.integers(0, arguments["num_segments"], shape),
        "padding_mask": (np.arange(shape[1]) < lengths).astype("int64"),
        "mask_positions": random.integers(0, shape[1], (3, 4)),
    }
