"""TensorFlow 1 checkpoints: finding their files, reading and writing tensors."""

from __future__ import annotations

import glob
import math
import pathlib
import re
import tempfile
from collections.abc import Iterable
from typing import Any

import tensorflow as tf

from albert_tf.checkpoints.formats.base import Source
from albert_tf.checkpoints.layout import CheckpointError, first_line
from albert_tf.checkpoints.layouts import ALBERT_ZH, GOOGLE
from albert_tf.checkpoints.releases import find_release

_FILE_ENDING = re.compile(r"\.(index|meta|data-\d{5}-of-\d{5})$")
# TensorFlow's reader raises these for truncated, changed and missing files.
_DAMAGE = (tf.errors.OpError, IndexError)


class TensorFlowBundle(Source):
    """A TF1 checkpoint, or the variables of a TF-Hub module.

    Args:
        path: path of a prefix, such as `model.ckpt-best`, or of one of its files.
    """

    layouts = (GOOGLE, ALBERT_ZH)
    config_patterns = ("albert_config*.json", "bert_config*.json")

    def __init__(self, path: pathlib.Path) -> None:
        self.path = prefix = _strip_ending(path)
        self.folders = [prefix.parent]
        module = prefix.parent.parent
        if _is_module(module):
            self.folders = [module / "assets", module, prefix.parent]
        index, data = _find_files(prefix, path)
        self.release = find_release(index)
        self._prefix = self._readable_prefix()
        try:
            reader = tf.train.load_checkpoint(self._prefix)
            shapes = reader.get_variable_to_shape_map()
            self._dtypes = dtypes = reader.get_variable_to_dtype_map()
        except _DAMAGE as error:
            raise CheckpointError(
                f"{index} is damaged or is not the index of a TensorFlow checkpoint. "
                f"Download or copy the checkpoint again. ({first_line(error)})"
            ) from error
        self.shapes = dict(sorted(shapes.items()))
        expected = sum(math.prod(x) * dtypes[name].size for name, x in shapes.items())
        found = sum(file.stat().st_size for file in data)
        if found < expected:
            raise CheckpointError(
                f"{data[0]} is cut short or belongs to another checkpoint: expected "
                f"{expected} bytes, found {found}. Download or copy the checkpoint "
                "again."
            )

    def _readable_prefix(self) -> str:
        """Return a prefix that TensorFlow takes for neither a pattern nor a folder."""
        if not re.search(r"[*?\[\\]", str(self.path)) and not self.path.is_dir():
            return str(self.path)
        self._links = tempfile.TemporaryDirectory(prefix="albert_tf_")
        for file in self.path.parent.iterdir():
            if file.name.startswith(f"{self.path.name}."):
                name = "model" + file.name.removeprefix(self.path.name)
                pathlib.Path(self._links.name, name).symlink_to(file.resolve())
        return f"{self._links.name}/model"

    @classmethod
    def find(cls, folder: pathlib.Path) -> list[pathlib.Path]:
        """Return the prefixes of the checkpoints in a folder."""
        prefixes = sorted(_strip_ending(file) for file in folder.glob("*.index"))
        return prefixes + [folder / "variables" / "variables"] * _is_module(folder)

    @staticmethod
    def is_at(path: pathlib.Path) -> bool:
        """Return whether the path is a prefix."""
        return path.with_name(f"{path.name}.index").exists()

    def read(self, name: str) -> tf.Tensor:
        """Read a tensor; TensorFlow compares its checksum."""
        try:
            # The reader's `get_tensor` would copy it into an array of NumPy.
            with tf.device("cpu"):
                (value,) = tf.raw_ops.RestoreV2(
                    prefix=self._prefix,
                    tensor_names=[name],
                    shape_and_slices=[""],
                    dtypes=[self._dtypes[name]],
                )
        except _DAMAGE as error:
            raise CheckpointError(
                f"{name} cannot be read from {self.path}.data-*: the file is cut "
                f"short or damaged. Download it again. ({first_line(error)})"
            ) from error
        return value


def _strip_ending(path: pathlib.Path) -> pathlib.Path:
    return path.with_name(_FILE_ENDING.sub("", path.name))


def _is_module(folder: pathlib.Path) -> bool:
    return (folder / "saved_model.pb").exists() and (folder / "variables").is_dir()


def _find_files(
    prefix: pathlib.Path, given: pathlib.Path
) -> tuple[pathlib.Path, list[pathlib.Path]]:
    """Return the index and the data files of a prefix."""
    index = prefix.with_name(f"{prefix.name}.index")
    if not index.is_file():
        raise FileNotFoundError(
            f"There is no checkpoint at {given}: no folder, file or release has this "
            f"name, and {index} does not exist. Give the directory, an archive, the "
            "prefix (such as albert_model.ckpt), any file of a checkpoint, or the "
            "name of a release (`albert-tf download` lists them)."
        )
    data = sorted(index.parent.glob(f"{glob.escape(prefix.name)}.data-*-of-*"))
    if not data:
        raise FileNotFoundError(
            f"{index} has no data beside it: {prefix}.data-00000-of-00001 does not "
            "exist. A checkpoint is both files; put the data file beside the index."
        )
    return index, data


def write_tensors(prefix: pathlib.Path, tensors: Iterable[tuple[str, Any]]) -> None:
    """Write pairs of name and array as `tf.train.Saver` does."""
    # Converted one by one, so that at most one tensor is in memory twice.
    converted = {name: tf.convert_to_tensor(value) for name, value in tensors}
    tf.raw_ops.SaveV2(
        prefix=str(prefix),
        tensor_names=list(converted),
        shape_and_slices=[""] * len(converted),
        tensors=list(converted.values()),
    )
