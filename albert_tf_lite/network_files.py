"""Exported files by their suffix, and the network beside a model."""

import hashlib
import os
import pathlib
from typing import Any

from albert_tf_lite.errors import AlbertError
from albert_tf_lite.exported_model import ExportedModel
from albert_tf_lite.litert_model import LiteRTModel
from albert_tf_lite.onnx_model import OnnxModel
from albert_tf_lite.pointers import read_bytes

# The file in the directory of a model that answers without TensorFlow.
NETWORK = "model.onnx"
# The suffix of the same network in int8, and how often its answers must be those of
# float32 for it to answer by default. With fewer examples, it would mean all.
INT8 = ".int8.onnx"
LEAST_AGREEMENT, LEAST_EXAMPLES = 0.995, 200
_PRECISIONS = ("float32", "int8")
# The files of a model that determine its answers: of a preset, of a checkpoint of
# TensorFlow, whose index has the checksums of the weights, and of a directory of
# Hugging Face.
_PRESET = (
    "config.json",
    "task.json",
    "preprocessor.json",
    "tokenizer.json",
    "*.weights.h5",
    "assets/tokenizer/*",
    "albert_config*.json",
    "bert_config*.json",
    "*.index",
    "vocab*.txt",
    "*.model",
    "tokenizer_config.json",
    "added_tokens.json",
    "*.safetensors",
    "pytorch_model*.bin",
    "*.keras",
)


def open_exported(
    path: str | os.PathLike,
    threads: int | None = None,
    file: str = NETWORK,
    precision: str | None = None,
) -> ExportedModel:
    """Open an exported file, or the one called `file` in the directory of a model.

    Beside `file` there may be one in int8. With `precision=None` it is opened if
    `is_safe`. Raise if the directory has no file, or that of a model with other
    weights.
    """
    path = pathlib.Path(path)
    if precision not in (None, *_PRECISIONS):
        raise AlbertError(
            f"`precision` must be one of {', '.join(_PRECISIONS)}. Received: "
            f"{precision!r}"
        )
    if not path.is_dir():
        if precision:
            raise AlbertError(
                "`precision` chooses a file in the directory of a model. Received the "
                f"file {path}. Leave it out."
            )
        is_litert = path.suffix == ".tflite"
        return LiteRTModel(path, threads) if is_litert else OnnxModel(path, threads)
    int8 = int8_file(path / file)
    if precision is None and int8.is_file():
        model = OnnxModel(int8, threads)
        if is_safe(model.settings) and _is_of(model, path):
            return model
    network = int8 if precision == "int8" else path / file
    if not network.is_file():
        condition = " if it is as good as float32" if network == int8 else ""
        raise AlbertError(
            f"{path} has no {network.name}, which `albert-tf finetune` writes"
            f"{condition}. Export the model with albert_tf.export.onnx, or use "
            "albert_tf.pipeline."
        )
    model = OnnxModel(network, threads)
    if not _is_of(model, path):
        raise AlbertError(
            f"{network} is not of the model beside it, which was saved later. "
            "Export it again with albert_tf.export.onnx."
        )
    return model


def int8_file(network: str | os.PathLike) -> pathlib.Path:
    """Return the path of the int8 file beside a network."""
    return pathlib.Path(network).with_suffix(INT8)


def is_safe(settings: dict[str, Any]) -> bool:
    """Return whether an int8 file answers often enough as float32, on enough texts."""
    agreement = settings.get("agreement", {"answers": 0.0, "examples": 0})
    is_enough = agreement["examples"] >= LEAST_EXAMPLES
    return is_enough and agreement["answers"] >= LEAST_AGREEMENT


def _is_of(model: ExportedModel, directory: pathlib.Path) -> bool:
    """Return whether an exported file was written from the model in a directory."""
    return model.settings.get("preset") == preset_digest(directory)


def preset_files(directory: pathlib.Path) -> list[pathlib.Path]:
    """Return the files of a model that determine its answers."""
    return sorted({file for pattern in _PRESET for file in directory.glob(pattern)})


def preset_digest(directory: str | os.PathLike) -> str:
    """Return the fingerprint of the files of a model that determine its answers."""
    directory = pathlib.Path(directory)
    digest = hashlib.sha256()
    for file in preset_files(directory):
        digest.update(file.relative_to(directory).as_posix().encode() + b"\0")
        digest.update(read_bytes(file))
    return digest.hexdigest()
