"""Layouts of checkpoints: tables of variable names, read in both directions."""

import collections
import contextlib
import dataclasses
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import tensorflow as tf

from albert_tf_lite.errors import AlbertError, first_line, listed


class CheckpointError(AlbertError):
    """A checkpoint is damaged, incomplete, or contradicts its config."""


def exported_model_error(path: str | os.PathLike, kind: str) -> CheckpointError:
    """Return an error that asks for the model instead of its exported form."""
    return CheckpointError(
        f"{path} is {kind}. Pass the directory of the model that it was exported from, "
        "as written by `finetune` or `save_to_preset`."
    )


@contextlib.contextmanager
def name_damage(path: str | os.PathLike, *errors: type[Exception]) -> Iterator[None]:
    """Turn errors of a library into one that names the damaged file."""
    try:
        yield
    except errors as error:
        if isinstance(error, AlbertError):
            if str(path) in str(error):
                raise
            raise CheckpointError(f"{path} cannot be loaded. {error}") from error
        raise CheckpointError(
            f"{path} is damaged, truncated or of another kind. Download or copy it "
            f"again. ({first_line(error)})"
        ) from error


# === Tensors ===

# An array of NumPy, or a tensor of TensorFlow.
ArrayLike: TypeAlias = np.ndarray | tf.Tensor


@dataclasses.dataclass(frozen=True)
class Tensors:
    """The tensors of a file that hold one weight of the model."""

    names: tuple[str, ...]  # Concatenated along the last axis.
    transpose: bool = False  # The file has the transposed matrix.
    heads_axis: int | None = None  # Split into `[num_heads, head_dim]` in the file.
    num_heads: int = 1  # Used with `heads_axis` only.

    def shapes(self, weight_shape: Sequence[int]) -> tuple[int, ...]:
        """Return the shape that each tensor has in the file."""
        *rest, last = weight_shape
        shape = (*rest, last // len(self.names))
        if self.transpose:
            shape = shape[::-1]
        if self.heads_axis is not None:
            axis = self.heads_axis % len(shape)
            divided = (self.num_heads, shape[axis] // self.num_heads)
            shape = (*shape[:axis], *divided, *shape[axis + 1 :])
        return shape

    def to_weight(self, values: Sequence[ArrayLike]) -> ArrayLike:
        """Join the tensors of the file into the weight of the model."""
        if self._is_plain:
            return values[0]
        # By TensorFlow, whose variables take a tensor without another copy.
        parts = [self._merge_heads(np.asarray(value)) for value in values]
        parts = [tf.transpose(part) if self.transpose else part for part in parts]
        return tf.concat(parts, axis=-1) if len(parts) > 1 else parts[0]

    def from_weight(self, weight: ArrayLike) -> list[ArrayLike]:
        """Split the weight of the model into the tensors of the file."""
        if self._is_plain:
            return [weight]
        shape = self.shapes(weight.shape)
        parts = np.split(np.asarray(weight), len(self.names), axis=-1)
        parts = [tf.transpose(part) if self.transpose else part for part in parts]
        return [np.asarray(part).reshape(shape) for part in parts]

    @property
    def _is_plain(self) -> bool:
        """True if the weight is the tensor itself, which is not copied then."""
        return len(self.names) == 1 and not self.transpose and self.heads_axis is None

    def _merge_heads(self, value: np.ndarray) -> np.ndarray:
        if self.heads_axis is None:
            return value
        axis = self.heads_axis % (value.ndim - 1)
        return value.reshape(*value.shape[:axis], -1, *value.shape[axis + 2 :])


def float32_of(value: ArrayLike, name: str, path: str | os.PathLike) -> ArrayLike:
    """Return an array of any library as finite numbers in float32, or raise."""
    numbers = np.asarray(value)
    # NumPy knows bfloat16 by an extension, as kind "V".
    if numbers.dtype.kind not in "fV":
        raise CheckpointError(
            f"{name} in {path} holds {numbers.dtype.name}. Expected float32; only "
            "`.keras` files and presets can hold a quantized model."
        )
    if numbers.dtype != "float32":
        value = numbers = numbers.astype("float32")
    # A NaN is both the minimum and the maximum.
    if numbers.size and not np.isfinite([numbers.min(), numbers.max()]).all():
        raise CheckpointError(
            f"{name} in {path} holds numbers that are not finite (NaN or infinity). "
            "The training has diverged, or the file is damaged."
        )
    return value


def query_key_value(kernel: str, bias: str, **options: Any) -> dict[str, Tensors]:
    """Return the rows of an attention; `*` stands for query, key and value."""
    return {
        f"query_key_value.{leaf}": Tensors(
            tuple(name.replace("*", x) for x in ("query", "key", "value")), **options
        )
        for leaf, name in (("kernel", kernel), ("bias", bias))
    }


def transposed(name: str) -> Tensors:
    """Return a matrix that the file keeps transposed."""
    return Tensors((name,), transpose=True)


def dense(name: str, attribute: str = "") -> dict[str, str | Tensors]:
    """Return the rows of a layer whose variables have Keras' names in the file.

    `attribute` is its path with a dot at the end, or empty for the part itself.
    """
    return {f"{attribute}{x}": f"{name}/{x}" for x in ("kernel", "bias")}


def layer_norm(name: str) -> dict[str, str | Tensors]:
    """Return the rows of a LayerNorm, as `dense`."""
    return {f"layer_norm.{x}": f"{name}/{x}" for x in ("gamma", "beta")}


# === Layouts ===

# The end of the names of `tf.train.ExponentialMovingAverage`.
AVERAGE = "/ExponentialMovingAverage"


def _table() -> Any:
    return dataclasses.field(default_factory=dict)


class Place(NamedTuple):
    """A part of a model, for an attention or feed-forward half one of its blocks."""

    part: str
    group: int = 0
    inner: int = 0


class Row(NamedTuple):
    """A weight of a model, and the tensors of a file that hold it."""

    place: Place
    attribute: str  # The attribute path of the weight in its part.
    tensors: Tensors


@dataclasses.dataclass(frozen=True)
class Layout:
    """The variable names of one family of checkpoints."""

    name: str
    signature: str  # Occurs in variable names of this layout only.
    # {part: {attribute path of the weight: name in the file, or `Tensors`}}. The parts
    # `attention` and `feed_forward` exist once per group and inner layer, for which
    # `{group}` and `{inner}` stand.
    weights: dict[str, dict[str, str | Tensors]]
    # A field of the config file to the argument(s) of `AlbertBackbone`.
    config_fields: dict[str, tuple[str, ...]] = _table()
    defaults: dict[str, Any] = _table()  # Values of optional config fields.
    # {config field: {value in the file: argument}}.
    spellings: dict[str, dict] = _table()
    fixed: dict[str, Any] = _table()  # `AlbertBackbone` arguments of the whole layout.
    constants: dict[str, Any] = _table()  # Config fields that allow one value only.
    # A regular expression of what starts a name in the encoder, after any prefix.
    root: str = ""
    # One of the modules that training puts around others, which a name may contain
    # anywhere.
    wrappers: str = ""
    # Other spellings of the names in `weights`: a regular expression, its replacement.
    renames: tuple[tuple[str, str], ...] = ()
    # {kind: regular expression} of further tensors that a file may hold.
    others: dict[str, str] = _table()
    # A regular expression of names that are parts of the encoder, known or not.
    encoder: str = ""
    # Separates the parts of a name; `None` if the layout has no named heads.
    separator: str | None = None

    def table_names(
        self, names: Iterable[str], path: str | os.PathLike
    ) -> dict[str, str]:
        """Return the name of each tensor in a file, by its name in the tables."""
        in_files: dict[str, str] = {}
        unwrapped = {x: re.sub(self.wrappers, "", x) for x in names}
        scopes = self._scopes(unwrapped.values(), path)
        # A file may hold averages in place of the weights.
        averaged = {x for x in unwrapped if x.endswith(AVERAGE)}
        only = not any(x.removesuffix(AVERAGE) in unwrapped for x in averaged)
        for in_file, name in sorted(unwrapped.items()):
            if only:
                name = name.removesuffix(AVERAGE)
            # The longest prefix comes first.
            name = name.removeprefix(next(filter(name.startswith, scopes), ""))
            for pattern, replacement in self.renames:
                name = re.sub(pattern, replacement, name)
            if name in in_files:
                raise CheckpointError(
                    f"{path} holds two tensors that are both {name}: "
                    f"{in_files[name]} and {in_file}."
                )
            in_files[name] = in_file
        return in_files

    def _scopes(self, names: Iterable[str], path: str | os.PathLike) -> list[str]:
        """Return the prefixes to remove from names, the longest first.

        They are the module that holds the encoder of a file, and those around it, in
        which a head may lie.
        """
        if not self.root:
            return []
        mark = self.separator or ""
        module = f"[^{re.escape(mark)}]+{re.escape(mark)}"
        pattern = re.compile(f"((?:{module})*?){self.root}")
        matches = [pattern.match(name) for name in names]
        scopes = {match[1] for match in matches if match}

        def is_copy(scope: str) -> bool:
            # "ema.model." is a copy of "model.".
            others = scopes - {scope}
            return any(f"{mark}{scope}".endswith(f"{mark}{x}") for x in others)

        originals = {scope for scope in scopes if not is_copy(scope)}
        if len(originals) > 1:
            raise CheckpointError(
                f"{path} holds {len(scopes)} encoders, below {listed(sorted(scopes))}. "
                "Save the weights of one of them without the others."
            )
        if not originals:
            return []
        modules = re.findall(module, originals.pop())
        return ["".join(modules[:i]) for i in range(len(modules), 0, -1)]

    def kind_of(self, name: str) -> str | None:
        """Return the kind in `others` of a tensor that no model has a place for."""
        kinds = (kind for kind, x in self.others.items() if re.search(x, name))
        return next(kinds, None)

    def _kind_in(self, name: str, shapes: dict[str, list[int]]) -> str | None:
        """Return the kind of a tensor in a file; `None` for an encoder's."""
        kind = self.kind_of(name)
        # TensorFlow names what belongs to a variable below it.
        if kind != "optimizer" and name.rpartition("/")[0] in shapes:
            return "average" if name.endswith(AVERAGE) else "training state"
        if kind or re.search(self.encoder, name):
            return kind
        # A copy of the weights in another scope, or a number.
        inner = (name[x.end() :] in shapes for x in re.finditer("[./]", name))
        return "training state" if any(inner) or not shapes[name] else "foreign head"

    def kinds(
        self, shapes: dict[str, list[int]], wanted: Iterable[str]
    ) -> dict[str | None, list[str]]:
        """Return the names that are neither wanted nor of a head of ours, by kind.

        The kinds are those in `others`, "average", "training state", "foreign head",
        and `None` for what looks like a part of the encoder.
        """
        # A backbone may come from a file with heads and with or without a pooler.
        others = [part for part in self.weights if part not in ENCODER_PARTS]
        kinds: dict[str | None, list[str]] = collections.defaultdict(list)
        for name in sorted(set(shapes) - {*wanted, *self.names(others)}):
            kinds[self._kind_in(name, shapes)].append(name)
        return kinds

    def names(
        self, parts: Iterable[str], arguments: dict[str, Any] | None = None
    ) -> list[str]:
        """Return the tensors of the parts that the layout has a place for."""
        placed = [part for part in parts if part in self.weights]
        names: list[str] = []
        for row in self.rows(placed, arguments or {}):
            names += row.tensors.names
        return names

    def rows(self, parts: Iterable[str], arguments: dict[str, Any]) -> list[Row]:
        """Return a row for every weight of the parts."""
        num_heads = arguments.get("num_heads", 1)
        rows = []
        for place in _places(parts, arguments):
            for attribute, tensors in self.weights[place.part].items():
                of_place = _tensors_at(place, tensors, num_heads)
                rows.append(Row(place, attribute, of_place))
        return rows


ENCODER_PARTS = ("embedding", "attention", "feed_forward")
# The argument that counts the groups of each distinct block of an encoder.
_GROUPS = {"attention": "num_attention_groups", "feed_forward": "num_ffn_groups"}


def _places(parts: Iterable[str], arguments: dict[str, Any]) -> Iterator[Place]:
    """Yield the places of parts, those of an encoder's halves once per block."""
    for part in parts:
        if part not in _GROUPS:
            yield Place(part)
            continue
        for group in range(arguments[_GROUPS[part]]):
            for inner in range(arguments["num_inner_repetitions"]):
                yield Place(part, group, inner)


def _tensors_at(place: Place, tensors: str | Tensors, num_heads: int) -> Tensors:
    """Return the `Tensors` of a table, with the numbers of a block in their names."""
    if isinstance(tensors, str):
        tensors = Tensors((tensors,))
    names = [
        name.format(group=place.group, inner=place.inner) for name in tensors.names
    ]
    return dataclasses.replace(tensors, names=tuple(names), num_heads=num_heads)
