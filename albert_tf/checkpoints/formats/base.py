"""What every form of a checkpoint can be asked."""

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
    outside = []
    model = None
    is_ours = True

    def find_layout(self):
        """The `Layout` whose names the file has."""
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
        """What to call the config in messages, and its fields.

        Args:
            config: optional path or dict. By default the file beside.
        """
        if isinstance(config, dict):
            return "the given config", config
        path = config or self._find_beside(self.config_patterns, "config", "`config=`")
        if path is None:
            raise FileNotFoundError(
                f"There is no config beside {self.path}: "
                f"{' or '.join(self.config_patterns)}. "
                "Put it there or give it with `config=`."
            )
        return str(path), read_config(path)

    def head_config(self, part, config, name):
        """How a head is to be used, arguments of its task; see `read_head`."""
        return read_head(part, config, name)

    def lowercase(self, config):
        """Whether the tokenizer is to lower-case, `True` unless the config denies."""
        return read_flag(config, "do_lower_case", self.path)

    @property
    def vocabulary(self):
        """The path of what holds the vocabulary, `None` if nothing does."""
        return self._find_beside(
            self.vocabulary_patterns, "vocabulary", "`vocabulary=`"
        )

    def tokenizer(self, lowercase):
        """The tokenizer of the vocabulary, `None` without one."""
        if self.vocabulary is None:
            return None
        return load_tokenizer(self.vocabulary, lowercase=lowercase)

    def _find_beside(self, patterns, what, option):
        """The one file that matches the first pattern that matches any, or `None`."""
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
