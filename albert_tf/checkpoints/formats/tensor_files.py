"""What the formats share whose config and vocabulary are files of their own."""

import contextlib
import pathlib
import re

from albert_tf.checkpoints.config import read_config
from albert_tf.checkpoints.layout import CheckpointError


class TensorFiles:
    """Tensors in files, with config and vocabulary in files beside them.

    Attributes:
        layouts: tuple of the `Layout`s that this format may have.
        config_patterns, vocabulary_patterns: tuples of glob patterns of the files.
        lowercase: bool. Whether the tokenizer is to lower-case.
        labels: list of the names of the classes, or `None`.
        head_dropout: float, the rate before a classification head.
        has_text_classifier: bool. Whether what is named like one is one.
        activation: what a classification head ends in, `None` for logits.
        model: the Keras model that holds the tensors, `None` where files do.
        is_ours: bool. `False` if `model` is one of KerasHub's.
        path: path of the checkpoint, for messages.
        folders: list of paths, where config and vocabulary may lie.
        shapes: dict of name in the file to list of ints.
    """

    layouts = ()
    config_patterns = ()
    vocabulary_patterns = ("vocab*.txt", "vocabulary*.txt", "*.model")
    # As every release was trained.
    lowercase = True
    labels = None
    head_dropout = 0.1
    has_text_classifier = True
    activation = None
    model = None
    is_ours = True

    def find_layout(self):
        """The layout whose names the file has.

        Raises:
            CheckpointError: if it has none of them.
        """
        for layout in self.layouts:
            if layout.matches(self.shapes):
                return layout
        raise CheckpointError(
            f"{self.path} has no known ALBERT layout. Known layouts have variables "
            "such as "
            + ", ".join(f"{x.signature}... ({x.name})" for x in self.layouts)
            + f". Found: {sorted(self.shapes)[:5]} (of {len(self.shapes)})."
        )

    def find_config(self, config=None):
        """The config's fields, and what to call them in messages."""
        if isinstance(config, dict):
            return "the given config", config
        path = pathlib.Path(config) if config else self._config_beside()
        return str(path), read_config(path)

    def _config_beside(self):
        path = self.find_beside(self.config_patterns, "config")
        if path is None:
            raise FileNotFoundError(
                f"There is no config beside {self.path}: "
                f"{' or '.join(self.config_patterns)}. "
                "Put it there or give it with `config=`."
            )
        return path

    @property
    def vocabulary(self):
        """The path of the vocabulary, or `None` if there is none."""
        return self.find_beside(self.vocabulary_patterns, "vocabulary")

    def tokenizer(self, lowercase=None):
        """The tokenizer of the vocabulary beside, or `None`."""
        from albert_tf.preprocessing import load_tokenizer

        if self.vocabulary is None:
            return None
        lowercase = self.lowercase if lowercase is None else lowercase
        with naming(self.vocabulary):
            return load_tokenizer(self.vocabulary, lowercase=lowercase)

    def find_beside(self, patterns, what):
        """The one file beside the checkpoint that matches a pattern.

        Args:
            patterns: glob patterns, the first that matches anything counts.
            what: string, what is looked for, for the message.

        Returns:
            A path, or `None` if there is none.

        Raises:
            CheckpointError: if several match.
        """
        for pattern in patterns:
            found = sorted(
                file for folder in self.folders for file in folder.glob(pattern)
            )
            if len(found) > 1:
                raise CheckpointError(
                    f"{found[0].parent} holds several {what} files: "
                    f"{[file.name for file in found]}. Say which one to use."
                )
            if found:
                return found[0]
        return None


def first_line(error):
    """What an exception says, in one line, without TensorFlow's own names."""
    lines = _NODES.sub("", str(error)).strip().splitlines()
    line = lines[0] if lines else repr(error)
    # It may quote the file, which then would steer the terminal.
    return "".join(x if x.isprintable() else "?" for x in line)


_NODES = re.compile(r"\{\{.*?\}\} | \[Op:\w+\]")


@contextlib.contextmanager
def naming(path, *damage):
    """Make a library's error one of ours, which names the file.

    Args:
        path: path of the file that is read.
        *damage: further exceptions than `ValueError` that a damaged file causes.
    """
    try:
        yield
    except (ValueError, *damage) as error:
        # An error of the system names the file, one of h5py's does not.
        if isinstance(error, CheckpointError) or getattr(error, "filename", None):
            raise
        raise CheckpointError(
            f"{path} cannot be read: it is damaged, or another kind of file. "
            f"({first_line(error)})"
        ) from error
