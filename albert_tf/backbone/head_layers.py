"""The layers between a backbone and the outputs of a task."""

import keras

from albert_tf.backbone.albert_backbone import AlbertBackbone
from albert_tf.layers import MaskedLMHead
from albert_tf.layers.activations import Activation
from albert_tf.layers.dense import dense
from albert_tf.layers.tensor_types import at_least_float32


def head_dtype(backbone: AlbertBackbone) -> str:
    """Return the type that heads compute in: at least float32, as losses read them."""
    return at_least_float32(backbone.compute_dtype)


def dense_head(
    backbone: AlbertBackbone,
    units: int,
    name: str,
    activation: Activation | None = None,
) -> keras.layers.Dense:
    """Return a dense layer with `units` outputs."""
    dtype = head_dtype(backbone)
    return dense(units, activation=activation, dtype=dtype, name=name)


def head_dropout(backbone: AlbertBackbone, rate: float) -> keras.layers.Dropout:
    """Return the dropout layer before a head."""
    return keras.layers.Dropout(
        rate, dtype=backbone.compute_dtype, name="output_dropout"
    )


def masked_lm_head(backbone: AlbertBackbone) -> MaskedLMHead:
    """Return the head of the tasks that predict tokens."""
    return MaskedLMHead(
        backbone.embedding,
        activation=backbone.activation,
        dtype=backbone.dtype_policy,
        name="mlm_logits",
    )
