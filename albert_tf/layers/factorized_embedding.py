from typing import Any

import keras
from keras import ops

from albert_tf.layers.common import (
    Tensor,
    albert_initializer,
    dense_in,
    layer_norm,
    policy_at,
)
from albert_tf.layers.token_embedding import TokenEmbedding
from albert_tf_lite.errors import AlbertError

PROJECTION_ORDERS = ("before_layer_norm", "after_layer_norm")


@keras.saving.register_keras_serializable(package="albert_tf")
class FactorizedEmbedding(keras.layers.Layer):
    """Token, segment and position embeddings with a factorized token table.

    The token table is `embedding_dim` wide and a projection widens it to
    `hidden_dim`. The two released families differ in where it stands:

    - `"after_layer_norm"` (Google): tokens, segments and positions are all
      `embedding_dim` wide, are added and normalised, then projected with a bias.
    - `"before_layer_norm"` (albert_zh): only the token embedding is projected,
      without bias; segments and positions are `hidden_dim` wide and are added
      after it, then all is normalised.

    Args:
        vocabulary_size: int. Rows of the token table.
        embedding_dim: int. Width of the token table (the paper's E).
        hidden_dim: int. Width of the output (the paper's H).
        max_sequence_length: int. Rows of the position table, in tokens.
        num_segments: int. Rows of the segment table.
        projection: `"before_layer_norm"` or `"after_layer_norm"`.
        dropout: float. Rate applied to the normalised embedding.

    Call arguments:
        token_ids: int tensor [batch, time].
        segment_ids: int tensor [batch, time].

    Returns:
        A float tensor [batch, time, hidden_dim].

    Raises:
        AlbertError: if `projection` is unknown, or if the texts have more than
            `max_sequence_length` tokens.

    Reference:
        [ALBERT, section 3.1](https://arxiv.org/abs/1909.11942); albert_zh
        `modeling.py`, `embedding_lookup_factorized`.
    """

    def __init__(
        self,
        vocabulary_size: int,
        embedding_dim: int,
        hidden_dim: int,
        max_sequence_length: int = 512,
        num_segments: int = 2,
        projection: str = "before_layer_norm",
        dropout: float = 0.0,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        if projection not in PROJECTION_ORDERS:
            raise AlbertError(
                f"`projection` must be one of {PROJECTION_ORDERS}: "
                '"before_layer_norm" is albert_zh, "after_layer_norm" is Google. '
                f"Received: projection={projection!r}"
            )
        self.vocabulary_size = vocabulary_size
        self.embedding_dim = embedding_dim
        self.hidden_dim = hidden_dim
        self.max_sequence_length = max_sequence_length
        self.num_segments = num_segments
        self.projection_order = projection
        self.dropout_rate = dropout

        self.project_first = projection == "before_layer_norm"
        # The width at which the three embeddings are added and normalised.
        self.sum_dim = hidden_dim if self.project_first else embedding_dim
        self.layer_norm = layer_norm(dtype=self.dtype_policy, name="layer_norm")
        self.dropout = keras.layers.Dropout(
            dropout, dtype=self.dtype_policy, name="dropout"
        )

    def build(self, token_ids_shape, segment_ids_shape=None):
        self.token_embedding = TokenEmbedding(
            self.vocabulary_size,
            self.embedding_dim,
            embeddings_initializer=albert_initializer(),
            dtype=policy_at(self.dtype_policy, f"{self.path}/token_embedding"),
            name="token_embedding",
        )
        self.projection = dense_in(
            self,
            "projection",
            self.hidden_dim,
            use_bias=not self.project_first,
            # With the original's 0.02 the token part of albert_zh's sum begins several
            # times smaller than the position part, and a model trained from random
            # weights sees little but positions for hundreds of steps (measured).
            kernel_initializer=(
                keras.initializers.VarianceScaling()
                if self.project_first
                else albert_initializer()
            ),
        )
        self.token_embedding.build()
        self.segment_table = self.add_weight(
            name="segment_table",
            shape=(self.num_segments, self.sum_dim),
            initializer=albert_initializer(),
        )
        self.position_table = self.add_weight(
            name="position_table",
            shape=(self.max_sequence_length, self.sum_dim),
            initializer=albert_initializer(),
        )
        self.projection.build((None, None, self.embedding_dim))
        self.layer_norm.build((None, None, self.sum_dim))
        self.built = True

    @property
    def token_table(self) -> keras.Variable:
        """The table of the token embedding [vocabulary_size, embedding_dim]."""
        return self.token_embedding.embeddings

    def call(
        self, token_ids: Tensor, segment_ids: Tensor, training: bool | None = None
    ) -> Tensor:
        self._check_length(token_ids.shape[1])
        x = ops.cast(self.token_embedding(token_ids), self.compute_dtype)
        if self.project_first:
            x = self.projection(x)
        segments = ops.one_hot(segment_ids, self.num_segments, dtype=self.compute_dtype)
        x = x + ops.matmul(segments, self.segment_table)
        x = x + self._positions(token_ids)
        x = self.dropout(self.layer_norm(x), training=training)
        return x if self.project_first else self.projection(x)

    def reverse(self, x: Tensor) -> Tensor:
        """Score hidden states against the token table (tied output weights).

        Args:
            x: float tensor [..., hidden_dim] for `"before_layer_norm"` (the transposed
                projection comes first), [..., embedding_dim] for `"after_layer_norm"`.

        Returns:
            A float tensor [..., vocabulary_size].
        """
        if self.project_first:
            x = ops.matmul(x, ops.transpose(self._projection_kernel()))
        return self.token_embedding.reverse(x)

    def _positions(self, token_ids):
        return self.position_table[: ops.shape(token_ids)[1]]

    def _projection_kernel(self):
        if self.projection.quantization_mode is None:
            return self.projection.kernel
        # Only a call knows what the numbers of a quantized kernel stand for.
        return self.projection(ops.eye(self.embedding_dim, dtype=self.compute_dtype))

    def _check_length(self, length):
        if length is not None and length > self.max_sequence_length:
            raise AlbertError(
                f"The input has {length} tokens a text, but this model has "
                f"positions for {self.max_sequence_length} only. Cut the texts "
                "(`sequence_length` of the preprocessor does it), or build the "
                "model with a larger `max_sequence_length`."
            )

    def compute_output_spec(self, token_ids, segment_ids=None, training=None):
        self._check_length(token_ids.shape[1])
        return keras.KerasTensor(
            (*token_ids.shape, self.hidden_dim), dtype=self.compute_dtype
        )

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "embedding_dim": self.embedding_dim,
            "hidden_dim": self.hidden_dim,
            "max_sequence_length": self.max_sequence_length,
            "num_segments": self.num_segments,
            "projection": self.projection_order,
            "dropout": self.dropout_rate,
        }
