from typing import Any

import keras
from keras import ops

from albert_tf.layers.activations import Activation, gelu_approximate, get_activation
from albert_tf.layers.albert_layer import AlbertLayer
from albert_tf.layers.dense import dense
from albert_tf.layers.layer_normalization import layer_norm
from albert_tf.layers.tensor_types import Shape, Tensor


@keras.saving.register_keras_serializable(package="albert_tf")
class FeedForwardBlock(AlbertLayer):
    """Feed-forward half of an encoder block, with residual and LayerNorm.

    Args:
        intermediate_dim: int. Width between the two dense layers.
        activation: string or callable. `"gelu_approximate"` (called "gelu" in the
            original configs), or any Keras activation.
        hidden_dropout: float. Dropout rate of the output, before the residual.
        normalize_first: bool. LayerNorm on the input (pre-LN) instead of after the
            residual (post-LN).

    The input and the output are float tensors [batch, time, hidden].

    Example:

    >>> albert_tf.layers.FeedForwardBlock(96)(np.ones([2, 8, 48])).shape
    TensorShape([2, 8, 48])
    """

    def __init__(
        self,
        intermediate_dim: int,
        activation: Activation = "gelu_approximate",
        hidden_dropout: float = 0.0,
        normalize_first: bool = False,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.intermediate_dim = intermediate_dim
        self.activation = get_activation(activation)
        self.normalize_first = normalize_first
        self.hidden_dropout = keras.layers.Dropout(
            hidden_dropout, dtype=self.dtype_policy, name="hidden_dropout"
        )

    def build(self, inputs_shape: Shape) -> None:
        hidden_dim = inputs_shape[-1]
        dtype = self.dtype_policy
        self.intermediate_dense = dense(
            self.intermediate_dim, dtype=dtype, name="intermediate_dense"
        )
        self.output_dense = dense(hidden_dim, dtype=dtype, name="output_dense")
        self.layer_norm = layer_norm(dtype=dtype)
        self.intermediate_dense.build((None, None, hidden_dim))
        self.output_dense.build((None, None, self.intermediate_dim))
        self.layer_norm.build((None, None, hidden_dim))
        self.built = True

    def call(self, inputs: Tensor, training: bool | None = None) -> Tensor:
        x = self.layer_norm(inputs) if self.normalize_first else inputs
        # TensorFlow fuses product, bias and activation of matrices only, which saves a
        # sixth of a small model's time on a CPU.
        x = ops.reshape(x, (-1, x.shape[-1]))
        x = self._activate(self.intermediate_dense(x), training)
        x = self.output_dense(x)
        x = self.hidden_dropout(x, training=training)
        x = inputs + ops.reshape(x, ops.shape(inputs))
        return x if self.normalize_first else self.layer_norm(x)

    def _activate(self, x, training):
        is_gelu = self.activation is gelu_approximate
        if training and is_gelu and keras.backend.backend() == "tensorflow":
            from albert_tf.layers.fused_gelu import fused_gelu

            return fused_gelu(x)
        # TensorFlow fuses GELU with the product only if the name of its input sorts
        # before its own.
        with keras.name_scope("then_activation"):
            return self.activation(x)
