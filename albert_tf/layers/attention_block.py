from typing import Any

import keras
from keras import ops

from albert_tf.layers.common import Tensor, dense_in, layer_norm
from albert_tf_lite.errors import AlbertError

# What the originals add to the score of a masked key. Kept, rather than minus
# infinity, so that a text that is all padding gives the same numbers too.
MASKED_SCORE = -10000.0


@keras.saving.register_keras_serializable(package="albert_tf")
class AttentionBlock(keras.layers.Layer):
    """The attention half of an encoder block, with residual and LayerNorm.

    Query, key and value are one matrix product; their kernels stand side by
    side in `query_key_value`.

    Args:
        num_heads: int. Attention heads; must divide the width of the input.
        hidden_dropout: float. Rate on the output before the residual is added.
        attention_dropout: float. Rate on the attention probabilities.
        normalize_first: bool. LayerNorm on the way in (pre-LN) instead of after the
            residual (post-LN).

    Call arguments and what is returned: as of `EncoderBlock`.

    Reference:
        [Attention is all you need, section 3.2](https://arxiv.org/abs/1706.03762)
    """

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
        self.hidden_dropout_rate = hidden_dropout
        self.attention_dropout_rate = attention_dropout
        self.normalize_first = normalize_first

    def build(self, inputs_shape):
        hidden_dim = inputs_shape[-1]
        if hidden_dim % self.num_heads:
            raise AlbertError(
                "The width of the hidden states must be a multiple of "
                f"`num_heads`. Received: width {hidden_dim}, "
                f"num_heads={self.num_heads}"
            )
        self.head_dim = hidden_dim // self.num_heads
        policy = self.dtype_policy
        self.query_key_value = dense_in(self, "query_key_value", 3 * hidden_dim)
        self.output_dense = dense_in(self, "output_dense", hidden_dim)
        self.layer_norm = layer_norm(dtype=policy, name="layer_norm")
        self.attention_dropout = keras.layers.Dropout(
            self.attention_dropout_rate, dtype=policy, name="attention_dropout"
        )
        self.hidden_dropout = keras.layers.Dropout(
            self.hidden_dropout_rate, dtype=policy, name="hidden_dropout"
        )
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
        x = self.layer_norm(inputs) if self.normalize_first else inputs
        query, key, value = self._query_key_value(x)
        if output_length is not None:
            query, inputs = query[:, :, :output_length], inputs[:, :output_length]
        scores = ops.matmul(query, ops.transpose(key, (0, 1, 3, 2)))
        scores = scores * self.head_dim**-0.5
        for mask in self._score_masks(padding_mask, attention_mask):
            scores = scores + mask[:, :, :output_length]
        probabilities = ops.softmax(scores, axis=-1)
        dropped = self.attention_dropout(probabilities, training=training)
        x = ops.transpose(ops.matmul(dropped, value), (0, 2, 1, 3))
        x = self.output_dense(ops.reshape(x, (-1, inputs.shape[-1])))
        x = self.hidden_dropout(x, training=training)
        x = inputs + ops.reshape(x, ops.shape(inputs))
        x = x if self.normalize_first else self.layer_norm(x)
        return (x, probabilities) if return_attention_scores else x

    def compute_output_spec(
        self, inputs, *args, return_attention_scores=False, output_length=None, **kwargs
    ):
        # Said rather than traced: a deep model is built ten times faster.
        batch, time, hidden_dim = inputs.shape
        queries = output_length or time
        spec = keras.KerasTensor((batch, queries, hidden_dim), self.compute_dtype)
        if not return_attention_scores:
            return spec
        scores = (batch, self.num_heads, queries, time)
        return spec, keras.KerasTensor(scores, self.compute_dtype)

    def _query_key_value(self, x):
        """Three tensors [batch, heads, time, head_dim]."""
        batch, time, hidden_dim = ops.shape(x)
        x = self.query_key_value(ops.reshape(x, (-1, hidden_dim)))
        x = ops.reshape(x, (batch, time, 3, self.num_heads, self.head_dim))
        return ops.unstack(ops.transpose(x, (2, 0, 3, 1, 4)), 3)

    def _score_masks(self, padding_mask, attention_mask):
        """What each mask adds to the scores [batch, heads, query, key]."""
        if padding_mask is not None:
            padding_mask = ops.expand_dims(padding_mask, 1)
        for mask in (padding_mask, attention_mask):
            if mask is not None:
                blocked = 1.0 - ops.cast(mask, self.compute_dtype)
                yield ops.expand_dims(blocked, 1) * MASKED_SCORE

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "hidden_dropout": self.hidden_dropout_rate,
            "attention_dropout": self.attention_dropout_rate,
            "normalize_first": self.normalize_first,
        }
