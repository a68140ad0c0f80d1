"""Exported files by their suffix, and the network beside a model."""

import hashlib
import os
import pathlib

from albert_tf_lite.errors import AlbertError
from albert_tf_lite.exported_model import ExportedModel
from albert_tf_lite.litert_model import LiteRTModel
from albert_tf_lite.onnx_model import OnnxModel

# The file in the directory of a model that answers without TensorFlow.
NETWORK = "model.onnx"
# The files of a preset that determine its answers, and those of a checkpoint of
# TensorFlow, whose index has the checksums of the weights.
_PRESET = (
    *("config.json", "task.json", "preprocessor.json", "tokenizer.json"),
    *("*.weights.h5", "assets/tokenizer/*"),
    *("albert_config.json", "*.index", "vocab.txt", "spiece.model"),
)


def open_exported(
    path: str | os.PathLike, threads: int | None = None, file: str = NETWORK
) -> ExportedModel:
    """Open an exported file, or the one called `file` in the directory of a model.

    Raise if the directory has none, or that of a model with other weights.
    """
    path = pathlib.Path(path)
    if not path.is_dir():
        return (LiteRTModel if path.suffix == ".tflite" else OnnxModel)(path, threads)
    if not (path / file).is_file():
        raise AlbertError(
            f"{path} has no {file}, which `albert-tf finetune` writes. Export the "
            "model with albert_tf.export.onnx, or use albert_tf.pipeline."
        )
    model = OnnxModel(path / file, threads)
    if model.settings.get("preset") != preset_digest(path):
        raise AlbertError(
            f"{path / file} is not of the model beside it, which was saved later. "
            "Export it again with albert_tf.export.onnx."
        )
    return model


def preset_files(directory: pathlib.Path) -> list[pathlib.Path]:
    """Return the files of a model that determine its answers."""
    return sorted(file for x in _PRESET for file in directory.glob(x))


def preset_digest(directory: str | os.PathLike) -> str:
    """Return the fingerprint of the files of a model that determine its answers."""
    directory, digest = pathlib.Path(directory), hashlib.sha256()
    for file in preset_files(directory):
        digest.update(file.relative_to(directory).as_posix().encode() + b"\0")
        digest.update(file.read_bytes())
    return digest.hexdigest()
