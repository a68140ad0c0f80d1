"""The default optimizer of a task, whose schedule follows the steps of each `fit`."""

import contextlib
import dataclasses
import numbers
import warnings
from collections.abc import Iterator, Sequence

import keras

from albert_tf.layers.private_keras import moving_averages
from albert_tf.training.optimizers import (
    AdjustableDecay,
    optimizer_with,
    unscaled_optimizer,
    warmup_of,
)
from albert_tf_lite.errors import AlbertError

# Callbacks that set the learning rate, which Keras refuses if it has a schedule.
_RATE_CALLBACKS = (
    keras.callbacks.LearningRateScheduler,
    keras.callbacks.ReduceLROnPlateau,
)


@dataclasses.dataclass(frozen=True)
class AutoSettings:
    """The arguments of `compile` for `optimizer="auto"`, `None` if not given."""

    learning_rate: float | None = None
    ema_momentum: float | None = None
    gradient_accumulation_steps: int | None = None

    def given(self) -> list[str]:
        """Return the names of the arguments that were given."""
        values = dataclasses.asdict(self)
        return [name for name, value in values.items() if value is not None]

    def check(self) -> None:
        """Raise if the learning rate is not a number."""
        rate = self.learning_rate
        if rate is None:
            return
        if not isinstance(rate, numbers.Real) or rate < 0:
            raise AlbertError(
                "`learning_rate` should be a number, the peak of the schedule of "
                f"optimizer='auto'. Received: {rate!r}. Pass a schedule in an "
                "optimizer: optimizer=keras.optimizers.AdamW(schedule)."
            )


@dataclasses.dataclass(frozen=True)
class FitSteps:
    """The steps of one `fit`, counted in whole epochs.

    Attributes:
        per_epoch: int, 0 if unknown.
        epochs: int, with those before `initial_epoch`.
        initial_epoch: int, above 0 if the training is resumed.
    """

    per_epoch: int
    epochs: int
    initial_epoch: int = 0

    @property
    def total(self) -> int:
        """The steps of all epochs."""
        return self.per_epoch * self.epochs

    @property
    def done(self) -> int:
        """The steps of the epochs before `initial_epoch`."""
        return self.per_epoch * self.initial_epoch


class AutoOptimizer:
    """AdamW whose rate rises and falls with the steps of one `fit`.

    Each `fit` sets the steps and the peak of the schedule and resets the moments, and
    nothing is compiled or traced again. The optimizer of the model holds the state: the
    number of batches and the moments; its config has the schedule. So does a file of
    the model.

    Args:
        settings: an `AutoSettings`.
        learning_rate: float, the peak, unless a `fit` chooses another.
    """

    def __init__(self, settings: AutoSettings, learning_rate: float):
        self.settings = settings
        self.learning_rate = float(learning_rate)
        self.schedule = AdjustableDecay(self.learning_rate)
        # The weights that have moments.
        self._weights: list[keras.Variable] = []
        self._is_running = False

    @property
    def has_default_rate(self) -> bool:
        """True if no rate was given, so that each `fit` may choose one."""
        return self.settings.learning_rate is None

    def new_optimizer(self) -> keras.optimizers.Optimizer:
        """Return an optimizer without moments, of the schedule."""
        self._weights = []
        steps = self.settings.gradient_accumulation_steps
        return optimizer_with(
            "adamw",
            self.schedule,
            ema_momentum=self.settings.ema_momentum,
            gradient_accumulation_steps=steps,
        )

    def build(
        self, optimizer: keras.optimizers.Optimizer, weights: list[keras.Variable]
    ) -> None:
        """Create the moments of the weights to train."""
        self._weights = weights
        optimizer.build(weights)
        self._start_averages(unscaled_optimizer(optimizer))

    def has_moments_of(self, weights: Sequence[keras.Variable]) -> bool:
        """Return whether the optimizer has moments of exactly these weights."""
        return list(map(id, self._weights)) == list(map(id, weights))

    def check_callbacks(self, callbacks: Sequence[keras.callbacks.Callback]) -> None:
        """Raise if a callback would set the rate that the schedule sets."""
        for callback in callbacks:
            if isinstance(callback, _RATE_CALLBACKS):
                raise AlbertError(
                    f"{type(callback).__name__} cannot set the learning rate, because "
                    "the default optimizer has a schedule. First call "
                    f"compile(optimizer=keras.optimizers.AdamW({self.learning_rate}))."
                )

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Refuse a second training by the same optimizer before the first has ended."""
        if self._is_running:
            raise AlbertError(
                "A callback trains the model during its `fit`, which would replace the "
                "schedule of the default optimizer. First call "
                "compile(optimizer=keras.optimizers.AdamW(1e-4)), or train a copy."
            )
        self._is_running = True
        try:
            yield
        finally:
            self._is_running = False

    def resume(self, optimizer: keras.optimizers.Optimizer) -> None:
        """Let the schedule go on from that of the optimizer in a file."""
        stored = unscaled_optimizer(optimizer).get_config()["learning_rate"]["config"]
        self.schedule.set(**stored)

    def start_fit(
        self,
        optimizer: keras.optimizers.Optimizer,
        steps: FitSteps,
        learning_rate: float,
        loads_its_state: bool = False,
    ) -> None:
        """Set the schedule and the state of the optimizer for one `fit`.

        A `fit` from epoch 0 starts over. Another one is resumed: its moments go on, and
        so does its schedule if it has as many steps. The rate is constant if the number
        of steps is unknown.

        Args:
            optimizer: the built optimizer of the model.
            steps: the steps of the `fit`.
            learning_rate: float, the peak of this `fit`.
            loads_its_state: bool. A callback will load the state of the optimizer, so
                do not warn if there is none yet.
        """
        is_resumed = steps.initial_epoch > 0
        if not is_resumed:
            self.reset(optimizer)
        if not (is_resumed and self.schedule.total_steps == steps.total):
            self.schedule.set(learning_rate, steps.total, warmup_of(steps.total))
        if is_resumed and steps.total:
            self._go_to(optimizer, steps, loads_its_state)

    def start_single_steps(self, optimizer: keras.optimizers.Optimizer) -> bool:
        """Start over if the rate is not constant; return whether it was not."""
        if not self.schedule.total_steps:
            return False
        self.reset(optimizer)
        self.schedule.set(self.learning_rate)
        return True

    def reset(self, optimizer: keras.optimizers.Optimizer) -> None:
        """Set the number of batches and the moments to 0.

        The scale of a `LossScaleOptimizer` suits the model and stays.
        """
        optimizer = unscaled_optimizer(optimizer)
        for variable in optimizer.variables:
            variable.assign(keras.ops.zeros(variable.shape, variable.dtype))
        self._start_averages(optimizer)

    def _go_to(self, optimizer, steps, loads_its_state):
        """Set the number of batches before a resumed `fit`, and warn if it differs."""
        # The scale of the loss may have been too large for some batches of float16,
        # which the optimizer leaves out, as it did before the interruption.
        may_skip = isinstance(optimizer, keras.optimizers.LossScaleOptimizer)
        optimizer = unscaled_optimizer(optimizer)
        # The first variable counts batches; `iterations` are updates.
        counter = optimizer.variables[0]
        count, done = int(counter), steps.done
        is_behind = 0 < count < done and done - count < steps.per_epoch
        if count == done or (may_skip and is_behind):
            return
        if not loads_its_state:
            warnings.warn(
                f"The epochs before `initial_epoch` have {done} steps, but the "
                f"optimizer has made {count}. The learning rate is that after {done}, "
                f"the moments are those after {count}. To resume exactly, load a whole "
                "model, saved as a .keras file (weights alone have no moments), and "
                "pass the same data, `batch_size` and `epochs`.",
                # The caller of `fit`.
                stacklevel=5,
            )
        counter.assign(done)
        if count == 0:
            self._start_averages(optimizer)

    def _start_averages(self, optimizer):
        """Set the moving averages, if there are any, to the weights.

        Keras starts them from the weights at the very first update, which a resumed
        `fit` does not make, and which a loss scale of float16 may leave out.
        """
        if not optimizer.use_ema:
            return
        averages = moving_averages(optimizer)
        for average, weight in zip(averages, self._weights, strict=True):
            average.assign(weight)
