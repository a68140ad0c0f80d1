"""The model that learns from labelled texts and text."""

from typing import Any

import keras
import numpy as np
from keras import ops

from albert_tf.layers import WholeWordMaskGenerator
from albert_tf.layers.dense import dense
from albert_tf.layers.tensor_types import Tensor
from albert_tf.pretraining.labelled.labelled_records import IGNORED, LabelledRecords
from albert_tf.pretraining.records.shard_files import TARGETS
from albert_tf.pretraining.training.head_losses import (
    attraction,
    squared_errors,
    weighted_losses,
)
from albert_tf.pretraining.training.network import backbone_of, features_of
from albert_tf.pretraining.training.pretraining_model import Batch, PretrainingModel

# The weight of each loss.
WEIGHTS = {
    "classes": 1.0,
    "scores": 0.3,
    "tags": 1.0,
    "spans": 0.5,
    "mlm_logits": 1.0,
    "sop_logits": 0.3,
    "pairs": 0.3,
}
# Below any logit.
NEVER = -1e9


class JointDense(keras.layers.Layer):
    """Dense layers of the same input, each with its own name, as one product.

    Args:
        units: dict by name of the outputs of each.
        input_dim: int, the width of the input.
        seed: int, of the initial weights.
    """

    def __init__(
        self, units: dict[str, int], input_dim: int, seed: int = 0, **kwargs: Any
    ):
        super().__init__(dtype="float32", **kwargs)
        self.parts = {}
        for number, (name, count) in enumerate(units.items()):
            initializer = keras.initializers.TruncatedNormal(
                stddev=0.02, seed=seed + number
            )
            self.parts[name] = dense(
                count, dtype="float32", name=name, kernel_initializer=initializer
            )
        with keras.name_scope(self.name):
            for layer in self.parts.values():
                layer.build((None, input_dim))
        self.built = True

    def call(self, inputs: Tensor) -> Tensor:
        kernels = [layer.kernel for layer in self.parts.values()]
        biases = [layer.bias for layer in self.parts.values()]
        outputs = ops.matmul(inputs, ops.concatenate(kernels, axis=1))
        return outputs + ops.concatenate(biases)


class LabelledModel(PretrainingModel):
    """A network with pretraining heads, and heads for labelled texts on its backbone.

    Classes and scores read the mean of the last hidden states, tags and spans each
    state. The heads of one kind are computed together; the outputs that a set may not
    have are left out.

    Args:
        network: an `AlbertPretrainer`, or the result of `build_network`.
        labelled: a `LabelledRecords`, whose heads the model has.
        masks: a `WholeWordMaskGenerator`, or `None` for records that hold masks.
        seed: int, of the initial weights of the heads.

    Call arguments:
        batch: a dict of `LabelledBatches`, without the axis of steps.

    Returns:
        See `StepModel`; losses are `classes`, `scores`, `tags` and `spans`, those of
        the pretraining, and `pairs`.
    """

    def __init__(
        self,
        network: keras.Model,
        labelled: LabelledRecords,
        masks: WholeWordMaskGenerator | None,
        seed: int = 0,
    ):
        kinds = [kind for kind in TARGETS.values() if labelled.heads_of(kind)]
        names = [*kinds, *network.output]
        if labelled.pairs is not None:
            names.append("pairs")
        super().__init__(network, masks, {name: WEIGHTS[name] for name in names})
        # A score is neither right nor wrong.
        self.means.pop("scores_accuracy", None)
        self.allowed = {kind: labelled.allowed(kind) for kind in kinds}
        heads_of_sets = [labelled.heads[entry["head"]] for entry in labelled.sets]
        variances = [head.get("variance", 1.0) for head in heads_of_sets]
        self.variances = np.array(variances, "float32")
        self.joint = {}
        for number, kind in enumerate(kinds):
            units = labelled.heads_of(kind)
            if kind == "spans":
                # The first token and the last.
                units = dict.fromkeys(units, 2)
            self.joint[kind] = JointDense(
                units, backbone_of(network).hidden_dim, seed + 1000 * number, name=kind
            )

    @property
    def dense_heads(self) -> dict[str, keras.layers.Dense]:
        """The layers of the heads for labelled texts, by name."""
        layers: dict[str, keras.layers.Dense] = {}
        for joint in self.joint.values():
            layers.update(joint.parts)
        return layers

    def call(self, batch: Batch, training: bool = False) -> dict[str, Tensor]:
        """Return all losses, of sequences that are encoded together.

        part        labelled            text                    pairs
        rows        [:text_start]       [text_start:text_end]   [text_end:]
        """
        labelled = features_of(batch["labelled"])
        text, text_labels = self.masked(batch["text"])
        mask_positions = text.pop("mask_positions")
        parts = [labelled, text]
        if "pairs" in batch:
            parts.append(features_of(batch["pairs"]))
        features = {
            name: ops.concatenate([part[name] for part in parts]) for name in text
        }
        encoded = backbone_of(self.network)(features, training=training)
        hidden = ops.cast(encoded["sequence_output"], "float32")
        means = _means(hidden, features["padding_mask"])
        text_start = ops.shape(labelled["token_ids"])[0]
        text_end = text_start + ops.shape(text["token_ids"])[0]

        losses: dict[str, Tensor] = {}
        for kind in self.joint:
            kind_losses = self._kind_losses(
                kind,
                batch["labelled"],
                hidden[:text_start],
                means[:text_start],
                labelled["padding_mask"] > 0,
            )
            losses.update(kind_losses)
        outputs = self._pretraining_outputs(
            encoded["sequence_output"][text_start:text_end],
            encoded["pooled_output"][text_start:text_end],
            mask_positions,
        )
        classes = {name: x.shape[-1] for name, x in self.network.output.items()}
        losses.update(self.text_losses(outputs, text_labels, batch["text"], classes))
        if "pairs" in batch:
            pair_ids = features["token_ids"][text_end:]
            losses.update(attraction(means[text_end:], pair_ids))
        return losses

    def _pretraining_outputs(
        self, hidden: Tensor, pooled: Tensor, mask_positions: Tensor
    ) -> dict[str, Tensor]:
        """Return the outputs of the heads of the network for the sequences of text."""
        mlm_head = self.network.get_layer("mlm_logits")
        outputs = {"mlm_logits": mlm_head(hidden, mask_positions)}
        if "sop_logits" in self.heads:
            outputs["sop_logits"] = self.network.get_layer("sop_logits")(pooled)
        return outputs

    def _kind_losses(
        self, kind: str, batch: Batch, hidden: Tensor, means: Tensor, is_token: Tensor
    ) -> dict[str, Tensor]:
        """Return the losses of labelled texts of one kind."""
        outputs = self.joint[kind](means if kind in ("classes", "scores") else hidden)
        targets, sets = batch[kind], batch["sets"]
        allowed = ops.take(self.allowed[kind], sets, axis=0)
        if kind == "scores":
            scores = ops.sum(ops.where(allowed, outputs, 0.0), axis=-1)
            variances = ops.take(self.variances, sets)
            return squared_errors(scores, targets, variances, kind)
        if kind == "spans":
            logits, guesses = _span_logits(outputs, allowed, is_token)
        else:
            logits, guesses = _class_logits(outputs, allowed)
        weights = ops.cast(targets != IGNORED, "float32")
        return weighted_losses(logits, ops.maximum(targets, 0), weights, kind, guesses)


def _means(hidden: Tensor, padding_mask: Tensor) -> Tensor:
    """Return the mean of the hidden states of each sequence."""
    mask = ops.cast(padding_mask, "float32")[..., None]
    return ops.sum(hidden * mask, axis=1) / ops.sum(mask, axis=1)


def _class_logits(outputs: Tensor, allowed: Tensor) -> tuple[Tensor, Tensor]:
    """Return the logits of classes or tags, and the number to choose from.

    Args:
        outputs: float tensor [rows, outputs] of classes, [rows, tokens, outputs] of
            tags.
        allowed: bool tensor [rows, outputs].
    """
    guesses = ops.sum(ops.cast(allowed, "int32"), axis=-1)
    if len(outputs.shape) == 3:
        allowed, guesses = allowed[:, None], guesses[:, None]
    return ops.where(allowed, outputs, NEVER), guesses


def _span_logits(
    outputs: Tensor, allowed: Tensor, is_token: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the logits of the tokens, and the number to choose from.

    The first and the last token of a span are two choices among the tokens.

        outputs     [rows, tokens, 2 * heads]
                    [rows, tokens, heads, 2]
                    [rows, tokens, 2]           of the head of the set
        logits      [rows, 2, tokens]

    Args:
        allowed: bool tensor [rows, heads], true for the head of the set.
        is_token: bool tensor [rows, tokens].
    """
    rows, tokens = ops.shape(is_token)
    by_head = ops.reshape(outputs, (rows, tokens, -1, 2))
    of_set = ops.sum(ops.where(allowed[:, None, :, None], by_head, 0.0), axis=2)
    logits = ops.where(is_token[..., None], of_set, NEVER)
    return ops.swapaxes(logits, 1, 2), tokens
