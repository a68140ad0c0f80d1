"""Finding the files of a TF1 checkpoint, and reading and writing its tensors."""

import pathlib
import re

import tensorflow as tf

from albert_tf.checkpoints.layout import CheckpointError

CONFIG_PATTERNS = ("albert_config*.json", "bert_config*.json")
VOCABULARY_PATTERNS = ("vocab*.txt", "vocabulary*.txt")

_FILE_ENDING = re.compile(r"\.(index|meta|data-\d{5}-of-\d{5})$")


def find_prefix(path):
    """Find the checkpoint that a path means.

    Args:
        path: string or path: a directory, a prefix such as `model.ckpt-best`, or
            the name of any of the checkpoint's files.

    Returns:
        The prefix, a `pathlib.Path`.

    Raises:
        FileNotFoundError: if there is no checkpoint, or not all of its files.
        CheckpointError: if a directory holds more than one.
    """
    path = pathlib.Path(path)
    prefix = _only_prefix_in(path) if path.is_dir() else _strip_ending(path)
    index = _with_ending(prefix, ".index")
    if not index.exists():
        raise FileNotFoundError(
            f"There is no checkpoint at {path}: {index} does not exist. Give the "
            "directory, the prefix (such as albert_model.ckpt) or any file of a "
            "TensorFlow checkpoint."
        )
    if not list(index.parent.glob(_escape(prefix.name) + ".data-*-of-*")):
        raise FileNotFoundError(
            f"{index} has no data beside it: {prefix}.data-00000-of-00001 does not "
            "exist. A checkpoint is both files; put the data file beside the index."
        )
    return prefix


def _only_prefix_in(directory):
    prefixes = sorted(_strip_ending(file) for file in directory.glob("*.index"))
    if not prefixes:
        raise FileNotFoundError(
            f"There is no checkpoint in {directory}: it holds no *.index file. "
            f"Found: {sorted(file.name for file in directory.iterdir())[:10]}"
        )
    if len(prefixes) > 1:
        raise CheckpointError(
            f"{directory} holds {len(prefixes)} checkpoints: "
            f"{[prefix.name for prefix in prefixes]}. Say which, such as "
            f"{prefixes[-1]}"
        )
    return prefixes[0]


def _strip_ending(path):
    return path.with_name(_FILE_ENDING.sub("", path.name))


def _with_ending(prefix, ending):
    return prefix.with_name(prefix.name + ending)


def _escape(name):
    return re.sub(r"([*?[])", r"[\1]", name)


def find_beside(prefix, patterns, what):
    """The one file beside a checkpoint that matches a pattern.

    Args:
        prefix: path of the checkpoint.
        patterns: glob patterns, the first that matches anything counts.
        what: string, what is looked for, for the message.

    Returns:
        A path, or `None` if there is none.

    Raises:
        CheckpointError: if several match.
    """
    for pattern in patterns:
        found = sorted(prefix.parent.glob(pattern))
        if len(found) > 1:
            raise CheckpointError(
                f"{prefix.parent} holds several {what} files: "
                f"{[file.name for file in found]}. Say which one to use."
            )
        if found:
            return found[0]
    return None


class TensorFile:
    """The tensors of a TF1 checkpoint, read one by one.

    Args:
        prefix: path of the checkpoint, without ending.

    Raises:
        CheckpointError: if the index cannot be read.
    """

    def __init__(self, prefix):
        self.prefix = prefix
        try:
            self._reader = tf.train.load_checkpoint(str(prefix))
            self.shapes = self._reader.get_variable_to_shape_map()
        except (tf.errors.OpError, ValueError, RuntimeError) as error:
            raise CheckpointError(
                f"{prefix}.index cannot be read; it is damaged or no TensorFlow "
                f"checkpoint. Fetch it again. ({_first_line(error)})"
            ) from error

    def read(self, name):
        """Read a tensor; TensorFlow compares its checksum.

        Raises:
            CheckpointError: if the data file is too short or was changed.
        """
        try:
            return self._reader.get_tensor(name)
        except (tf.errors.OpError, ValueError, RuntimeError, IndexError) as error:
            raise CheckpointError(
                f"{name} cannot be read from {self.prefix}.data-*: the file is cut "
                f"short or damaged. Fetch it again. ({_first_line(error)})"
            ) from error


def write_tensors(prefix, tensors):
    """Write a TF1 checkpoint (a V2 bundle, as `tf.train.Saver` writes it).

    Args:
        prefix: path without ending.
        tensors: dict of variable name to array.
    """
    tf.raw_ops.SaveV2(
        prefix=str(prefix),
        tensor_names=list(tensors),
        shape_and_slices=[""] * len(tensors),
        tensors=list(tensors.values()),
    )


def _first_line(error):
    return str(error).strip().splitlines()[0] if str(error).strip() else repr(error)
