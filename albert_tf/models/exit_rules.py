"""The rule by which a text leaves the encoder early."""

from __future__ import annotations

import dataclasses

import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class Patience:
    """Exit when the `layers` layers after one have all predicted its class.

    Args:
        layers: int, at least 1. The larger, the slower and the safer.

    Raises:
        TypeError: if `layers` is not an int.
        ValueError: if `layers` is less than 1.

    Reference:
        [PABEE](https://arxiv.org/abs/2006.04152), section 3.2.
    """

    layers: int

    # Per text: the last class (none yet), and how many layers in a row repeated it.
    beginning = (-1.0, 0.0)

    def __post_init__(self):
        if isinstance(self.layers, bool) or not isinstance(self.layers, int):
            raise TypeError(
                "`early_exit` should be an int, the number of further layers that must "
                f"predict the same class. Received: {self.layers!r}"
            )
        if self.layers < 1:
            raise ValueError(
                f"`early_exit` should be at least 1. Received: {self.layers}"
            )

    def step(
        self, probabilities: tf.Tensor, memory: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Update the memory with the output of one more layer.

        Args:
            probabilities: float tensor [texts, classes].
            memory: float tensor [texts, 2], the result of the previous step, at first
                `beginning` for each text.

        Returns:
            A bool tensor [texts], true for texts that exit, and the new memory.
        """
        last, count = tf.unstack(memory, axis=1)
        label = tf.cast(tf.argmax(probabilities, axis=1), tf.float32)
        count = tf.where(label == last, count + 1, 0.0)
        return count >= self.layers, tf.stack([label, count], axis=1)
