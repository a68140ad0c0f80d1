"""Fine-tune a task, keep its best epoch, and resume after an interruption."""

import contextlib
import dataclasses
import operator
import os
import pathlib
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import keras

from albert_tf.files import BACKUP, complete_directory
from albert_tf.layers.private_keras import freeze as freeze_layer
from albert_tf.layers.private_keras import inner_layers, set_swapped
from albert_tf.training.batch_order import remaining_batches
from albert_tf.training.digests import data_digest
from albert_tf.training.optimizers import unscaled_optimizer
from albert_tf.training.run_state import BestEpochState, hold_state
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.network_files import NETWORK, int8_file

# A task of `albert_tf.models`, which stands above this room.
Task: TypeAlias = Any
# The parts of a model that can be frozen, by name.
FREEZABLE = {"embeddings": "backbone.embedding", "encoder": "backbone"}
# Files of the command line that would be wrong beside another model.
_OF_EARLIER_MODEL = (NETWORK, str(int8_file(NETWORK)), "metrics.json", "history.png")
# The attributes that `tune` and `calibrate` may set.
_TUNED = ("thresholds", "null_threshold", "temperature")


@dataclasses.dataclass(frozen=True)
class FineTuning:
    """Options of `fine_tune`.

    The best epoch, counted from 1, has the largest `maximise`. If the head of the model
    is trained already, its state before training competes as epoch 0.

    Attributes:
        epochs: int.
        batch_size: int.
        maximise: string, a metric of the model or one of `scores`.
        tune: optional function of the model that sets attributes chosen on dev, such as
            thresholds, before `scores` and before the model is written.
        calibrate: optional function of the model that sets its temperature on dev. It
            is called once, for the best epoch, whose training loss is its second
            argument, `None` for epoch 0.
        scores: optional function of the model that returns its scores on dev by name.
        freeze: optional string, a part of `FREEZABLE` that is not trained.
        patience: optional int. Number of epochs without improvement, after which
            the training stops.
        seed: int. It determines the order of the batches.
        class_weight: optional dict of weights by class, for classifiers.
        settings: dict of what else identifies the training, such as the model.
    """

    epochs: int = 3
    batch_size: int = 32
    maximise: str = "accuracy"
    tune: Callable[[Any], None] | None = None
    calibrate: Callable[[Any, float | None], None] | None = None
    scores: Callable[[Any], dict[str, float]] | None = None
    freeze: str | None = None
    patience: int | None = None
    seed: int = 0
    class_weight: dict[int, float] | None = None
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)

    def identity(self, train: tuple, dev: tuple) -> dict[str, Any]:
        """Return what a resumed training must have in common with the first."""
        return {
            **self.settings,
            "data": data_digest((train, dev)),
            "epochs": self.epochs,
            "batch_size": self.batch_size,
            "freeze": self.freeze,
            "patience": self.patience,
            "seed": self.seed,
        }


def fine_tune(
    model: Task,
    train: tuple,
    dev: tuple,
    output: str | os.PathLike,
    options: FineTuning | None = None,
    callbacks: Iterable[keras.callbacks.Callback] = (),
    verbose: int | str = 0,
    progress: Callable[[int, int], Any] | None = None,
) -> dict[str, Any]:
    """Fine-tune a compiled task and write its best epoch as a preset.

    To resume an interrupted run, start it again with the same data and options. It ends
    with the weights of an uninterrupted run. Ctrl-C and SIGTERM save the state first; a
    killed run loses at most three minutes. The state stays in `output` until the caller
    removes it. If the optimizer averages the weights (`use_ema`), the averages are
    scored and kept.

    Args:
        model: a compiled task.
        train: tuple `(x, y)`.
        dev: tuple `(x, y)`, to score each epoch.
        output: path of the directory to write.
        options: optional `FineTuning`.
        callbacks: optional callbacks of Keras.
        verbose: 0 for silence, 1 for a progress bar, 2 for a line per epoch.
        progress: optional function that is called after each step with the numbers of
            completed steps and of all steps.

    Returns:
        A dict of `best_epoch`, its scores `dev`, `seconds` and `history`, and `start`,
        the scores before training if these competed.
    """
    options = options or FineTuning()
    output = pathlib.Path(output)
    backup = output / BACKUP
    scoring = _Scoring(model, dev, options, verbose)
    with hold_state(backup, options.identity(train, dev)):
        state = BestEpochState(
            backup,
            monitor=f"val_{options.maximise}",
            patience=options.patience,
            progress=progress,
            start=scoring.score_start if model.is_trained_for(*train) else None,
        )
        evaluation = keras.callbacks.LambdaCallback(on_epoch_end=scoring.add_scores)
        callbacks = _with_averages(model, state, [evaluation, state, *callbacks])
        with _tuned_kept(model):
            with _frozen(model, options.freeze):
                state.fit(
                    model,
                    options.epochs,
                    remaining_batches(state, options.seed, callbacks),
                    x=train[0],
                    y=train[1],
                    validation_data=dev,
                    batch_size=options.batch_size,
                    verbose=verbose,
                    class_weight=options.class_weight,
                )
                state.load_weights(model, state.best_epoch)
            if options.calibrate:
                best = state.best_epoch
                loss = state.history["loss"][best - 1] if best else None
                options.calibrate(model, loss)
            # Thresholds are those of the probabilities at this temperature.
            scoring.tune()
        metrics = _metrics(state)
        with complete_directory(output, replaced=_OF_EARLIER_MODEL) as directory:
            model.save_to_preset(str(directory))
    return metrics


@dataclasses.dataclass(frozen=True)
class _Scoring:
    """The scores of a model on dev, with the names that `fit` gives to metrics."""

    model: Task
    dev: tuple
    options: FineTuning
    verbose: int | str

    def tune(self) -> None:
        if self.options.tune:
            self.options.tune(self.model)

    def add_scores(self, epoch: int, logs: dict[str, float]) -> None:
        """Tune the model, and add its scores to the logs of an epoch."""
        self.tune()
        if self.options.scores:
            for name, score in self.options.scores(self.model).items():
                logs[f"val_{name}"] = score

    def score_start(self) -> dict[str, float]:
        """Return the metrics and scores before training."""
        data = dict(zip(("x", "y", "sample_weight"), self.dev, strict=False))
        size = self.options.batch_size
        metrics = self.model.evaluate(
            **data, batch_size=size, verbose=0, return_dict=True
        )
        logs = {f"val_{name}": value for name, value in metrics.items()}
        self.add_scores(0, logs)
        if self.verbose:
            shown = " - ".join(f"{name}: {value:.4f}" for name, value in logs.items())
            print(f"Epoch 0, before training - {shown}")
        return logs


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
def _tuned_kept(model):
    """Restore thresholds and temperature of a model after an interrupted training."""
    names = [name for name in _TUNED if hasattr(model, name)]
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
