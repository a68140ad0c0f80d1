from typing import Any

import keras

from albert_tf.layers.activations import Activation
from albert_tf.layers.albert_layer import AlbertLayer
from albert_tf.layers.attention_block import AttentionBlock
from albert_tf.layers.feed_forward_block import FeedForwardBlock
from albert_tf.layers.tensor_types import Shape, Tensor


@keras.saving.register_keras_serializable(package="albert_tf")
class EncoderBlock(AlbertLayer):
    """Transformer encoder block: attention half, then feed-forward half.

    A block that is called several times shares its parameters across layers, as in
    ALBERT. To share one half only, pass the same `attention` (or `feed_forward`) to
    several blocks.

    Args:
        intermediate_dim: int. Width inside the feed-forward half.
        num_heads: int. Attention heads; must divide the width of the input.
        activation: string or callable. `"gelu_approximate"` (called "gelu" in the
            original configs), or any Keras activation.
        hidden_dropout: float. Dropout rate after each half, before its residual.
        attention_dropout: float. Dropout rate of the attention probabilities.
        normalize_first: bool. Pre-LN instead of post-LN.
        attention: optional `AttentionBlock` to use instead of a new one.
        feed_forward: optional `FeedForwardBlock` to use instead of a new one.

    Call arguments:
        inputs: float tensor [batch, time, hidden].
        padding_mask: optional tensor [batch, time], 0 or False at padding.
        attention_mask: optional tensor [batch, time, time], 0 or False where the query
            (axis 1) may not attend to the key (axis 2).
        return_attention_scores: bool. Also return the attention probabilities
            [batch, heads, time, time].
        output_length: optional int. Compute the first positions only, which attend to
            all. A classifier needs 1 in the last layer.

    Returns:
        A float tensor [batch, time, hidden], or a tuple of it and the probabilities.

    Example:
    ```python
    x = keras.Input((None, 48))
    block = albert_tf.layers.EncoderBlock(intermediate_dim=96, num_heads=4)
    model = keras.Model(x, block(block(block(x))))  # Three layers that share weights.
    ```

    Reference:
        [ALBERT, section 3.1](https://arxiv.org/abs/1909.11942)
    """

    def __init__(
        self,
        intermediate_dim: int,
        num_heads: int,
        activation: Activation = "gelu_approximate",
        hidden_dropout: float = 0.0,
        attention_dropout: float = 0.0,
        normalize_first: bool = False,
        attention: AttentionBlock | None = None,
        feed_forward: FeedForwardBlock | None = None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.supports_masking = True
        # For the config. Keras saves halves that blocks share only once.
        given = {"attention": attention, "feed_forward": feed_forward}
        self._given_halves = {name: half for name, half in given.items() if half}
        both: dict[str, Any] = {
            "hidden_dropout": hidden_dropout,
            "normalize_first": normalize_first,
            "dtype": self.dtype_policy,
        }
        self.attention = attention or AttentionBlock(
            num_heads, attention_dropout=attention_dropout, name="attention", **both
        )
        self.feed_forward = feed_forward or FeedForwardBlock(
            intermediate_dim, activation=activation, name="feed_forward", **both
        )

    def build(self, inputs_shape: Shape) -> None:
        for half in (self.attention, self.feed_forward):
            if not half.built:
                half.build(inputs_shape)
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
        attended = self.attention(
            inputs,
            padding_mask,
            attention_mask,
            training=training,
            return_attention_scores=return_attention_scores,
            output_length=output_length,
        )
        if not return_attention_scores:
            return self.feed_forward(attended, training=training)
        attended, scores = attended
        return self.feed_forward(attended, training=training), scores

    def compute_output_spec(
        self, inputs: keras.KerasTensor, *args: Any, **kwargs: Any
    ) -> Any:
        if kwargs.get("return_attention_scores"):
            return super().compute_output_spec(inputs, *args, **kwargs)
        # Without tracing a deep model is built ten times faster.
        batch, time, hidden_dim = inputs.shape
        shape = (batch, kwargs.get("output_length") or time, hidden_dim)
        return keras.KerasTensor(shape, self.compute_dtype)

    def get_config(self) -> dict[str, Any]:
        # The arguments of a given half are those of the block.
        return {
            **self.feed_forward.get_config(),
            **self.attention.get_config(),
            **keras.layers.Layer.get_config(self),
            **self._given_halves,
        }
