"""From what a user names a checkpoint by to the format that reads it."""

import difflib
import os
import pathlib
import re
import tempfile

import keras

from albert_tf.checkpoints.archives import is_archive, unpack
from albert_tf.checkpoints.download import download_release
from albert_tf.checkpoints.formats import (
    HuggingFaceFiles,
    KerasModel,
    TensorFlowBundle,
)
from albert_tf.checkpoints.hub import fetch_from_hub, is_on_hub
from albert_tf.checkpoints.layout import CheckpointError
from albert_tf.checkpoints.releases import RELEASES
from albert_tf_lite.errors import AlbertError

FORMATS = (TensorFlowBundle, HuggingFaceFiles, KerasModel)

_FILES = {
    r"\.keras$": KerasModel,
    r"\.(safetensors|bin)(\.index\.json)?$": HuggingFaceFiles,
}
# Files beside the weights, any of which stands for its folder.
_BESIDE = re.compile(r"(\.json|\.pb|\.h5|\.txt|\.model|/checkpoint)$")


def open_source(path):
    """Open what `load_checkpoint` takes, as an object of one of the `FORMATS`."""
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
    if name in RELEASES and not TensorFlowBundle.is_at(path):
        return _open_folder(download_release(name))
    similar = difflib.get_close_matches(name, RELEASES, 1)
    if similar and not path.parent.name and not TensorFlowBundle.is_at(path):
        raise FileNotFoundError(
            f"There is no checkpoint and no release named {name}. Is {similar[0]} "
            "meant?"
        )
    return TensorFlowBundle(path)


def _open_folder(folder):
    found = find_checkpoints(folder)
    if not found:
        # Archives are often unpacked into a folder of their name in a folder of it.
        below = [x for x in (*folder.glob("*"), *folder.glob("*/*")) if x.is_dir()]
        # The variables of a module are found from both of the folders they are in.
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
            f"{folder} holds {len(found)} checkpoints: {names}. Say which, such as "
            f"{found[-1][1]}"
        )
    format_, path = found[0]
    return format_(path)


def find_checkpoints(folder):
    """What can be opened in a folder, a list of `(format, path)`."""
    return [(format_, path) for format_ in FORMATS for path in format_.find(folder)]


def _open_archive(path):
    unpacked = tempfile.TemporaryDirectory(prefix="albert_tf_")
    folder = unpack(path, pathlib.Path(unpacked.name) / path.name)
    source = _open_folder(folder)
    source.path = path / source.path.relative_to(folder)
    # Tensors are read when they are asked for: the files live as long.
    source.unpacked = unpacked
    return source
