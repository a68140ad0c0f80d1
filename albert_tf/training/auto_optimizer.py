"""The default optimizer of a task, whose schedule follows the steps of each `fit`."""

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import keras

from albert_tf.layers.private_keras import moving_averages
from albert_tf.training.optimizers import scheduled_optimizer, unscaled_optimizer
from albert_tf_lite.errors import AlbertError

# Callbacks that set the learning rate, which Keras refuses if it has a schedule.
_RATE_CALLBACKS = (
    keras.callbacks.LearningRateScheduler,
    keras.callbacks.ReduceLROnPlateau,
)


class AutoOptimizer:
    """AdamW whose rate rises and falls with the steps of one `fit`.

    The optimizer of the model holds the whole state: the schedule with its steps and
    its peak, the number of batches and the moments. So does a file of the model.

    Args:
        recompile: function of `optimizer=` that compiles the model again.
        has_default_rate: bool. The rate was not given, and each `fit` may choose one.
        **settings: arguments of `scheduled_optimizer`, which `compile` stores.
    """

    def __init__(
        self,
        recompile: Callable[..., None],
        has_default_rate: bool = False,
        **settings: Any,
    ):
        self.settings = settings
        self.has_default_rate = has_default_rate
        self._recompile = recompile
        # The weights of the optimizer's moments.
        self._weights: list[keras.Variable] = []
        self._is_running = False

    def build(
        self, steps: int | None = None, **settings: Any
    ) -> keras.optimizers.Optimizer:
        """Return the optimizer for a number of steps, by default of constant rate."""
        settings = {**self.settings, **settings}
        return scheduled_optimizer("adamw", total_steps=steps, **settings)

    def restore(self, optimizer: keras.optimizers.Optimizer) -> None:
        """Compile the model with the optimizer of a file, whose schedule goes on."""
        self._recompile(optimizer=optimizer)

    def check_callbacks(self, callbacks: Any) -> None:
        """Raise if a callback would set the rate that the schedule sets."""
        for callback in keras.tree.flatten(callbacks):
            if isinstance(callback, _RATE_CALLBACKS):
                rate = self.settings["learning_rate"]
                raise AlbertError(
                    f"{type(callback).__name__} cannot set the learning rate, because "
                    "the default optimizer has a schedule. First call "
                    f"compile(optimizer=keras.optimizers.AdamW({rate}))."
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

    def build_variables(self, model: keras.Model) -> None:
        """Create the moments of the weights that are trained."""
        if not model.optimizer.built:
            self._weights = model.trainable_variables
            model.optimizer.build(self._weights)

    def schedule(
        self,
        model: keras.Model,
        steps_per_epoch: int,
        epochs: int,
        initial_epoch: int = 0,
        learning_rate: float | None = None,
    ) -> None:
        """Set the schedule of a model for the steps of one `fit`.

        The rate is constant if `steps_per_epoch` is 0, unknown. `epochs` include those
        before `initial_epoch`. From `initial_epoch` 0 the optimizer starts over. From
        another one its moments go on, and so does its schedule if it has as many steps.
        `learning_rate` is the peak of this `fit`, by default that of the settings.
        """
        # Keras' schedules count batches, even if several are one update.
        steps = steps_per_epoch * epochs
        state = self._state(model) if initial_epoch else None
        if state is not None and _total_steps(model.optimizer) == steps:
            return
        rate = learning_rate or self.settings["learning_rate"]
        optimizer = self.build(steps, learning_rate=rate)
        is_same = _schedule(optimizer) == _schedule(model.optimizer)
        if not (is_same and self._has_moments(model)):
            self._recompile(optimizer=optimizer)
            self.build_variables(model)
        for number, variable in enumerate(
            unscaled_optimizer(model.optimizer).variables
        ):
            # Reset without tracing the training step again. A scale of the loss, which
            # is not among these variables, suits the model and stays.
            value = keras.ops.zeros_like(variable) if state is None else state[number]
            variable.assign(value)

    def set_count(self, model: keras.Model, steps: int, is_checked: bool) -> None:
        """Set the number of batches before a resumed `fit`, where the schedule goes on.

        Warn if the optimizer has no state of so many, unless a callback loads it.
        """
        optimizer = unscaled_optimizer(model.optimizer)
        # The first variable counts batches; `iterations` are updates.
        count = int(optimizer.variables[0])
        if count == steps:
            return
        if is_checked:
            warnings.warn(
                f"The epochs before `initial_epoch` have {steps} steps, but the "
                f"optimizer has made {count}. The learning rate is that after {steps}, "
                f"the moments are those after {count}. To resume exactly, load a whole "
                "model, saved as a .keras file (weights alone have no moments), and "
                "pass the same data, `batch_size` and `epochs`.",
                stacklevel=3,
            )
        optimizer.variables[0].assign(steps)
        if count == 0 and optimizer.use_ema:
            # Keras starts an average from the weights only at the very first step.
            averages = moving_averages(optimizer)
            for average, weight in zip(averages, self._weights, strict=True):
                average.assign(weight)

    def hold_rate(self, model: keras.Model) -> None:
        """Start over at a constant rate, for steps outside `fit`, unless it is so."""
        if _total_steps(model.optimizer):
            self._recompile(optimizer=self.build())

    def _has_moments(self, model):
        """Return whether the optimizer has moments of the weights that are trained."""
        weights = model.trainable_variables
        return model.optimizer.built and list(map(id, weights)) == list(
            map(id, self._weights)
        )

    def _state(self, model):
        """Return the values of the optimizer's variables, if it has any."""
        if not self._has_moments(model):
            return None
        return [
            keras.ops.copy(x) for x in unscaled_optimizer(model.optimizer).variables
        ]


def _schedule(optimizer):
    """Return the schedule of an optimizer as its config."""
    return unscaled_optimizer(optimizer).get_config()["learning_rate"]


def _total_steps(optimizer):
    """Return the steps of the schedule of an optimizer, 0 for a constant rate."""
    return _schedule(optimizer)["config"].get("total_steps", 0)
