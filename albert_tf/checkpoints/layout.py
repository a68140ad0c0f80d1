"""What a checkpoint layout is: a table, and how one table is read both ways."""

import dataclasses
import itertools
import re

import numpy as np
import tensorflow as tf

from albert_tf_lite.errors import AlbertError


class CheckpointError(AlbertError):
    """A checkpoint is damaged, incomplete, or not what its config says."""


_NODES = re.compile(r"\{\{.*?\}\} | \[Op:\w+\]")


def first_line(error):
    """What an exception says, in one line, without TensorFlow's own names."""
    lines = _NODES.sub("", str(error)).strip().splitlines()
    line = lines[0] if lines else repr(error)
    # It may quote the file, which then would steer the terminal.
    return "".join(x if x.isprintable() else "?" for x in line)


def listed(names, most=5):
    """Names for a message, the first `most` of them and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{names[:most]}{more}"


@dataclasses.dataclass(frozen=True)
class Tensors:
    """The tensors of a file that hold one weight of the model."""

    names: tuple  # Several stand side by side in the weight, along its last axis.
    transpose: bool = False  # The file has the transposed matrix.
    # The axis that the file has divided into `[num_heads, head_dim]`.
    heads_axis: int | None = None
    num_heads: int = 1  # Of the model; only read with `heads_axis`.

    def shapes(self, weight_shape):
        """The shape each tensor has in the file, a tuple of ints."""
        *rest, last = weight_shape
        shape = (*rest, last // len(self.names))
        if self.transpose:
            shape = shape[::-1]
        if self.heads_axis is not None:
            axis = self.heads_axis % len(shape)
            divided = (self.num_heads, shape[axis] // self.num_heads)
            shape = (*shape[:axis], *divided, *shape[axis + 1 :])
        return shape

    def to_weight(self, values):
        """Join the tensors of the file into the weight of the model."""
        if self._is_plain:
            return values[0]
        parts = [self._merge_heads(numbers_of(value)) for value in values]
        parts = [_transposed(part) if self.transpose else part for part in parts]
        return np.concatenate(parts, axis=-1) if len(parts) > 1 else parts[0]

    def from_weight(self, weight):
        """Split the weight of the model into the tensors of the file."""
        if self._is_plain:
            return [weight]
        shape = self.shapes(weight.shape)
        return [
            (_transposed(part) if self.transpose else part).reshape(shape)
            for part in np.split(numbers_of(weight), len(self.names), axis=-1)
        ]

    @property
    def _is_plain(self):
        """Whether the weight is the tensor, which then is handed on uncopied."""
        return len(self.names) == 1 and not self.transpose and self.heads_axis is None

    def _merge_heads(self, value):
        if self.heads_axis is None:
            return value
        axis = self.heads_axis % (value.ndim - 1)
        return value.reshape(*value.shape[:axis], -1, *value.shape[axis + 2 :])


def numbers_of(array):
    """The numbers of an array of any library, not copied where that can be had."""
    try:
        return np.asarray(memoryview(array))
    except (TypeError, ValueError, BufferError):
        return np.asarray(array)


def _transposed(array):
    """The transposed array, by several threads; NumPy takes three times as long."""
    return numbers_of(tf.transpose(array))


def query_key_value(name, **how):
    """The three of an attention; `*` in the name stands for which one."""
    names = (name.replace("*", x) for x in ("query", "key", "value"))
    return Tensors(tuple(names), **how)


def transposed(name):
    """A matrix that the file keeps transposed."""
    return Tensors((name,), transpose=True)


def _table():
    return dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Layout:
    """The variable names of one family of checkpoints."""

    name: str
    signature: str  # Occurs in variable names of this layout only.
    # {part: {attribute path of the weight: name in the file, or `Tensors`}}. The parts
    # `attention` and `feed_forward` exist once a group and inner layer, which `{group}`
    # and `{inner}` stand for.
    weights: dict
    # A field of the config file to the argument(s) of `AlbertBackbone`.
    config_fields: dict = _table()
    defaults: dict = _table()  # The fields a config of this layout may leave out.
    spellings: dict = _table()  # {config field: {value in the file: argument}}.
    # A tensor to the config fields that give its shape, `None` for an axis that another
    # tensor tells of.
    sizes: dict = _table()
    fixed: dict = _table()  # The `AlbertBackbone` arguments that this layout implies.
    same: tuple = ()  # Pairs of arguments that this layout cannot tell apart.
    constants: dict = _table()  # Config fields that may have one value only.
    # Other spellings of the names in `weights`: a regular expression, its replacement.
    renames: tuple = ()
    tied: dict = _table()  # The copy that a file may have of a tensor to that tensor.
    # A kind to the regular expression of what a file may hold besides `weights`.
    others: dict = _table()

    def matches(self, names):
        """Whether a file with these variable names has this layout."""
        return any(self.signature in name for name in names)

    def table_names(self, names, path):
        """The name in a file of each tensor, by its name in the tables, a dict.

        Args:
            names: the names in the file.
            path: path of the file, for messages.
        """
        found = {}
        for in_file in names:
            name = in_file
            for pattern, replacement in self.renames:
                name = re.sub(pattern, replacement, name)
            if name in found:
                raise CheckpointError(
                    f"{path} holds two tensors that are both {name}: "
                    f"{found[name]} and {in_file}."
                )
            found[name] = in_file
        return found

    def kind_of(self, name):
        """The kind of a tensor that no model has a place for, `None` if unknown."""
        kinds = (kind for kind, x in self.others.items() if re.search(x, name))
        return next(kinds, None)

    def names(self, parts, arguments=None):
        """The tensors of those of some parts that the layout has a place for.

        `arguments` are not needed for parts that a model has once.
        """
        rows = self.rows([x for x in parts if x in self.weights], arguments or {})
        return [name for _, _, tensors in rows for name in tensors.names]

    def rows(self, parts, arguments):
        """Every weight of the given parts of a model.

        Args:
            parts: names of parts.
            arguments: dict, the arguments of the `AlbertBackbone`.

        Returns:
            A list of `((part, group, inner), attribute path, Tensors)`.
        """
        num_heads = arguments.get("num_heads", 1)
        return [
            ((part, *block), attribute, _of_block(tensors, block, num_heads))
            for part in parts
            for block in itertools.product(*map(range, _repeats(part, arguments)))
            for attribute, tensors in self.weights[part].items()
        ]


# The distinct blocks of an encoder, by the argument that counts their groups.
_GROUPS = {"attention": "num_attention_groups", "feed_forward": "num_ffn_groups"}


def _repeats(part, arguments):
    """How many groups and inner layers have a part of their own."""
    if part not in _GROUPS:
        return 1, 1
    return arguments[_GROUPS[part]], arguments["num_inner_repetitions"]


def _of_block(tensors, block, num_heads):
    """The `Tensors` of a table, with the numbers of a block in their names."""
    if isinstance(tensors, str):
        tensors = Tensors((tensors,))
    group, inner = block
    names = tuple(name.format(group=group, inner=inner) for name in tensors.names)
    return dataclasses.replace(tensors, names=names, num_heads=num_heads)
