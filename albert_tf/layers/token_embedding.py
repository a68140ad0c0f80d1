from typing import Any

import keras
from keras import ops

from albert_tf.layers.common import Tensor


@keras.saving.register_keras_serializable(package="albert_tf")
class TokenEmbedding(keras.layers.Embedding):
    """Keras' `Embedding` with a dense gradient and a method to score tokens.

    On TensorFlow, Keras' Adam, AdamW and Lamb do not add the repeated rows of a sparse
    gradient, so a token that occurs twice in a batch would get a wrong second moment.
    In mixed precision the rows are looked up, and their gradients added, in float32.

    Args:
        input_dim: int. Rows of the table, the size of the vocabulary.
        output_dim: int. Width of the table.
        **kwargs: passed to `keras.layers.Embedding`.

    Call arguments:
        inputs: int tensor [...].

    Returns:
        A float tensor [..., output_dim].

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
        """Score vectors against every row of the table.

        Args:
            x: float tensor [..., output_dim].

        Returns:
            A float tensor [..., input_dim].
        """
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
