"""Settings of a training run."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from albert_tf.layers import WholeWordMaskGenerator
from albert_tf.training.optimizers import WarmupLinearDecay
from albert_tf_lite.errors import AlbertError

# Sequences are padded to these lengths, because XLA compiles a program for each.
WIDTHS = (32, 64, 96, 128, 256, 512)


@dataclasses.dataclass(frozen=True, kw_only=True)
class BatchSettings:
    """Settings of batches.

    Args:
        batch_tokens: int. Tokens per batch, padding included.
        seed: int from 0 to 2**31 - 1, of order, segments and masks.
        steps_per_call: int. Steps that a call of the device trains, more for a small
            model on a GPU.
        padded_lengths: ints. Sequences are padded to the next of these lengths, or to
            that of the longest. XLA compiles a program for each.
        hosts, host: ints. Number of processes that train together, and the index of
            this one.
    """

    batch_tokens: int = 65_536
    seed: int = 0
    steps_per_call: int = 1
    padded_lengths: Sequence[int] = WIDTHS
    hosts: int = 1
    host: int = 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Run(BatchSettings):
    """Settings of a training, which identify it when it is resumed.

    Args:
        steps: int. Number of training batches.
        minutes: optional float, instead of `steps`: the number of steps follows from a
            trial of each length of batches.
        batch_tokens: int. Tokens per batch, padding included.
        learning_rate: optional float, the peak of a warm-up and linear decay over the
            steps, instead of the rate of the optimizer.
        warmup_share: float. Share of the steps in which that rate rises.
        masks: optional `WholeWordMaskGenerator`. By default masked records keep their
            masks, and others are masked with `records.masks()`.
        seed: int from 0 to 2**31 - 1, of order, segments and masks.
        interval: optional int. Steps between two entries of the history and evaluations
            on dev. By default the largest number from 100 to 1,000 that divides the
            steps, or all steps; with `minutes` a twentieth of them.
        steps_per_call: int. Steps that a call of the device trains, more for a small
            model on a GPU.
        padded_lengths: ints. Sequences are padded to the next of these lengths, or to
            that of the longest. XLA compiles a program for each.
        hosts, host: ints. Number of processes that train together, and the index of
            this one. They share the output directory; the first writes there.
        settings: optional dict, further values that identify the run, such as the
            `data_digest` of the initial weights.

    Raises:
        AlbertError: unless one of `steps` and `minutes` is given.

    Example:
    ```python
    run = albert_tf.pretraining.Run(steps=10_000, learning_rate=1e-3)
    ```
    """

    steps: int | None = None
    minutes: float | None = None
    learning_rate: float | None = None
    warmup_share: float = 0.1
    masks: WholeWordMaskGenerator | None = None
    interval: int | None = None
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        if (self.steps is None) == (self.minutes is None):
            raise AlbertError(
                "A run needs `steps` or `minutes`. Received: "
                f"steps={self.steps}, minutes={self.minutes}"
            )

    def identity(self) -> dict[str, Any]:
        """Return the settings that a resumed run must have, as JSON can hold them."""
        fields = {x.name: getattr(self, x.name) for x in dataclasses.fields(self)}
        # The hosts of one run differ in it.
        del fields["host"]
        settings = fields.pop("settings")
        if self.masks is not None:
            fields["masks"] = self.masks.get_config()
        return {**fields, **settings}

    def schedule(self, steps: int) -> WarmupLinearDecay | None:
        """Return the learning rate of each of a number of steps, if it is given."""
        if self.learning_rate is None:
            return None
        warmup = int(steps * self.warmup_share)
        return WarmupLinearDecay(self.learning_rate, steps, warmup)
