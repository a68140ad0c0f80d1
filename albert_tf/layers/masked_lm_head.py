from typing import Any

import keras
from keras import ops

from albert_tf.layers.activations import Activation, get_activation
from albert_tf.layers.albert_layer import AlbertLayer
from albert_tf.layers.dense import dense
from albert_tf.layers.factorized_embedding import FactorizedEmbedding
from albert_tf.layers.layer_normalization import layer_norm
from albert_tf.layers.tensor_types import Shape, Tensor, at_least_float32


@keras.saving.register_keras_serializable(package="albert_tf")
class MaskedLMHead(AlbertLayer):
    """Masked LM head, which scores all tokens of the vocabulary at masked positions.

    It is a dense layer with activation and LayerNorm, then the transposed token table
    (tied to the embedding) and a bias. Google's dense layer is `embedding_dim` wide;
    albert_zh's is `hidden_dim` wide, and its output passes the transposed projection.

    Args:
        embedding: the `FactorizedEmbedding` with the tied table.
        activation: string or callable, as in `FeedForwardBlock`.

    Call arguments:
        sequence_output: float tensor [batch, time, hidden].
        mask_positions: int tensor [batch, predictions], positions in the text.

    Returns:
        Logits, a float tensor [batch, predictions, vocabulary_size].

    Example:
    ```python
    head = albert_tf.layers.MaskedLMHead(backbone.embedding)
    logits = head(backbone(inputs)["sequence_output"], mask_positions)
    ```

    Reference:
        google-research/albert `run_pretraining.py`, `get_masked_lm_output`.
    """

    def __init__(
        self,
        embedding: FactorizedEmbedding,
        activation: Activation = "gelu_approximate",
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.embedding = embedding
        self.activation = get_activation(activation)

    def build(
        self, sequence_output_shape: Shape, mask_positions_shape: Shape | None = None
    ) -> None:
        hidden_dim = sequence_output_shape[-1]
        # The width that `embedding.reverse` takes.
        width = self.embedding.sum_dim
        self.dense = dense(
            width, name="dense", dtype=self.dtype_policy, activation=self.activation
        )
        self.layer_norm = layer_norm(dtype=self.dtype_policy)
        self.dense.build((None, None, hidden_dim))
        self.layer_norm.build((None, None, width))
        self.bias = self.add_weight(
            name="bias",
            shape=(self.embedding.vocabulary_size,),
            initializer="zeros",
            autocast=False,
        )
        self.built = True

    def call(self, sequence_output: Tensor, mask_positions: Tensor) -> Tensor:
        positions = ops.expand_dims(mask_positions, -1)
        x = ops.take_along_axis(sequence_output, positions, axis=1)
        x = self.layer_norm(self.dense(x))
        # The loss needs float32 at least.
        dtype = at_least_float32(self.compute_dtype)
        logits = ops.cast(self.embedding.reverse(x), dtype)
        return logits + ops.cast(self.bias, dtype)
