from typing import Any

import keras
from keras import ops

from albert_tf.layers.albert_layer import AlbertLayer
from albert_tf.layers.dense import albert_initializer, dense
from albert_tf.layers.layer_normalization import layer_norm
from albert_tf.layers.tensor_types import Shape, Tensor
from albert_tf_lite.errors import AlbertError

PROJECTION_ORDERS = ("before_layer_norm", "after_layer_norm")


@keras.saving.register_keras_serializable(package="albert_tf")
class FactorizedEmbedding(AlbertLayer):
    """Token, segment and position embeddings with a factorized token table.

    The token table is `embedding_dim` wide and is projected to `hidden_dim`. The two
    released families differ in the place of the projection:

    - `"after_layer_norm"` (Google): token, segment and position embeddings are
      `embedding_dim` wide. Their sum is normalised, then projected with a bias.
    - `"before_layer_norm"` (albert_zh): the token embedding is projected without bias.
      Segment and position embeddings are `hidden_dim` wide and are added to it, then
      the sum is normalised.

    Args:
        vocabulary_size: int. Rows of the token table.
        embedding_dim: int. Width of the token table (the paper's E).
        hidden_dim: int. Width of the output (the paper's H).
        max_sequence_length: int. Rows of the position table, in tokens.
        num_segments: int. Rows of the segment table.
        projection: `"before_layer_norm"` or `"after_layer_norm"`.
        dropout: float. Dropout rate of the normalised embedding.

    Call arguments:
        token_ids: int tensor [batch, time].
        segment_ids: int tensor [batch, time].

    Returns:
        A float tensor [batch, time, hidden_dim].

    Raises:
        AlbertError: if `projection` is unknown, or if the texts have more than
            `max_sequence_length` tokens.

    Example:

    >>> layer = albert_tf.layers.FactorizedEmbedding(100, 16, 48)
    >>> layer(np.zeros([2, 8], "int32"), np.zeros([2, 8], "int32")).shape
    TensorShape([2, 8, 48])

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
                f"`projection` must be one of {PROJECTION_ORDERS}, as in albert_zh and "
                f"in Google's code. Received: projection={projection!r}"
            )
        self.vocabulary_size = vocabulary_size
        self.embedding_dim = embedding_dim
        self.hidden_dim = hidden_dim
        self.max_sequence_length = max_sequence_length
        self.num_segments = num_segments
        self.projection_order = projection
        self.project_first = projection == "before_layer_norm"
        # The width at which the three embeddings are added and normalised.
        self.sum_dim = hidden_dim if self.project_first else embedding_dim
        dtype = self.dtype_policy
        self.layer_norm = layer_norm(dtype=dtype)
        self.dropout = keras.layers.Dropout(dropout, dtype=dtype, name="dropout")
        self.token_embedding = TokenEmbedding(
            vocabulary_size,
            embedding_dim,
            embeddings_initializer=albert_initializer(),
            dtype=dtype,
            name="token_embedding",
        )
        self.projection = dense(
            hidden_dim, use_bias=not self.project_first, dtype=dtype, name="projection"
        )
        if self.project_first:
            # With the original's 0.02 the tokens begin several times smaller than the
            # positions in albert_zh's sum, and a model trained from random weights sees
            # little but positions for hundreds of steps (measured).
            self.projection.kernel_initializer = keras.initializers.VarianceScaling()

    def build(
        self, token_ids_shape: Shape, segment_ids_shape: Shape | None = None
    ) -> None:
        self.segment_table = self._table("segment_table", self.num_segments)
        self.position_table = self._table("position_table", self.max_sequence_length)
        self.token_embedding.build()
        self.projection.build((None, None, self.embedding_dim))
        self.layer_norm.build((None, None, self.sum_dim))
        self.built = True

    def _table(self, name, rows):
        shape = (rows, self.sum_dim)
        return self.add_weight(shape, initializer=albert_initializer(), name=name)

    @property
    def token_table(self) -> keras.Variable:
        """Return the token table [vocabulary_size, embedding_dim]."""
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
        """Score vectors [..., sum_dim] against the token table (tied weights)."""
        if self.project_first:
            kernel = self.projection.kernel
            if self.projection.quantization_mode is not None:
                # A call scales the integers of a quantized kernel.
                kernel = self.projection(
                    ops.eye(self.embedding_dim, dtype=self.compute_dtype)
                )
            x = ops.matmul(x, ops.transpose(kernel))
        return self.token_embedding.reverse(x)

    def _positions(self, token_ids):
        return self.position_table[: ops.shape(token_ids)[1]]

    def _check_length(self, length):
        if length is not None and length > self.max_sequence_length:
            raise AlbertError(
                f"The input has {length} tokens, but this model has only "
                f"{self.max_sequence_length} positions. Truncate the texts by the "
                "`sequence_length` of the preprocessor."
            )

    def compute_output_shape(
        self, token_ids_shape: Shape, segment_ids_shape: Shape | None = None
    ) -> Shape:
        self._check_length(token_ids_shape[1])
        return (*token_ids_shape, self.hidden_dim)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "projection": self.projection_order}


@keras.saving.register_keras_serializable(package="albert_tf")
class TokenEmbedding(keras.layers.Embedding):
    """Keras' `Embedding` with a dense gradient and a method to score tokens.

    On TensorFlow, Keras' Adam, AdamW and Lamb do not add the repeated rows of a sparse
    gradient, so a token that occurs twice in a batch would get a wrong second moment.
    In mixed precision the rows are looked up, and their gradients added, in float32.

    The arguments are those of `keras.layers.Embedding`.

    Example:

    >>> albert_tf.layers.TokenEmbedding(100, 16)(np.zeros([2, 8], "int32")).shape
    TensorShape([2, 8, 16])
    """

    def call(self, inputs: Tensor) -> Tensor:
        # Reshaping to the same shape costs nothing forward. Backward, TensorFlow turns
        # the sparse gradient of the lookup into a dense one.
        table = ops.reshape(self.embeddings, (self.input_dim, self.output_dim))
        return ops.cast(ops.take(table, inputs, axis=0), self.compute_dtype)

    def reverse(self, x: Tensor) -> Tensor:
        """Score vectors [..., output_dim] against every row of the table."""
        table = self.embeddings
        if self.quantization_mode is not None:
            # A lookup scales the integers of a quantized table.
            table = self(ops.arange(self.input_dim))
        return ops.matmul(x, ops.transpose(ops.cast(table, self.compute_dtype)))

    def quantize(
        self, mode: str | None = None, type_check: bool = True, **kwargs: Any
    ) -> None:
        # By default Keras does not quantize subclasses.
        super().quantize(mode, type_check=False, **kwargs)
