"""Opening checkpoints: from a path or a name to the format that reads it."""

from __future__ import annotations

import os
import pathlib
import re
import tempfile
from typing import Any

import keras

from albert_tf.checkpoints.download import (
    ARCHIVES,
    HUB,
    download_release,
    fetch_from_hub,
    unpack,
)
from albert_tf.checkpoints.formats import Source
from albert_tf.checkpoints.formats.bundle import TensorFlowBundle
from albert_tf.checkpoints.formats.huggingface import HuggingFaceFiles
from albert_tf.checkpoints.formats.keras_model import KerasModel
from albert_tf.checkpoints.layout import CheckpointError
from albert_tf.checkpoints.releases import RELEASES

_FORMATS: tuple[type[Source], ...] = (TensorFlowBundle, HuggingFaceFiles, KerasModel)
# Files beside the weights; a path of one of them names its folder.
_BESIDE = re.compile(r"(\.json|\.pb|\.h5|\.txt|\.model|/checkpoint)$")


def open_source(path: Any) -> Source:
    """Open a checkpoint, see `load_checkpoint`, by the format that reads it."""
    if isinstance(path, keras.Model):
        return KerasModel(path)
    if not path or not isinstance(path, (str, os.PathLike)):
        raise TypeError(
            "`path` must be the path of a checkpoint, the name of a release or a Keras "
            f"model. Received: {path!r}"
        )
    name, path = str(path), pathlib.Path(path)
    if name.startswith(HUB):
        return _open_folder(fetch_from_hub(name))
    if path.is_dir():
        return _open_folder(path)
    if name.endswith(ARCHIVES) and path.exists():
        return _open_archive(path)
    if name.endswith(".keras"):
        return KerasModel(path)
    if re.search(r"\.(safetensors|bin)$", name):
        return HuggingFaceFiles(path)
    if path.is_file() and _BESIDE.search(path.as_posix()):
        inside = path.parent.name in ("assets", "variables")
        return _open_folder(path.parent.parent if inside else path.parent)
    if name in RELEASES and not path.with_name(f"{path.name}.index").exists():
        return _open_folder(download_release(name))
    return TensorFlowBundle(path)


def _open_folder(folder: pathlib.Path) -> Source:
    found = _find(folder)
    if not found:
        # Archives often hold a folder, perhaps in another one. A dict, because the
        # variables of a module are found from both folders above them.
        below = sorted((*folder.glob("*/"), *folder.glob("*/*/")))
        found = list(dict.fromkeys(y for x in below for y in _find(x)))
    if not found:
        raise FileNotFoundError(
            f"There is no checkpoint in {folder}. Expected an *.index file of "
            "TensorFlow, model.safetensors, pytorch_model.bin or a preset of Keras. "
            f"Found: {sorted(file.name for file in folder.iterdir())[:10]}"
        )
    if len(found) > 1:
        names = [str(path.relative_to(folder)) for _, path in found]
        raise CheckpointError(
            f"{folder} holds {len(found)} checkpoints: {names}. Choose one, for "
            f"example {found[-1][1]}"
        )
    ((format_, path),) = found
    return format_(path)


def _find(folder: pathlib.Path) -> list[tuple[type[Source], pathlib.Path]]:
    """Return the format and path of each checkpoint in a folder."""
    return [(format_, path) for format_ in _FORMATS for path in format_.find(folder)]


def _open_archive(path: pathlib.Path) -> Source:
    unpacked = tempfile.TemporaryDirectory(prefix="albert_tf_")
    folder = pathlib.Path(unpacked.name)
    unpack(path, folder)
    source = _open_folder(folder)
    source.path = path / source.path.relative_to(folder)
    source.unpacked = unpacked
    return source
