"""What a checkpoint layout is: a table, and how one table is read both ways."""

import dataclasses
import operator

import numpy as np


class CheckpointError(ValueError):
    """A checkpoint is damaged, incomplete, or not what its config says."""


@dataclasses.dataclass(frozen=True)
class Tensors:
    """The tensors of a file that hold one weight of the model.

    Args:
        names: tuple of strings. Several are joined along their last axis.
        transpose: bool. The file has the transposed matrix.
    """

    names: tuple
    transpose: bool = False

    def to_weight(self, values):
        """Join the tensors of the file into the weight of the model."""
        weight = np.concatenate(values, axis=-1) if len(values) > 1 else values[0]
        return weight.T if self.transpose else weight

    def from_weight(self, weight):
        """Split the weight of the model into the tensors of the file."""
        weight = weight.T if self.transpose else weight
        return np.split(weight, len(self.names), axis=-1)


def join(*names):
    """Tensors that stand side by side in one weight of the model."""
    return Tensors(names)


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
        sizes: dict of a tensor to the config fields that give its shape, `None`
            for an axis that another tensor tells of.
        fixed: dict of the `AlbertBackbone` arguments that this layout implies.
        same: pairs of arguments that this layout cannot tell apart.
    """

    name: str
    signature: str
    weights: dict
    config_fields: dict
    defaults: dict
    sizes: dict
    fixed: dict
    same: tuple = ()

    def matches(self, names):
        """Whether a file with these variable names has this layout."""
        return any(self.signature in name for name in names)

    def rows(self, parts, num_groups=1, num_inner_layers=1):
        """Every weight of the given parts of a model.

        Returns:
            A list of `((part, group, inner), attribute path, Tensors)`.
        """
        found = []
        for part in parts:
            repeated = part in ("attention", "feed_forward")
            for group in range(num_groups if repeated else 1):
                for inner in range(num_inner_layers if repeated else 1):
                    for attribute, tensors in self.weights[part].items():
                        if isinstance(tensors, str):
                            tensors = Tensors((tensors,))
                        names = tuple(
                            name.format(group=group, inner=inner)
                            for name in tensors.names
                        )
                        tensors = dataclasses.replace(tensors, names=names)
                        found.append(((part, group, inner), attribute, tensors))
        return found


BACKBONE_PARTS = ("embedding", "attention", "feed_forward", "pooler")
HEAD_PARTS = ("mlm_head", "sop_head")


def model_weights(layout, model):
    """Pair every variable of a model with the tensors that hold it in a file.

    Args:
        layout: a `Layout`.
        model: an `AlbertBackbone`, or a task with a `backbone` attribute.

    Returns:
        A list of `(keras.Variable, Tensors)`.
    """
    backbone = getattr(model, "backbone", model)
    heads = [part for part in HEAD_PARTS if hasattr(model, part)]
    objects = {
        ("embedding", 0, 0): backbone.embedding,
        ("pooler", 0, 0): backbone.pooler,
        **{(head, 0, 0): getattr(model, head) for head in heads},
        **{
            ("attention", *key): half for key, half in backbone.attention_blocks.items()
        },
        **{
            ("feed_forward", *key): half
            for key, half in backbone.feed_forward_blocks.items()
        },
    }
    rows = layout.rows(
        (*BACKBONE_PARTS, *heads),
        backbone.num_attention_groups,
        backbone.num_inner_layers,
    )
    return [
        (operator.attrgetter(attribute)(objects[key]), tensors)
        for key, attribute, tensors in rows
    ]
