"""Two passes with different dropout, whose answers should agree."""

from __future__ import annotations

from typing import Any

from keras import ops

from albert_tf_lite.errors import AlbertError


class RDrop:
    """A classifier whose `compile` takes `r_drop`.

    Each step computes its batch twice. The loss is the mean of both, plus `r_drop`
    times the symmetric Kullback-Leibler divergence of the two answers. It does
    something only where there is dropout: that of the head, 0.1 by default, and
    `hidden_dropout` and `attention_dropout` of the backbone, 0 in most releases. A
    step takes twice as long.

    Reference:
        [R-Drop](https://arxiv.org/abs/2106.14448), equations 1 to 3, with the mean of
        the two losses as in the authors' code.
    """

    r_drop = 0.0

    def compile(self, *args: Any, r_drop: float = 0.0, **kwargs: Any) -> None:
        """As `AutoCompile.compile`.

        Args:
            r_drop: float, 0 for none. The weight of the divergence; 0.5 to 5 in the
                paper.
        """
        if r_drop < 0:
            raise AlbertError(f"`r_drop` must be 0 or more. Received: {r_drop}")
        self.r_drop = r_drop
        super().compile(*args, **kwargs)

    def get_compile_config(self) -> dict[str, Any] | None:
        config = super().get_compile_config()
        return {**config, "r_drop": self.r_drop} if config and self.r_drop else config

    def compute_loss(
        self, x=None, y=None, y_pred=None, sample_weight=None, training=True
    ):
        loss = super().compute_loss(x, y, y_pred, sample_weight, training)
        if not (training and self.r_drop):
            return loss
        again = self(x, training=True)
        second_loss = super().compute_loss(x, y, again, sample_weight, training)
        first, second = map(self.class_logits, (y_pred, again))
        return (loss + second_loss) / 2 + self.r_drop * divergence(first, second)


def divergence(first: Any, second: Any) -> Any:
    """The mean of both Kullback-Leibler divergences of logits [..., classes]."""
    difference = ops.softmax(first) - ops.softmax(second)
    logs = ops.log_softmax(first) - ops.log_softmax(second)
    return ops.mean(ops.sum(difference * logs, axis=-1)) / 2
