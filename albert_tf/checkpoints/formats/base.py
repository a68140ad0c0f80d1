"""What every form of a checkpoint can be asked."""

import pathlib

from albert_tf.checkpoints.config import read_config
from albert_tf.checkpoints.head_fields import read_head
from albert_tf.checkpoints.layout import CheckpointError
from albert_tf.tokenizers import load_tokenizer


class Source:
    """An opened checkpoint: tensors by name, and what lies beside them.

    Attributes:
        layouts: tuple of the `Layout`s that the form may have.
        config_patterns, vocabulary_patterns: tuples of glob patterns of the files.
        path: path of the checkpoint, for messages.
        folders: list of paths, where config and vocabulary may lie.
        shapes: dict of name in the file to list of ints.
        checksums: dict of name in the file to the CRC32C of the data, if known.
        outside: list of the names of weights that are no part of the ALBERT.
        model: the Keras model that holds the tensors, `None` where files do.
        is_ours: bool. `False` if `model` is one of KerasHub's.
    """

    layouts = ()
    config_patterns = ()
    vocabulary_patterns = ("vocab*.txt", "*.model")
    checksums = {}
    outside = ()
    model = None
    is_ours = True

    @classmethod
    def find(cls, folder):
        """The paths in a folder that this form can open, a list."""
        raise NotImplementedError

    def read(self, name):
        """The tensor of a name in the file, an array.

        Raises:
            CheckpointError: if it is not what was written.
        """
        raise NotImplementedError

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
        """The config's fields, and what to call them in messages.

        Args:
            config: optional path or dict. By default the file beside.
        """
        if isinstance(config, dict):
            return "the given config", config
        path = pathlib.Path(config) if config else self._config_beside()
        return str(path), read_config(path)

    def _config_beside(self):
        path = self.find_beside(self.config_patterns, "config", "`config=`")
        if path is None:
            raise FileNotFoundError(
                f"There is no config beside {self.path}: "
                f"{' or '.join(self.config_patterns)}. "
                "Put it there or give it with `config=`."
            )
        return path

    def head_config(self, part, config, name):
        """How a head among the tensors is to be used, arguments of its task.

        Args:
            part: string, a name of `HEADS`.
            config: dict, the fields of the config.
            name: string, what to call it in messages.
        """
        return read_head(part, config, name)

    def lowercase(self, config):
        """Whether the tokenizer is to lower-case, `True` unless the config denies.

        Args:
            config: dict, the fields of the config.
        """
        return read_flag(config, "do_lower_case", self.path)

    @property
    def vocabulary(self):
        """The path of what holds the vocabulary, `None` if nothing does."""
        return self.find_beside(
            self.vocabulary_patterns, "vocabulary", "`vocabulary=` or --vocab"
        )

    def tokenizer(self, lowercase):
        """The tokenizer of the vocabulary, `None` without one.

        Args:
            lowercase: bool. Whether it is to lower-case.
        """
        if self.vocabulary is None:
            return None
        return load_tokenizer(self.vocabulary, lowercase=lowercase)

    def find_beside(self, patterns, what, option):
        """The one file beside the checkpoint that matches a pattern.

        Args:
            patterns: glob patterns, the first that matches anything counts.
            what: string, what is looked for, for the message.
            option: string, how to say which one is meant.

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
                    f"{[file.name for file in found]}. Say which one with {option}."
                )
            if found:
                return found[0]
        return None


def read_flag(config, field, path):
    """A field of a config that is true or false, true if it is not there."""
    value = config.get(field, True)
    if not isinstance(value, bool):
        raise CheckpointError(
            f"{path} has {field}={value!r} in its config. Expected true or false."
        )
    return value
