"""When a text needs no further layer."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import tensorflow as tf

from albert_tf_lite.errors import AlbertError

# The last class of a text that no layer has classified.
NO_CLASS = -1.0


@dataclasses.dataclass(frozen=True)
class Patience:
    """Leave when the layers after one have all given its class, `layers` of them.

    Args:
        layers: int, from 1 on; the more, the slower and the safer.

    Reference:
        [PABEE](https://arxiv.org/abs/2006.04152), section 3.2.
    """

    layers: int

    # Of each text: the last class, and how many layers after the first gave it.
    beginning = (NO_CLASS, 0.0)

    def __post_init__(self):
        if self.layers < 1:
            raise AlbertError(
                f"`layers` should be 1 at least. Received: layers={self.layers}"
            )

    def step(
        self, probabilities: tf.Tensor, memory: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """What a layer more says.

        Args:
            probabilities: float tensor [texts, classes].
            memory: float tensor [texts, 2], what the last step returned.

        Returns:
            Which texts are done, bool [texts], and the new memory.
        """
        last, count = tf.unstack(memory, axis=1)
        label = _label(probabilities)
        count = tf.where(label == last, count + 1, 0.0)
        return count >= self.layers, tf.stack([label, count], axis=1)


@dataclasses.dataclass(frozen=True)
class ConfidenceWindow:
    """Leave when a layer is certain, or some in a row are ever more so.

    A layer is certain where the entropy of its probabilities is below a threshold. Else
    a text leaves after `window` layers that all give one class, none with a smaller
    probability than the one before, and the first with `margin` more than by chance.

    Args:
        entropy: float, 0 to 1, where 1 is that of equal probabilities; the larger, the
            faster. 0.1 is careful.
        window: optional int, from 2 on; `None` for the threshold alone.
        margin: float.

    Reference:
        [ELBERT](https://arxiv.org/abs/2107.00175), of whose code this is the rule with
        a rising window, for any number of classes.
    """

    entropy: float
    window: int | None = 4
    margin: float = 0.1

    # Of each text: the last class, its probability, and the layers of the window.
    beginning = (NO_CLASS, 0.0, 0.0)

    def __post_init__(self):
        if not 0 <= self.entropy <= 1:
            raise AlbertError(
                f"`entropy` should lie between 0 and 1. Received: {self.entropy}"
            )
        if self.window is not None and self.window < 2:
            raise AlbertError(
                f"`window` should be 2 at least, or None. Received: {self.window}"
            )

    def step(
        self, probabilities: tf.Tensor, memory: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """As of `Patience`, with a memory [texts, 3]."""
        classes = probabilities.shape[-1]
        last, before, length = tf.unstack(memory, axis=1)
        label, most = _label(probabilities), tf.reduce_max(probabilities, axis=1)
        goes_on = (label == last) & (most >= before) & (length > 0)
        begins = most > 1 / classes + self.margin
        length = tf.where(goes_on, length + 1, tf.where(begins, 1.0, 0.0))
        logs = tf.math.log(tf.maximum(probabilities, 1e-30))
        entropy = -tf.reduce_sum(probabilities * logs, axis=1) / math.log(classes)
        done = entropy < self.entropy
        if self.window is not None:
            done |= length >= self.window
        return done, tf.stack([label, most, length], axis=1)


def _label(probabilities):
    return tf.cast(tf.argmax(probabilities, axis=1), tf.float32)


def exit_rule(early_exit: Any) -> Patience | ConfidenceWindow:
    """A rule, of which a number is the first argument.

    Args:
        early_exit: a rule; or an int, for `Patience`; or a float, for
            `ConfidenceWindow`.
    """
    if isinstance(early_exit, (Patience, ConfidenceWindow)):
        return early_exit
    if isinstance(early_exit, bool) or not isinstance(early_exit, (int, float)):
        raise TypeError(
            "`early_exit` should be Patience(2), or 2 for short; or "
            "ConfidenceWindow(0.1), or 0.1 for short. Received: "
            f"{early_exit!r}"
        )
    return {int: Patience, float: ConfidenceWindow}[type(early_exit)](early_exit)
