"""Layer normalization with ALBERT's epsilon, fused on a CPU."""

from typing import Any

import keras
from keras import ops

from albert_tf.layers.devices import computes_on_tensorflow_cpu
from albert_tf.layers.tensor_types import Tensor

# As in all layers of both original code bases, the masked LM head included.
LAYER_NORM_EPSILON = 1e-12


class LayerNormalization(keras.layers.LayerNormalization):
    """LayerNormalization that is one operation in graphs for a CPU, in inference."""

    def call(self, inputs: Tensor, training: bool | None = None) -> Tensor:
        # Eager calls fuse nothing, and LiteRT (of fixed lengths) lacks this form.
        has_fixed_length = None not in inputs.shape
        if training or has_fixed_length or self.compute_dtype == "float64":
            return super().call(inputs)
        if not computes_on_tensorflow_cpu():
            return super().call(inputs)
        from albert_tf.layers.fused_layer_norm import fused_layer_norm

        gamma, beta = (ops.cast(x, inputs.dtype) for x in (self.gamma, self.beta))
        return fused_layer_norm(inputs, gamma, beta, self.epsilon)


def layer_norm(**kwargs: Any) -> keras.layers.LayerNormalization:
    """Create a LayerNormalization with ALBERT's epsilon."""
    return LayerNormalization(epsilon=LAYER_NORM_EPSILON, name="layer_norm", **kwargs)
