"""Opening checkpoints: from a path or a name to the format that reads it."""

from __future__ import annotations

import difflib
import os
import pathlib
import re
import tempfile
from typing import Any

import keras

from albert_tf.checkpoints.download import (
    download_release,
    fetch_from_hub,
    is_archive,
    is_on_hub,
    unpack,
)
from albert_tf.checkpoints.formats import (
    HuggingFaceFiles,
    KerasModel,
    TensorFlowBundle,
)
from albert_tf.checkpoints.formats.base import Source
from albert_tf.checkpoints.layout import CheckpointError
from albert_tf.checkpoints.releases import RELEASES
from albert_tf_lite.errors import AlbertError

FORMATS = (TensorFlowBundle, HuggingFaceFiles, KerasModel)

_FILES = {
    r"\.keras$": KerasModel,
    r"\.(safetensors|bin)(\.index\.json)?$": HuggingFaceFiles,
}
# Files beside the weights; a path of one of them names its folder.
_BESIDE = re.compile(r"(\.json|\.pb|\.h5|\.txt|\.model|/checkpoint)$")


def open_source(path: Any) -> Source:
    """Open a checkpoint, see `load_checkpoint`, as an object of one of `FORMATS`."""
    if isinstance(path, keras.Model):
        return KerasModel(path)
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(
            "`path` should be the path of a checkpoint, the name of a release or a "
            f"Keras model. Received: {path!r}"
        )
    name, path = str(path), pathlib.Path(path)
    if "\0" in name or not name:
        raise AlbertError(f"`path` should name a checkpoint. Received: {name!r}")
    if is_on_hub(name):
        return _open_folder(fetch_from_hub(name))
    if path.is_dir():
        return _open_folder(path)
    if path.is_file() and is_archive(path):
        return _open_archive(path)
    for pattern, format_ in _FILES.items():
        if re.search(pattern, path.name):
            return format_(path)
    if path.is_file() and _BESIDE.search(path.as_posix()):
        inside = path.parent.name in ("assets", "variables")
        return _open_folder(path.parent.parent if inside else path.parent)
    if not TensorFlowBundle.is_at(path):
        if name in RELEASES:
            return _open_folder(download_release(name))
        similar = difflib.get_close_matches(name, RELEASES, 1)
        if similar and not path.parent.name:
            raise FileNotFoundError(
                f"There is no checkpoint and no release named {name}. Did you mean "
                f"{similar[0]}?"
            )
    return TensorFlowBundle(path)


def find_checkpoints(folder: pathlib.Path) -> list[tuple[type[Source], pathlib.Path]]:
    """Return the format and path of each checkpoint in a folder."""
    return [(format_, path) for format_ in FORMATS for path in format_.find(folder)]


def _open_folder(folder: pathlib.Path) -> Source:
    found = find_checkpoints(folder)
    if not found:
        # Archives are often unpacked into a folder of their name in a folder of it.
        below = [x for x in (*folder.glob("*"), *folder.glob("*/*")) if x.is_dir()]
        # The variables of a module are found from both folders above them.
        found = list(
            dict.fromkeys(y for x in sorted(below) for y in find_checkpoints(x))
        )
    if not found:
        raise FileNotFoundError(
            f"There is no checkpoint in {folder}: it holds no *.index file of "
            "TensorFlow, no model.safetensors or pytorch_model.bin and no preset of "
            f"Keras. Found: {sorted(file.name for file in folder.iterdir())[:10]}"
        )
    if len(found) > 1:
        names = [str(path.relative_to(folder)) for _, path in found]
        raise CheckpointError(
            f"{folder} holds {len(found)} checkpoints: {names}. Choose one, for "
            f"example {found[-1][1]}"
        )
    format_, path = found[0]
    return format_(path)


def _open_archive(path: pathlib.Path) -> Source:
    unpacked = tempfile.TemporaryDirectory(prefix="albert_tf_")
    folder = unpack(path, pathlib.Path(unpacked.name) / path.name)
    source = _open_folder(folder)
    source.path = path / source.path.relative_to(folder)
    source.unpacked = unpacked
    return source
