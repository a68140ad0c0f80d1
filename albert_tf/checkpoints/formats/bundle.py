"""TensorFlow 1 checkpoints: finding their files, reading and writing tensors."""

import glob
import pathlib
import re
from collections.abc import Iterable
from typing import Any

import tensorflow as tf

from albert_tf.checkpoints.formats import Files
from albert_tf.checkpoints.formats.bundle_index import Entry, read_index
from albert_tf.checkpoints.layout import (
    CheckpointError,
    exported_model_error,
    name_damage,
)
from albert_tf.checkpoints.layouts import ALBERT_ZH, GOOGLE
from albert_tf.checkpoints.releases import find_release
from albert_tf.writing_errors import writing_errors
from albert_tf_lite.changes import change_check
from albert_tf_lite.pointers import check_downloaded

FILE_ENDING = re.compile(r"\.(index|meta|data-\d{5}-of-\d{5})$")
# TensorFlow raises these for truncated, changed and missing files.
_DAMAGE = (tf.errors.OpError, IndexError)


def find(folder: pathlib.Path) -> list[pathlib.Path]:
    """Return the prefixes of the checkpoints in a folder, or the latest one."""
    # Not the files that macOS adds to archives, such as ._model.ckpt.index.
    indexes = filter(pathlib.Path.is_file, folder.glob("[!.]*.index"))
    prefixes = sorted(map(_strip_ending, indexes))
    if (latest := _latest(folder)) in prefixes:
        prefixes = [latest]
    if _is_module(folder):
        prefixes.append(folder / "variables" / "variables")
    return prefixes


def files_of(path: pathlib.Path) -> list[pathlib.Path]:
    """Return the files of a checkpoint by its prefix, the index first."""
    prefix = _strip_ending(path)
    index = prefix.with_name(f"{prefix.name}.index")
    if not index.is_file():
        raise FileNotFoundError(
            f"There is no checkpoint at {path}, and {index} does not exist. Pass "
            "a directory, an archive, a prefix (such as albert_model.ckpt), a file "
            "of a checkpoint, or the name of a release."
        )
    data = list(prefix.parent.glob(f"{glob.escape(prefix.name)}.data-*-of-*"))
    if not data:
        raise FileNotFoundError(
            f"{prefix}.data-00000-of-00001 does not exist. Put it beside {index}."
        )
    return [index, *data]


def open_files(path: pathlib.Path) -> Files:
    """Open a TF1 checkpoint, or a TF-Hub module, by its prefix or one of its files."""
    prefix = _strip_ending(path)
    folders, module = [prefix.parent], prefix.parent.parent
    if _is_module(module):
        folders = [module / "assets", module, prefix.parent]
    index, *data = files_of(path)
    check_downloaded(index, *data)
    check_unchanged = change_check(index, *data)
    with name_damage(index, ValueError):
        entries = read_index(index)
    if "_CHECKPOINTABLE_OBJECT_GRAPH" in entries and _is_module(module):
        raise exported_model_error(module, "a SavedModel, as for TensorFlow Serving")
    _check_sizes(prefix, entries)

    def read(name: str) -> tf.Tensor:
        # TensorFlow compares the checksum. The reader's `get_tensor` would copy the
        # tensor into an array of NumPy.
        with name_damage(f"{prefix}.data-* ({name})", *_DAMAGE), tf.device("cpu"):
            return tf.raw_ops.RestoreV2(
                prefix=str(prefix),
                tensor_names=[name],
                shape_and_slices=[""],
                dtypes=[entries[name].dtype],
            )[0]

    return Files(
        path=prefix,
        folders=folders,
        shapes={name: entry.shape for name, entry in entries.items()},
        read=read,
        layouts=(GOOGLE, ALBERT_ZH),
        check_unchanged=check_unchanged,
        release=find_release(index),
        config_patterns=("albert_config*.json", "bert_config*.json"),
    )


def _check_sizes(prefix: pathlib.Path, entries: dict[str, Entry]) -> None:
    """Raise if a file of data is shorter than the places of its tensors."""
    ends: dict[int, int] = {}
    for entry in entries.values():
        ends[entry.shard] = max(ends.get(entry.shard, 0), entry.end)
    for number, expected in ends.items():
        name = f"{prefix.name}.data-{number:05}"
        found = sorted(prefix.parent.glob(f"{glob.escape(name)}-*"))
        if not found or found[0].stat().st_size < expected:
            raise CheckpointError(
                f"{found[0] if found else name} is truncated or belongs to another "
                f"checkpoint: expected {expected} bytes. Download or copy it again."
            )


def _strip_ending(path: pathlib.Path) -> pathlib.Path:
    return path.with_name(FILE_ENDING.sub("", path.name))


def _latest(folder: pathlib.Path) -> pathlib.Path | None:
    """Return the checkpoint that TensorFlow saved last, by its file `checkpoint`."""
    file = folder / "checkpoint"
    text = file.read_text("utf-8", "replace") if file.is_file() else ""
    saved = re.search('^model_checkpoint_path: "(.+)"', text, re.MULTILINE)
    # Its directory may be that of another machine.
    return folder / pathlib.PureWindowsPath(saved[1]).name if saved else None


def _is_module(folder: pathlib.Path) -> bool:
    return (folder / "saved_model.pb").exists() and (folder / "variables").is_dir()


def write_tensors(prefix: pathlib.Path, tensors: Iterable[tuple[str, Any]]) -> None:
    """Write pairs of name and array as `tf.train.Saver` does."""
    # Converted one by one, so that at most one tensor is in memory twice.
    converted = {name: tf.convert_to_tensor(value) for name, value in tensors}
    with writing_errors(prefix, tf.errors.OpError):
        tf.raw_ops.SaveV2(
            prefix=str(prefix),
            tensor_names=list(converted),
            shape_and_slices=[""] * len(converted),
            tensors=list(converted.values()),
        )
