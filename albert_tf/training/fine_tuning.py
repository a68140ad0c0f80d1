"""Fine-tune a task, keep its best epoch, and resume after an interruption."""

import contextlib
import operator
import os
import pathlib
from collections.abc import Callable, Iterable
from typing import Any

import keras

from albert_tf.files import BACKUP, complete_directory
from albert_tf.layers.private_keras import freeze as freeze_layer
from albert_tf.layers.private_keras import inner_layers, set_swapped
from albert_tf.training.batch_order import BatchOrder
from albert_tf.training.optimizers import unscaled_optimizer
from albert_tf.training.run_state import TrainingState, data_digest, hold_state
from albert_tf_lite.errors import AlbertError

# The parts of a model that can be frozen, by name.
FREEZABLE = {"embeddings": "backbone.embedding", "encoder": "backbone"}
# The attributes that `tune` may set, of multi-label models and of readers.
_THRESHOLDS = ("thresholds", "null_threshold")


def fine_tune(
    model: Any,
    train: tuple,
    dev: tuple,
    output: str | os.PathLike,
    epochs: int = 3,
    batch_size: int = 32,
    settings: dict[str, Any] | None = None,
    callbacks: Iterable[keras.callbacks.Callback] = (),
    maximise: str = "accuracy",
    tune: Callable[[Any], None] | None = None,
    scores: Callable[[Any], dict[str, float]] | None = None,
    freeze: str | None = None,
    patience: int | None = None,
    seed: int = 0,
    verbose: int | str = 0,
    progress: Callable[[int, int], Any] | None = None,
    class_weight: dict[int, float] | None = None,
) -> dict[str, Any]:
    """Fine-tune a compiled task and write its best epoch as a preset.

    To resume an interrupted run, start it again with the same data and `settings`. It
    ends with the weights of an uninterrupted run. Ctrl-C and SIGTERM save the state
    first; a killed run loses at most three minutes. The state stays in `output` until
    the caller removes it. `seed` determines the order of the batches. If the optimizer
    averages the weights (`use_ema`), the averages are scored and kept. `progress` is
    called after each step with the numbers of completed steps and of all steps.
    `class_weight` is as for `fit`; `settings` must identify it.

    The best epoch, counted from 1, has the largest `maximise`, a metric of the model or
    one of the `scores` that a function computes on `dev`. If the head of the model is
    trained already, its state before training competes as epoch 0, with scores in
    `start` of the result. `tune` sets attributes chosen on `dev`, such as thresholds,
    before `scores` and before the model is written.
    """
    output = pathlib.Path(output)
    backup = output / BACKUP
    identity = {
        **(settings or {}),
        "data": data_digest((train, dev)),
        "epochs": epochs,
        "batch_size": batch_size,
        "freeze": freeze,
        "patience": patience,
        "seed": seed,
    }

    def add_scores(epoch: int, logs: Any) -> None:
        if tune:
            tune(model)
        if scores:
            logs.update({f"val_{name}": x for name, x in scores(model).items()})

    def score_start() -> dict[str, float]:
        logs = _evaluate(model, dev, batch_size)
        add_scores(0, logs)
        if verbose:
            shown = " - ".join(f"{name}: {x:.4f}" for name, x in logs.items())
            print(f"Epoch 0, before training - {shown}")
        return logs

    with hold_state(backup, identity):
        state = TrainingState(
            backup,
            monitor=f"val_{maximise}",
            patience=patience,
            progress=progress,
            start=score_start if model.is_trained_for(*train) else None,
        )
        evaluation = keras.callbacks.LambdaCallback(on_epoch_end=add_scores)
        callbacks = _with_averages(model, state, [evaluation, state, *callbacks])

        def ordered() -> dict[str, Any]:
            order = BatchOrder(seed, skip=state.step)
            return {"shuffle": order, "callbacks": [order, *callbacks]}

        with _thresholds_kept(model):
            with _frozen(model, freeze):
                state.fit(
                    model,
                    epochs,
                    ordered,
                    x=train[0],
                    y=train[1],
                    validation_data=dev,
                    batch_size=batch_size,
                    verbose=verbose,
                    class_weight=class_weight,
                )
                model.load_weights(state.weights(state.best_epoch))
            if tune:
                tune(model)
        metrics = _metrics(state)
        with complete_directory(output) as directory:
            model.save_to_preset(str(directory))
    return metrics


def _evaluate(model, dev, batch_size):
    """Return the metrics on dev with the names that `fit` gives them."""
    data = dict(zip(("x", "y", "sample_weight"), dev, strict=False))
    found = model.evaluate(**data, batch_size=batch_size, verbose=0, return_dict=True)
    return {f"val_{name}": value for name, value in found.items()}


def _with_averages(model, state, callbacks):
    """Return callbacks that score and save the averages of the weights, if any."""
    if not unscaled_optimizer(model.optimizer).use_ema:
        return callbacks
    # Puts the averages into the model while it is scored and saved.
    averages = keras.callbacks.SwapEMAWeights(swap_on_epoch=True)
    # A resumed training begins with the saved averages in the model.
    set_swapped(averages, state.epochs > 0 and state.step == 0)
    return [averages, *callbacks]


@contextlib.contextmanager
def _thresholds_kept(model):
    """Restore the thresholds of a model after an interrupted training."""
    names = [name for name in _THRESHOLDS if hasattr(model, name)]
    before = {name: getattr(model, name) for name in names}
    try:
        yield
    except BaseException:
        for name, value in before.items():
            setattr(model, name, value)
        raise


@contextlib.contextmanager
def _frozen(model, freeze):
    """Freeze a part of a model, and restore what was frozen before it is written."""
    if not freeze:
        yield
        return
    part = operator.attrgetter(FREEZABLE[freeze])(model)
    layers = [(layer, layer.trainable) for layer in (part, *inner_layers(part))]
    # LoRA freezes single weights of a layer.
    weights = [(weight, weight.trainable) for weight in part.weights]
    try:
        freeze_layer(part)
        if not model.trainable_variables:
            raise AlbertError(
                f"With freeze={freeze!r} {type(model).__name__} has nothing to train, "
                "because it has no head. Choose another part or none."
            )
        yield
    finally:
        # The outer layers first, whose setter changes the inner ones, and weights last.
        for item, is_trainable in (*layers, *weights):
            item.trainable = is_trainable


def _on_dev(scores):
    """Return the scores on dev by their names without the prefix of Keras."""
    return {
        name.removeprefix("val_"): value
        for name, value in scores.items()
        if name.startswith("val_")
    }


def _metrics(state):
    """Return the best epoch, its scores on dev, the seconds and the history."""
    best = state.best_epoch
    scores = {name: values[best - 1] for name, values in state.history.items()}
    start = _on_dev(state.start)
    return {
        "best_epoch": best,
        "dev": _on_dev(scores) if best else start,
        **({"start": start} if start else {}),
        "seconds": state.seconds,
        "history": state.history,
    }
