"""Rebuild a task in a form that LiteRT's converter handles well."""

from __future__ import annotations

import keras
from keras import ops

from albert_tf.backbone.albert_backbone import AlbertBackbone
from albert_tf.layers import FactorizedEmbedding
from albert_tf.layers.private_keras import inner_layers
from albert_tf.models.task import AlbertTask


class _LooksUpPositions(FactorizedEmbedding):
    """Embedding that looks up positions instead of slicing their table.

    A slice of fixed length is a constant, which the converter would write for each
    length in float32.
    """

    def _positions(self, token_ids):
        length = token_ids.shape[1]
        # The second operand is never smaller, but prevents another constant.
        rows = ops.minimum(ops.arange(length, dtype="int32"), token_ids + length)
        return ops.take(self.position_table, rows, axis=0)


class _Backbone(AlbertBackbone):
    embedding_cls = _LooksUpPositions


def rebuild(task: AlbertTask, positions: int) -> AlbertTask:
    """Copy a task to a task that computes in float32.

    Args:
        task: a task, which may compute in another type and have LoRA weights.
        positions: int. Rows of the position table of the copy.
    """
    changed = {"dtype": "float32", "max_sequence_length": positions}
    backbone = _Backbone.from_config({**task.backbone.get_config(), **changed})
    config = task.get_config()
    for name in ("backbone", "preprocessor", "dtype", "compile"):
        config.pop(name, None)
    rebuilt = type(task)(backbone=backbone, preprocessor=None, compile=False, **config)
    weights = [x for x in task.weights if not x.name.startswith("lora_")]
    for weight, other in zip(rebuilt.weights, weights, strict=True):
        # The position table of the copy may have fewer rows.
        weight.assign(ops.cast(other, "float32")[: weight.shape[0]])
    for layer, other in zip(_matrices(rebuilt), _matrices(task), strict=True):
        # With LoRA the matrix is a sum.
        if getattr(other, "lora_enabled", False):
            name = "kernel" if hasattr(other, "kernel") else "embeddings"
            getattr(layer, name).assign(getattr(other, name))
    return rebuilt


def _matrices(task):
    """Return the layers that LoRA may adapt."""
    kinds = (keras.layers.Dense, keras.layers.Embedding)
    return [layer for layer in inner_layers(task) if isinstance(layer, kinds)]
