from typing import Any

import keras
from keras import ops

from albert_tf.layers.albert_layer import AlbertLayer
from albert_tf.layers.dense import dense
from albert_tf.layers.devices import computes_on_tensorflow_cpu
from albert_tf.layers.layer_normalization import layer_norm
from albert_tf.layers.tensor_types import Shape, Tensor
from albert_tf_lite.errors import AlbertError

# Added to the score of a masked key, as in the original code. Not minus infinity, so
# that a text that is all padding has the same outputs, too.
MASKED_SCORE = -10000.0


@keras.saving.register_keras_serializable(package="albert_tf")
class AttentionBlock(AlbertLayer):
    """Attention half of an encoder block, with residual and LayerNorm.

    Query, key and value are one matrix product, `query_key_value`.

    Args:
        num_heads: int. Attention heads; must divide the width of the input.
        hidden_dropout: float. Dropout rate of the output, before the residual.
        attention_dropout: float. Dropout rate of the attention probabilities.
        normalize_first: bool. LayerNorm on the input (pre-LN) instead of after the
            residual (post-LN).

    Call arguments:
        inputs: float tensor [batch, time, hidden].
        padding_mask: optional tensor [batch, time], 0 or False at padding.
        attention_mask: optional tensor [batch, time, time], 0 or False where the query
            (axis 1) may not attend to the key (axis 2).
        return_attention_scores: bool. Also return the attention probabilities
            [batch, heads, time, time].
        output_length: optional int. Compute the first positions only, which attend to
            all.

    Returns:
        A float tensor [batch, time, hidden], or a tuple of it and the probabilities.

    Attributes:
        fuses_on_jax: bool, of the class. `True` for the attention of Keras on JAX,
            which a GPU computes in one operation in 16 bits if the width of a head is a
            multiple of 8. Set it before models are compiled.

    Raises:
        AlbertError: if `num_heads` does not divide the width of the input.

    Example:

    >>> albert_tf.layers.AttentionBlock(num_heads=4)(np.ones([2, 8, 48])).shape
    TensorShape([2, 8, 48])
    """

    # `False` until measured on a GPU.
    fuses_on_jax = False

    def __init__(
        self,
        num_heads: int,
        hidden_dropout: float = 0.0,
        attention_dropout: float = 0.0,
        normalize_first: bool = False,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.num_heads = num_heads
        self.normalize_first = normalize_first
        self.attention_dropout = keras.layers.Dropout(
            attention_dropout, dtype=self.dtype_policy, name="attention_dropout"
        )
        self.hidden_dropout = keras.layers.Dropout(
            hidden_dropout, dtype=self.dtype_policy, name="hidden_dropout"
        )

    def build(self, inputs_shape: Shape) -> None:
        hidden_dim = inputs_shape[-1]
        if hidden_dim % self.num_heads:
            raise AlbertError(
                "The width of the hidden states must be a multiple of `num_heads`. "
                f"Received: width {hidden_dim}, num_heads={self.num_heads}"
            )
        self.head_dim = hidden_dim // self.num_heads
        dtype = self.dtype_policy
        self.query_key_value = dense(
            3 * hidden_dim, dtype=dtype, name="query_key_value"
        )
        self.output_dense = dense(hidden_dim, dtype=dtype, name="output_dense")
        self.layer_norm = layer_norm(dtype=dtype)
        for layer in (self.query_key_value, self.output_dense, self.layer_norm):
            layer.build((None, None, hidden_dim))
        self.built = True

    def call(
        self,
        inputs: Tensor,
        padding_mask: Tensor | None = None,
        attention_mask: Tensor | None = None,
        training: bool | None = None,
        *,
        return_attention_scores: bool = False,
        output_length: int | None = None,
    ) -> Tensor | tuple[Tensor, Tensor]:
        hidden = inputs
        if self.normalize_first:
            hidden = self.layer_norm(inputs)
        query, key, value = self._query_key_value(hidden)
        if output_length is not None:
            query, inputs = query[:, :, :output_length], inputs[:, :output_length]
        query = query * self.head_dim**-0.5
        blocked = self._blocked(padding_mask, attention_mask, output_length)
        needs_parts = return_attention_scores or output_length is not None
        if self._is_fused(training, needs_parts):
            attended = _fused_attention(query, key, value, blocked)
        elif self._keeps_scores(training, return_attention_scores):
            scores = ops.matmul(query, ops.transpose(key, (0, 1, 3, 2)))
            scores = scores if blocked is None else scores + blocked
            probabilities = ops.softmax(scores, axis=-1)
            dropped = self.attention_dropout(probabilities, training=training)
            attended = ops.matmul(dropped, value)
        else:
            # TensorFlow is not installed beside other backends.
            from albert_tf.layers.attend import attend

            attended = attend(query, key, value, blocked)
        # [batch, time, heads, head_dim], of which dense layers read two axes.
        attended = ops.transpose(attended, (0, 2, 1, 3))
        outputs = self.output_dense(ops.reshape(attended, (-1, inputs.shape[-1])))
        outputs = self.hidden_dropout(outputs, training=training)
        outputs = inputs + ops.reshape(outputs, ops.shape(inputs))
        if not self.normalize_first:
            outputs = self.layer_norm(outputs)
        return (outputs, probabilities) if return_attention_scores else outputs

    def _query_key_value(self, x):
        """Return three tensors [batch, heads, time, head_dim]."""
        batch, time, hidden_dim = ops.shape(x)
        x = self.query_key_value(ops.reshape(x, (-1, hidden_dim)))
        x = ops.reshape(x, (batch, time, 3, self.num_heads, self.head_dim))
        return ops.unstack(ops.transpose(x, (2, 0, 3, 1, 4)), 3)

    def _blocked(self, padding_mask, attention_mask, output_length):
        """Return the sum of masks [batch, 1, 1 or queries, time] to the scores."""
        masks = []
        if padding_mask is not None:
            masks.append(ops.expand_dims(padding_mask, (1, 2)))
        if attention_mask is not None:
            masks.append(ops.expand_dims(attention_mask[:, :output_length], 1))
        if not masks:
            return None
        return sum(
            (1.0 - ops.cast(mask, self.compute_dtype)) * MASKED_SCORE for mask in masks
        )

    def _is_fused(self, training, needs_parts):
        """Return whether Keras computes the attention."""
        drops = training and self.attention_dropout.rate
        is_jax = keras.backend.backend() == "jax"
        return self.fuses_on_jax and is_jax and not (needs_parts or drops)

    def _keeps_scores(self, training, are_returned):
        """Return whether the scores of all examples are computed at once, and kept."""
        if not training or are_returned or self.attention_dropout.rate:
            return True
        return not computes_on_tensorflow_cpu() or _is_compiled_by_xla()


def _is_compiled_by_xla():
    """Return whether TensorFlow traces a function of `jit_compile=True`.

    XLA does not compile the condition of `attend`: it aborts the process where the
    batch size is dynamic, as in `fit`. TensorFlow has no public way to ask, and Keras
    knows of the `jit_compile` of a model only, not of a function of the user's own.
    """
    import tensorflow as tf
    from tensorflow.python.ops import control_flow_util

    if tf.executing_eagerly():
        return False
    graph = tf.compat.v1.get_default_graph()
    return control_flow_util.GraphOrParentsInXlaContext(graph)


def _fused_attention(query, key, value, blocked):
    """Return the attention of tensors [batch, heads, time, head_dim]."""
    mask = None
    if blocked is not None:
        batch, _, time, _ = ops.shape(query)
        # cuDNN broadcasts heads only.
        mask = ops.broadcast_to(ops.equal(blocked, 0), (batch, 1, time, time))
    # XLA leaves out a transposition of a transposed tensor.
    query, key, value = (ops.transpose(x, (0, 2, 1, 3)) for x in (query, key, value))
    x = ops.dot_product_attention(query, key, value, mask=mask, scale=1.0)
    return ops.transpose(x, (0, 2, 1, 3))
