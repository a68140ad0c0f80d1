"""TF1 checkpoints: finding their files, reading and writing their tensors."""

import functools
import glob
import os
import pathlib
import re
import tempfile

import tensorflow as tf

from albert_tf.checkpoints.formats.base import Source
from albert_tf.checkpoints.formats.bundle_index import read_index
from albert_tf.checkpoints.layout import CheckpointError, first_line
from albert_tf.checkpoints.layouts import ALBERT_ZH, GOOGLE

_FILE_ENDING = re.compile(r"\.(index|meta|data-\d{5}-of-\d{5})$")


def _find_prefix(path):
    prefix = _strip_ending(path)
    index = _with_ending(prefix, ".index")
    if index.exists() and not index.is_file():
        raise CheckpointError(f"{index} is no file. Expected an index.")
    if not index.exists():
        raise FileNotFoundError(
            f"There is no checkpoint at {path}: no folder, file or release has this "
            f"name, and {index} does not exist. Give the directory, an archive, the "
            "prefix (such as albert_model.ckpt), any file of a checkpoint, or the "
            "name of a release (albert-tf download lists them)."
        )
    if not list(index.parent.glob(glob.escape(prefix.name) + ".data-*-of-*")):
        raise FileNotFoundError(
            f"{index} has no data beside it: {prefix}.data-00000-of-00001 does not "
            "exist. A checkpoint is both files; put the data file beside the index."
        )
    return prefix


def _strip_ending(path):
    return path.with_name(_FILE_ENDING.sub("", path.name))


def _with_ending(prefix, ending):
    return prefix.with_name(prefix.name + ending)


class TensorFlowBundle(Source):
    """A TF1 checkpoint, or the variables of a TF-Hub module; read tensor by tensor.

    Args:
        path: path of a prefix, such as `model.ckpt-best`, or of one of its files.
    """

    layouts = (GOOGLE, ALBERT_ZH)
    config_patterns = ("albert_config*.json", "bert_config*.json")

    def __init__(self, path):
        self.path = self.prefix = _find_prefix(path)
        self.folders = [self.prefix.parent]
        if _is_module(self.prefix.parent.parent):
            module = self.prefix.parent.parent
            self.folders = [module / "assets", module, *self.folders]
        self._entries = read_index(self.prefix)
        self.shapes = {name: list(x.shape) for name, x in self._entries.items()}
        self.checksums = {name: x.crc32c for name, x in self._entries.items()}

    @functools.cached_property
    def _plain_prefix(self):
        """The prefix as bytes, in which TensorFlow finds no pattern of names."""
        if not re.search(r"[*?\[\\]", str(self.prefix)):
            return os.fsencode(self.prefix)
        self._links = tempfile.TemporaryDirectory(prefix="albert_tf_")
        for file in self.prefix.parent.iterdir():
            if file.name.startswith(self.prefix.name + "."):
                name = "model" + file.name.removeprefix(self.prefix.name)
                (pathlib.Path(self._links.name) / name).symlink_to(file.resolve())
        return os.fsencode(f"{self._links.name}/model")

    @classmethod
    def find(cls, folder):
        """The prefixes of the checkpoints in a folder."""
        prefixes = sorted(_strip_ending(file) for file in folder.glob("*.index"))
        if _is_module(folder):
            prefixes.append(folder / "variables" / "variables")
        return prefixes

    @staticmethod
    def is_at(path):
        """Whether the path is a prefix."""
        return _with_ending(path, ".index").exists()

    def read(self, name):
        """Read a tensor; TensorFlow compares its checksum."""
        try:
            # `tf.train.load_checkpoint` would keep the memory of what it read.
            with tf.device("cpu"):
                (value,) = tf.raw_ops.RestoreV2(
                    prefix=self._plain_prefix,
                    tensor_names=[name],
                    shape_and_slices=[""],
                    dtypes=[self._entries[name].dtype],
                )
        except tf.errors.OpError as error:
            raise CheckpointError(
                f"{name} cannot be read from {self.prefix}.data-*: the file is cut "
                f"short or damaged. Fetch it again. ({first_line(error)})"
            ) from error
        return value


def _is_module(folder):
    return (folder / "saved_model.pb").exists() and (folder / "variables").is_dir()


def write_tensors(prefix, tensors):
    """Write pairs of name and array as `tf.train.Saver` does, a V2 bundle."""
    # Made TensorFlow's one by one: all of them would be copied a second time.
    tensors = {name: tf.convert_to_tensor(value) for name, value in tensors}
    tf.raw_ops.SaveV2(
        prefix=str(prefix),
        tensor_names=list(tensors),
        shape_and_slices=[""] * len(tensors),
        tensors=list(tensors.values()),
    )
