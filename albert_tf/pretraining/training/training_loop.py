"""Train a model on stacked batches, and resume after an interruption.

Pretraining and the stage on labelled texts train by `train`. The state of a run is in
the directory `.training` of its output (`albert_tf.training.run_state`):

- `identity.json`: the settings, the model and the names of the shards, which contain a
  hash of the text; a run with another identity is refused;
- `steps.json`: steps and interval of a run whose length is in minutes, measured once;
- `epochs.json`: the history, one epoch per interval, and the steps since;
- `epoch-N-step-M.weights.h5`: weights and optimizer at that step.

Batches need no state, because they depend on the seed and the number of the call only.
"""

import dataclasses
import functools
import os
import pathlib
import time
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import keras
import numpy as np

from albert_tf.files import BACKUP, read_json, write_json
from albert_tf.pretraining.training.keras_data import evaluation_data, training_data
from albert_tf.pretraining.training.run import Run
from albert_tf.pretraining.training.stacked_batches import StackedBatches
from albert_tf.pretraining.training.step_model import StepModel
from albert_tf.step_counts import interval_of
from albert_tf.training.digests import without_names
from albert_tf.training.optimizers import WarmupLinearDecay
from albert_tf.training.run_state import TrainingState, hold_state
from albert_tf_lite.errors import AlbertError

# Entries of the history of a training whose length is in minutes.
INTERVALS = 20
# The share of the minutes in which a training trains.
TRAINING_SHARE = 0.95
TIMED_CALLS = 3


class MakeBatches(Protocol):
    """The batches of a training by its number of steps and its learning rates."""

    def __call__(
        self, *, steps: int, schedule: WarmupLinearDecay | None
    ) -> StackedBatches: ...


@dataclasses.dataclass(frozen=True)
class Watch:
    """Observers of a training.

    Args:
        callbacks: list of `keras.callbacks.Callback`.
        verbose: 0 for silence, 1 for a progress bar, 2 for a line per epoch.
        progress: optional function, called during the training with the numbers of
            completed steps and of all steps.
    """

    callbacks: Iterable[keras.callbacks.Callback] = ()
    verbose: int | str = 1
    progress: Callable[[int, int], Any] | None = None


def train(
    model: StepModel,
    optimizer: keras.optimizers.Optimizer,
    make_batches: MakeBatches,
    run: Run,
    output: str | os.PathLike,
    identity: dict[str, Any],
    watch: Watch,
    dev: StackedBatches | None = None,
) -> dict[str, Any]:
    """Train a model, or resume the training whose state is in `output`.

    Args:
        model: a `StepModel`, which is compiled here.
        optimizer: that of the network.
        make_batches: see `MakeBatches`.
        run: a `Run`.
        output: string, the directory.
        identity: dict, what a resumed run must have beside the settings.
        watch: a `Watch`.
        dev: optional batches to evaluate on.

    Returns:
        As `pretrain`.
    """
    backup = pathlib.Path(output) / BACKUP
    optimizer = _with_settable_rate(optimizer, run.learning_rate)
    model.compile(optimizer)
    optimizer.build(model.trainable_variables)

    def batches_of(steps: int) -> StackedBatches:
        return make_batches(steps=steps, schedule=run.schedule(steps))

    writes = run.host == 0
    full_identity = without_names({**identity, **run.identity()})
    with hold_state(backup, full_identity, writes):
        steps, interval = _length(run, model, batches_of, backup)
        interval = interval_of(steps, interval, run.steps_per_call)
        state = TrainingState(
            backup,
            interval=interval // run.steps_per_call,
            scale=run.steps_per_call,
            progress=watch.progress,
            writes=writes,
        )
        dev_data = None
        if dev is not None:
            dev_data = evaluation_data(dev)
            state.set_start(functools.partial(_scores, model, dev_data, watch))
        calls = steps // run.steps_per_call
        if state.steps == calls:
            _restore(state, model)
        else:
            _fit(model, state, batches_of(steps), calls, watch, dev_data)
    return {
        "history": state.history,
        "start": state.start,
        "steps": steps,
        "interval": interval,
        "seconds": state.seconds,
    }


def _with_settable_rate(
    optimizer: keras.optimizers.Optimizer, learning_rate: float | None
) -> keras.optimizers.Optimizer:
    """Return an optimizer whose learning rate is a variable, which each step sets."""
    if learning_rate is None:
        return optimizer
    config = {**optimizer.get_config(), "learning_rate": learning_rate}
    return type(optimizer).from_config(config)


def _scores(model: StepModel, data: Any, watch: Watch) -> dict[str, float]:
    """Score a model before its first step, and print the scores."""
    scores = model.evaluate(data, return_dict=True, verbose=0)
    if watch.verbose:
        shown = " - ".join(f"val_{name}: {x:.4f}" for name, x in scores.items())
        print(f"Step 0, before training - {shown}")
    return scores


def _restore(state: TrainingState, model: StepModel) -> None:
    """Load the weights of a finished training."""
    state.load(model)
    # With `use_ema` the averages become the weights, as at the end of `fit`.
    model.optimizer.finalize_variable_values(model.trainable_variables)


def _fit(
    model: StepModel,
    state: TrainingState,
    batches: StackedBatches,
    calls: int,
    watch: Watch,
    dev: Any,
) -> None:
    """Train the remaining of a number of calls."""
    callbacks = [state, *watch.callbacks]
    if model.optimizer.use_ema:
        # Evaluates with the averages.
        callbacks = [keras.callbacks.SwapEMAWeights(), *callbacks]

    def remaining() -> dict[str, Any]:
        return {
            "x": training_data(batches, state.steps, calls - state.steps),
            "steps_per_epoch": state.interval - state.step,
        }

    state.fit(
        model,
        calls // state.interval,
        remaining,
        # The batches are shuffled.
        shuffle=False,
        callbacks=callbacks,
        validation_data=dev,
        verbose=watch.verbose,
    )


# === The number of steps ===


def _length(
    run: Run,
    model: StepModel,
    batches_of: Callable[[int], StackedBatches],
    backup: pathlib.Path,
) -> tuple[int, int | None]:
    """Return the steps and the interval of a run; those of `minutes` are stored once.

    The first of several hosts decides: clocks differ, and hosts with different numbers
    of steps would wait for each other for ever.
    """
    if run.steps is not None:
        return run.steps, run.interval
    file = backup / "steps.json"
    stored = read_json(file, list) if file.exists() else [0, 0]
    if len(stored) != 2 or not all(type(x) is int and x >= 0 for x in stored):
        raise AlbertError(
            f"{file} is damaged: it must hold two numbers of steps. Remove {backup} to "
            "start over."
        )
    # Also whether there is a trial, in which all hosts take part.
    steps, interval = _of_first_host(stored)
    if steps:
        return steps, interval
    assert run.minutes is not None  # `Run` has checked it.
    seconds = seconds_per_call(model, batches_of(10**9))
    calls = 60 * TRAINING_SHARE * run.minutes / seconds
    interval = max(int(calls / INTERVALS), 1) * run.steps_per_call
    steps, interval = _of_first_host([interval * INTERVALS, interval])
    if run.host == 0:
        write_json(file, [steps, interval])
    return steps, interval


def _of_first_host(numbers: list[int]) -> list[int]:
    """Return the numbers of the first of the hosts that train together."""
    if keras.backend.backend() != "jax":
        return numbers
    from jax.experimental import multihost_utils

    array = np.array(numbers, "int32")
    return multihost_utils.broadcast_one_to_all(array).tolist()


def seconds_per_call(model: StepModel, batches: StackedBatches) -> float:
    """Return the mean duration of a call of an epoch, and keep the model as it was."""
    variables = [*model.variables, *model.optimizer.variables]
    before = [keras.ops.convert_to_numpy(variable) for variable in variables]
    widths = [call.width for call in batches.plan.epoch(0)]
    seconds = 0.0
    for width in dict.fromkeys(widths):
        item = batches[widths.index(width)]
        # The first call compiles.
        for count in (1, TIMED_CALLS):
            data = training_data([item] * count, 0, count)
            start = time.monotonic()
            model.fit(data, steps_per_epoch=count, shuffle=False, verbose=0)
            duration = (time.monotonic() - start) / count
            # Also because on JAX, averaged weights would share memory with averages.
            for variable, value in zip(variables, before, strict=True):
                variable.assign(value)
        seconds += duration * widths.count(width)
    return seconds / len(widths)
