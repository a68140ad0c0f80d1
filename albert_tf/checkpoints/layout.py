"""What a checkpoint layout is: a table, and how one table is read both ways."""

import dataclasses
import re

import numpy as np
import tensorflow as tf


class CheckpointError(ValueError):
    """A checkpoint is damaged, incomplete, or not what its config says."""


_NODES = re.compile(r"\{\{.*?\}\} | \[Op:\w+\]")


def first_line(error):
    """What an exception says, in one line, without TensorFlow's own names."""
    lines = _NODES.sub("", str(error)).strip().splitlines()
    line = lines[0] if lines else repr(error)
    # It may quote the file, which then would steer the terminal.
    return "".join(x if x.isprintable() else "?" for x in line)


@dataclasses.dataclass(frozen=True)
class Tensors:
    """The tensors of a file that hold one weight of the model.

    Args:
        names: tuple of strings. Several stand side by side in the weight, along
            its last axis.
        transpose: bool. The file has the transposed matrix.
        heads_axis: optional int. The axis that the file has divided into
            `[num_heads, head_dim]`.
        num_heads: int. Of the model; only read with `heads_axis`.
    """

    names: tuple
    transpose: bool = False
    heads_axis: int | None = None
    num_heads: int = 1

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


def join(*names, **how):
    """Tensors that stand side by side in one weight of the model."""
    return Tensors(names, **how)


def query_key_value(name, **how):
    """The three of an attention; `*` in the name stands for which one."""
    return join(*(name.replace("*", x) for x in ("query", "key", "value")), **how)


def transposed(name):
    """A matrix that the file keeps transposed."""
    return Tensors((name,), transpose=True)


@dataclasses.dataclass(frozen=True)
class Layout:
    """The variable names of one family of checkpoints.

    Args:
        name: string.
        signature: string that occurs in a variable name of this layout only.
        weights: dict of part to {attribute path of the weight: name in the file,
            or `Tensors`}. The parts `attention` and `feed_forward` exist once a
            group and inner layer, which `{group}` and `{inner}` stand for.
        config_fields: dict of a field of the config file to the argument(s) of
            `AlbertBackbone`.
        defaults: dict of the fields a config of this layout may leave out.
        spellings: dict of a config field to {value in the file: argument}.
        sizes: dict of a tensor to the config fields that give its shape, `None`
            for an axis that another tensor tells of.
        fixed: dict of the `AlbertBackbone` arguments that this layout implies.
        same: pairs of arguments that this layout cannot tell apart.
        constants: dict of config fields that may have one value only.
        renames: pairs of a regular expression and what replaces it: other
            spellings of the names in `weights`.
        tied: dict of the name of a copy that a file may have of another tensor to the
            name of that.
        others: dict of kind to the regular expression of the names of what a
            file may hold besides the weights in `weights`.
    """

    name: str
    signature: str
    weights: dict
    config_fields: dict = dataclasses.field(default_factory=dict)
    defaults: dict = dataclasses.field(default_factory=dict)
    spellings: dict = dataclasses.field(default_factory=dict)
    sizes: dict = dataclasses.field(default_factory=dict)
    fixed: dict = dataclasses.field(default_factory=dict)
    same: tuple = ()
    constants: dict = dataclasses.field(default_factory=dict)
    renames: tuple = ()
    tied: dict = dataclasses.field(default_factory=dict)
    others: dict = dataclasses.field(default_factory=dict)

    def matches(self, names):
        """Whether a file with these variable names has this layout."""
        return any(self.signature in name for name in names)

    def table_names(self, names, path):
        """The name in a file of each tensor, by its name in the tables.

        Args:
            names: the names in the file.
            path: path of the file, for messages.

        Returns:
            A dict.

        Raises:
            CheckpointError: if two tensors are one in the tables.
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
        for kind, pattern in self.others.items():
            if re.search(pattern, name):
                return kind
        return None

    def names(self, parts, arguments=None):
        """The tensors of some parts, those that the layout has no place for left out.

        Args:
            parts: names of parts.
            arguments: dict, the arguments of the `AlbertBackbone`. Not needed for
                parts that a model has once.
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
        found = []
        num_heads = arguments.get("num_heads", 1)
        for part in parts:
            groups, inner_layers = _repeats(part, arguments)
            for group in range(groups):
                for inner in range(inner_layers):
                    for attribute, tensors in self.weights[part].items():
                        if isinstance(tensors, str):
                            tensors = Tensors((tensors,))
                        names = tuple(
                            name.format(group=group, inner=inner)
                            for name in tensors.names
                        )
                        tensors = dataclasses.replace(
                            tensors, names=names, num_heads=num_heads
                        )
                        found.append(((part, group, inner), attribute, tensors))
        return found


# The distinct blocks of an encoder, by the argument that counts their groups.
_GROUPS = {"attention": "num_attention_groups", "feed_forward": "num_ffn_groups"}


def _repeats(part, arguments):
    if part not in _GROUPS:
        return 1, 1
    return arguments[_GROUPS[part]], arguments["num_inner_repetitions"]
