"""Random Keras scripts train like the plain script, or are refused with an error.

ALBERT_TF_RANDOM_SCRIPTS sets how many; `--hypothesis-seed` repeats a run.
"""

import contextlib
import dataclasses
import functools
import itertools
import os
import tempfile
from typing import Any

import hypothesis
import keras
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from hypothesis import strategies
from memory import release_models
from task_cases import CASES, tensor

from albert_tf import AlbertError
from albert_tf.trainers.prediction import split_ragged

pytestmark = [
    pytest.mark.filterwarnings("ignore:Gradients do not exist for variables"),
    pytest.mark.filterwarnings("ignore:Skipping variable loading for optimizer"),
]
numbers = itertools.count(1)
COUNT = int(os.environ.get("ALBERT_TF_RANDOM_SCRIPTS", "25"))
EPOCHS, BATCH_SIZE = 2, 4
RATE, MOMENTUM = 1e-3, 0.5
RATES = [0.02, 0.01]
REFUSALS = (AlbertError, ValueError, TypeError)
METRICS = keras.metrics
MASKED_LM = "masked language model"
# Settings of its preprocessor that leave nothing to chance.
ALL_MASKED = {"mask_selection_rate": 1.0, "mask_selection_length": 29}
ALL_MASKED |= {"mask_token_rate": 1.0, "random_token_rate": 0.0}
# Scripts between two collections of their models.
SCRIPTS_IN_MEMORY = 10


@dataclasses.dataclass(frozen=True)
class Script:
    """The options of a script, each by its name.

    Attributes:
        saving: the form in which the trained model is saved and loaded, or `""`.
        is_resumed: bool. The training is interrupted after its first epoch, and goes
            on with the `.keras` file of that epoch.
        is_traced: bool. Keras traces its steps; the plain script always runs eagerly.
    """

    task: str
    container: str = "list"
    callback: str = ""
    metrics: str = "auto"
    precision: str = "float32"
    saving: str = ""
    is_resumed: bool = False
    is_traced: bool = False

    @property
    def case(self):
        return CASES[self.task]

    @property
    def has_own_optimizer(self):
        return self.callback == "LearningRateScheduler"

    @property
    def masks_all(self):
        """All tokens are masked, where masks would be drawn in another order."""
        has_other_order = self.first_epoch > 0 or self.container == "dataset"
        return self.task == MASKED_LM and has_other_order

    @property
    def rounds_otherwise(self):
        """Its operations are others than those of the plain script, in 16 bits."""
        has_other_operations = self.is_traced or self.container == "dataset"
        return has_other_operations and self.precision != "float32"

    @property
    def tolerance(self):
        """The largest difference from weights and losses of the plain script."""
        return 0.03 if self.rounds_otherwise else 1e-5

    @property
    def first_epoch(self):
        """The epoch from which the callbacks of the finished training count."""
        return 1 if self.is_resumed or self.callback == "BackupAndRestore" else 0


# === The data in containers ===


def rows(values):
    """Return a column of values, each a Python object."""
    return values.tolist() if isinstance(values, np.ndarray) else list(values)


def is_table(values):
    """Return whether the values are numbers or strings, or an array of them."""
    return isinstance(values, np.ndarray) or isinstance(values[0], (str, int, float))


def array(values):
    if is_table(values):
        return np.array(values)
    column = np.empty(len(values), object)
    column[:] = values
    return column


def series(values):
    return pd.Series(rows(values), index=range(len(values))[::-1])


def as_tensor(values):
    """Return a tensor, or the list where the values are of no type of TensorFlow."""
    if is_table(values):
        return tf.constant(values)
    first_row = next(filter(None, values))
    if isinstance(first_row, list) and isinstance(first_row[0], str):
        return tensor(values)
    return values


CONTAINERS = {
    "list": rows,
    "tuple": lambda x: tuple(rows(x)),
    "array": array,
    "Series": series,
    "tensor": as_tensor,
    # Its columns.
    "dataset": as_tensor,
}


def contained(values, container):
    """Return the columns of an example, each in a container."""
    if values is None:
        return None
    if isinstance(values, dict):
        return {name: contained(part, container) for name, part in values.items()}
    if isinstance(values, tuple):
        return tuple(contained(part, container) for part in values)
    return container(values)


def reordered(values, order):
    return contained(
        values,
        lambda x: x[order] if isinstance(x, np.ndarray) else [x[i] for i in order],
    )


@functools.cache
def sorted_data(name):
    """Return the data of a task from short to long, as `fit` reads lists.

    So a dataset has the same batches.
    """
    case = CASES[name]
    x = {"x": case.train_x, "y": case.y, "new": case.x}
    if not case.takes_texts or case.cls.reads_windows:
        return x
    lengths = build(Script(name)).preprocessor.pack_texts(case.train_x).lengths
    order = np.argsort(np.array(lengths), kind="stable")
    return {part: reordered(values, order) for part, values in x.items()}


def data_of(script):
    """Return `x` and `y` of a script."""
    data = sorted_data(script.task)
    container = CONTAINERS[script.container]
    x, y = contained(data["x"], container), contained(data["y"], container)
    if script.container != "dataset" or isinstance(y, list):
        return x, y
    columns = (x,) if y is None else (x, y)
    return tf.data.Dataset.from_tensor_slices(columns).batch(BATCH_SIZE), None


# === One script ===


def build(script, masks_all=False):
    """Return a model, always with the same weights."""
    keras.utils.set_random_seed(4)
    case = script.case.without_dropout()
    settings = ALL_MASKED if masks_all else {}
    case = dataclasses.replace(case, init_kwargs={**case.init_kwargs, **settings})
    return case.build(num_layers=1, dtype=script.precision)


def compiled(script, masks_all=False):
    task = build(script, masks_all)
    metrics = "auto"
    if script.metrics != "auto":
        metrics = METRICS_OF_TASKS.get(script.task, OTHER_METRICS)[script.metrics]()
    if script.has_own_optimizer:
        task.compile(keras.optimizers.SGD(RATES[0], momentum=0.5), metrics=metrics)
        return task
    averages = MOMENTUM if script.callback == "SwapEMAWeights" else None
    task.compile(metrics=metrics, learning_rate=RATE, ema_momentum=averages)
    return task


class InterruptAfterFirstEpoch(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 1:
            raise KeyboardInterrupt


class Scores(keras.callbacks.Callback):
    """Evaluate and predict after each epoch."""

    def __init__(self, script):
        super().__init__()
        self.script = script
        self.losses = []

    def on_epoch_end(self, epoch, logs=None):
        scores = evaluated(self.script, self.model)
        self.losses.append((scores["loss"], logs["val_loss"]))
        self.model.predict(sorted_data(self.script.task)["new"], verbose=0)


def callbacks_of(script, folder):
    kinds = keras.callbacks
    options = {"monitor": "val_loss", "verbose": 0}
    early = {"patience": 0, "restore_best_weights": True, "mode": "max"}
    callbacks = {
        "": lambda: [],
        "EarlyStopping": lambda: [kinds.EarlyStopping(**options, **early)],
        "ModelCheckpoint": lambda: [
            kinds.ModelCheckpoint(f"{folder}/best.keras", save_best_only=True)
        ],
        "scores": lambda: [Scores(script)],
        "LearningRateScheduler": lambda: [
            kinds.LearningRateScheduler(lambda epoch: RATES[epoch])
        ],
        "rate of the default optimizer": lambda: [
            kinds.LearningRateScheduler(lambda epoch: RATES[epoch])
        ],
        "BackupAndRestore": lambda: [kinds.BackupAndRestore(f"{folder}/backup")],
        "SwapEMAWeights": lambda: [kinds.SwapEMAWeights(swap_on_epoch=True)],
    }
    return callbacks[script.callback]()


@dataclasses.dataclass(frozen=True)
class Result:
    """A trained task, as loaded if it was saved, and what its training returned."""

    task: Any
    weights: dict
    history: dict
    callbacks: list
    scores: dict


def run(script, folder):
    """Train, save and load, and evaluate as the script says."""
    x, y = data_of(script)
    validation = x if y is None and script.container == "dataset" else (x, y)
    is_dataset = isinstance(x, tf.data.Dataset)
    options = {"batch_size": None if is_dataset else BATCH_SIZE, "epochs": EPOCHS}
    options |= {"shuffle": False, "verbose": 0, "validation_data": validation}

    def train(task, *others, initial_epoch=0):
        callbacks = [*others, *callbacks_of(script, folder)]
        keras.utils.set_random_seed(5)
        return callbacks, task.fit(
            x, y, callbacks=callbacks, initial_epoch=initial_epoch, **options
        )

    task = compiled(script, script.masks_all)
    initial_epoch = 0
    if script.first_epoch:
        # Before other callbacks that put averages into the model.
        files = keras.callbacks.ModelCheckpoint(f"{folder}/epoch-1.keras")
        with pytest.raises(KeyboardInterrupt):
            train(task, files, InterruptAfterFirstEpoch())
        task = compiled(script, script.masks_all)
        if script.is_resumed:
            task = keras.models.load_model(f"{folder}/epoch-1.keras")
            initial_epoch = 1
    callbacks, history = train(task, initial_epoch=initial_epoch)
    weights = values_of(task)
    task = saved_and_loaded(script, task, folder)
    scores = evaluated(script, task)
    return Result(task, weights, history.history, callbacks, scores)


def evaluated(script, task):
    """Return the scores of a task, in the batches of the plain script."""
    # Keras takes the mean loss of batches, and a batch that of its tokens.
    data = data_of(script)
    size = None if isinstance(data[0], tf.data.Dataset) else BATCH_SIZE
    return task.evaluate(*data, batch_size=size, verbose=0, return_dict=True)


def saved_and_loaded(script, task, folder):
    if not script.saving:
        return task
    path = f"{folder}/model"
    if script.saving == "keras":
        task.save(f"{path}.keras")
        return keras.models.load_model(f"{path}.keras")
    if script.saving == "weights":
        task.save_weights(f"{path}.weights.h5")
        loaded = compiled(script, script.masks_all)
        loaded.load_weights(f"{path}.weights.h5")
        return loaded
    task.save_to_preset(path)
    return type(task).from_preset(path, dtype=script.precision)


def values_of(task):
    """Return the weights as arrays by name."""
    return {weight.path: np.array(weight) for weight in task.weights}


# === What it should do ===


@dataclasses.dataclass(frozen=True)
class Epoch:
    """The state after an epoch: its losses and metrics, and the weights."""

    logs: dict
    weights: dict

    @property
    def val_loss(self):
        return self.logs["val_loss"]


class Recorder(keras.callbacks.Callback):
    """Set the rate by hand, and average the weights by hand."""

    def __init__(self, script):
        super().__init__()
        self.script = script
        self.epochs, self.averaged, self.averages = [], [], None
        self.applied = 0

    def on_epoch_begin(self, epoch, logs=None):
        if self.script.has_own_optimizer:
            self.model.optimizer.learning_rate = RATES[epoch]

    def on_train_batch_end(self, batch, logs=None):
        applied = int(self.model.optimizer.iterations)
        # The loss scale of float16 skips a batch whose gradients are not finite.
        if applied == self.applied:
            return
        self.applied = applied
        weights = [np.array(weight) for weight in self.model.trainable_weights]
        if self.averages is not None:
            pairs = zip(self.averages, weights, strict=True)
            weights = [MOMENTUM * a + (1 - MOMENTUM) * b for a, b in pairs]
        self.averages = weights

    def on_epoch_end(self, epoch, logs=None):
        before = self.model.get_weights()
        self.epochs.append(Epoch(dict(logs), values_of(self.model)))
        for weight, average in zip(
            self.model.trainable_weights, self.averages, strict=True
        ):
            weight.assign(average)
        scores = evaluated(self.script, self.model)
        scores = {f"val_{name}": value for name, value in scores.items()}
        self.averaged.append(Epoch({**logs, **scores}, values_of(self.model)))
        self.model.set_weights(before)


def reference(script):
    """Return the epochs of the plain script, and those with averaged weights."""
    with tracing(False):
        return plain_epochs(
            script.task, script.precision, script.has_own_optimizer, script.masks_all
        )


@functools.cache
def plain_epochs(task, precision, has_own_optimizer, masks_all):
    callback = "LearningRateScheduler" if has_own_optimizer else ""
    script = Script(task, callback=callback, precision=precision)
    model = compiled(script, masks_all)
    data = data_of(script)
    recorder = Recorder(script)
    keras.utils.set_random_seed(5)
    model.fit(
        *data,
        batch_size=BATCH_SIZE,
        epochs=EPOCHS,
        shuffle=False,
        verbose=0,
        validation_data=data,
        callbacks=[recorder],
    )
    return recorder.epochs, recorder.averaged


# Tasks whose datasets of texts train, because a text has one label that is a number.
FROM_DATASETS = {
    "text classifier",
    "pair classifier",
    "multi-label classifier",
    "early-exit classifier",
    "regressor",
    "pretrainer",
    "masked language model",
    "sentence order",
    "text embedder",
}


def is_accepted(script):
    """Return whether the script must run; others may be refused."""
    if script.callback == "rate of the default optimizer":
        return False
    if script.metrics != "auto" and script.task not in METRICS_OF_TASKS:
        return False
    if script.container == "tuple":
        # A tuple of texts is one example with a part per text.
        return script.case.takes_texts and isinstance(script.case.train_x, tuple)
    if script.container == "dataset":
        return script.task in FROM_DATASETS
    if script.container == "Series":
        # A column of ids is not an array of them.
        return script.case.takes_texts
    return script.container != "tensor" or script.task in FROM_DATASETS


def check(script, result):
    """Compare a result with the plain script."""
    plain, averaged = reference(script)
    epochs = averaged if script.callback == "SwapEMAWeights" else plain
    counted = epochs[script.first_epoch :]
    final = counted[-1]
    if script.callback == "EarlyStopping":
        final = max(counted, key=lambda epoch: epoch.val_loss)
    near = {"abs": script.tolerance, "rel": script.tolerance}
    check_history(script, result.history, counted, near)
    assert result.scores["loss"] == pytest.approx(final.val_loss, **near)
    assert_close(script, result.weights, final.weights)
    for callback in result.callbacks:
        if isinstance(callback, Scores):
            for given, expected in callback.losses:
                assert given == pytest.approx(expected, **near)
        if isinstance(callback, keras.callbacks.ModelCheckpoint):
            best = min(counted, key=lambda epoch: epoch.val_loss)
            loaded = keras.models.load_model(callback.filepath)
            assert_close(script, values_of(loaded), best.weights)
    if script.saving:
        assert_close(script, values_of(result.task), final.weights)
    check_metrics(script, result, final)
    check_validation(script, result)


def check_history(script, history, epochs, near):
    """Compare what `fit` returned with the epochs of the plain script."""
    names = set(history) - {"learning_rate"}
    if script.metrics == "auto":
        assert names == epochs[0].logs.keys()
    for name in sorted(names):
        is_loss = name in ("loss", "val_loss")
        if script.metrics != "auto" and not is_loss:
            continue
        # A prediction near a threshold may be on its other side after other rounding.
        if script.rounds_otherwise and not is_loss:
            continue
        # In graphs, Keras takes the mean of an output's loss over the batches.
        if script.is_traced and name.endswith("_logits_loss"):
            continue
        expected = [epoch.logs[name] for epoch in epochs]
        assert history[name] == pytest.approx(expected, **near), name
    assert all(np.all(np.isfinite(values)) for values in history.values())


def check_validation(script, result):
    """Compare the scores of the last epoch with those of the model afterwards."""
    if script.callback == "EarlyStopping":
        return
    for name, value in result.scores.items():
        # A preset has the default metrics.
        if values := result.history.get(f"val_{name}"):
            assert value == pytest.approx(values[-1], abs=1e-5), name


def assert_close(script, given, expected):
    for (name, value), other in zip(given.items(), expected.values(), strict=True):
        # Rounding errors alone move the others.
        if not name.endswith(script.case.unmoved):
            np.testing.assert_allclose(
                value, other, atol=script.tolerance, err_msg=name
            )


# === Metrics ===


def check_metrics(script, result, final):
    """Compare the metrics with values by hand from the outputs, also of 16 bits."""
    names = {name for name in result.scores if not name.endswith("loss")}
    if script.metrics != "auto" and script.saving != "preset":
        assert names
    by_hand = METRICS_BY_HAND.get(script.task)
    if script.task == MASKED_LM and script.rounds_otherwise:
        return
    if script.task == MASKED_LM:
        # Only the plain script draws the same masks.
        expected = {"accuracy": final.logs["val_accuracy"]}
    elif by_hand is None:
        expected = {}
    else:
        expected = by_hand(outputs_of(script, result.task), targets_of(script))
    assert names <= expected.keys()
    for name in names:
        assert result.scores[name] == pytest.approx(expected[name], abs=1e-5), name


def outputs_of(script, task):
    """Return the outputs of the rows, in the batches in which they are evaluated."""
    # Also for a dataset, which `predict` would trace for the length of its first batch.
    x = sorted_data(script.task)["new"]
    return task.predict_rows(x, batch_size=BATCH_SIZE, verbose=0)[2]


def targets_of(script):
    """Return the targets of the rows as arrays."""
    y = sorted_data(script.task)["y"]
    if script.task in TARGETS_OF_TOKENS:
        x = sorted_data(script.task)["new"]
        return split_ragged(build(Script(script.task)).targets(x, y))
    return y if isinstance(y, dict) else np.array(y)


def class_metrics(shares, hits):
    """Return the metrics of one class per example, by its probability."""
    # As Keras, which keeps the logarithm finite.
    entropy = -np.log(np.clip(shares, 1e-7, 1)).mean()
    return {"accuracy": np.mean(hits), "top": np.mean(hits), "entropy": entropy}


def of_logits(outputs, y):
    logits = outputs.astype("float64")
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    return of_probabilities(shares, y)


def of_probabilities(outputs, y):
    shares = outputs.astype("float64")
    shares = shares / shares.sum(axis=1, keepdims=True)
    hits = outputs.argmax(axis=1) == y
    return class_metrics(shares[np.arange(len(y)), y], hits)


def of_choices(outputs, y):
    hits = [np.argmax(x) == chosen for x, chosen in zip(outputs, y, strict=True)]
    return {"accuracy": np.mean(hits), "sparse_categorical_accuracy": np.mean(hits)}


def of_labels(outputs, y):
    chosen = outputs >= 0
    hits = np.sum(chosen & (y == 1))
    area = METRICS.AUC(curve="PR", from_logits=True)
    return {
        "pr_auc": float(area(y, outputs.astype("float32"))),
        "binary_accuracy": np.mean(chosen == y),
        "precision": hits / max(np.sum(chosen), 1),
        "hits": hits / np.sum(y),
    }


def of_numbers(outputs, y):
    errors = np.ravel(outputs).astype("float64") - y
    return {"mae": np.abs(errors).mean(), "mse": np.square(errors).mean()}


def of_tokens(outputs, targets):
    tags = np.concatenate([row.argmax(axis=1) for row in outputs])
    targets = np.concatenate(targets)
    accuracy = np.mean(tags[targets != -1] == targets[targets != -1])
    return {"accuracy": accuracy}


def of_heads(outputs, targets):
    accuracies = {}
    for name, logits in outputs.items():
        hits = [
            x.argmax(axis=-1) == y for x, y in zip(logits, targets[name], strict=True)
        ]
        accuracies[f"{name}_accuracy"] = np.mean(hits)
    return accuracies


TARGETS_OF_TOKENS = {"token classifier", "question answering", "spelling corrector"}
METRICS_BY_HAND = {
    "text classifier": of_logits,
    "pair classifier": of_probabilities,
    "early-exit classifier": of_logits,
    "sentence order": of_logits,
    "multi-label classifier": of_labels,
    "regressor": of_numbers,
    "pretrainer": of_heads,
    "token classifier": of_tokens,
    "spelling corrector": of_tokens,
    "question answering": of_heads,
    "multiple choice": of_choices,
}


def metrics_of_classes(from_logits=True):
    return {
        "names": lambda: ["accuracy"],
        "objects": lambda: [
            METRICS.SparseCategoricalAccuracy(name="top"),
            METRICS.SparseCategoricalCrossentropy(
                from_logits=from_logits, name="entropy"
            ),
        ],
    }


METRICS_OF_TASKS = {
    "text classifier": metrics_of_classes(),
    "pair classifier": metrics_of_classes(from_logits=False),
    "early-exit classifier": metrics_of_classes(),
    "sentence order": metrics_of_classes(),
    "multi-label classifier": {
        "names": lambda: ["binary_accuracy", "precision"],
        "objects": lambda: [METRICS.Recall(thresholds=0, name="hits")],
    },
    "regressor": {
        "names": lambda: ["mae"],
        "objects": lambda: [METRICS.MeanSquaredError(name="mse")],
    },
}
OTHER_METRICS = {
    "names": lambda: ["accuracy"],
    "objects": lambda: [METRICS.SparseCategoricalAccuracy()],
}

# === The test ===

CALLBACKS = ["", "EarlyStopping", "ModelCheckpoint", "scores", "LearningRateScheduler"]
CALLBACKS += ["BackupAndRestore", "SwapEMAWeights", "rate of the default optimizer"]
SCRIPTS = strategies.builds(
    Script,
    task=strategies.sampled_from(list(CASES)),
    container=strategies.sampled_from(list(CONTAINERS)),
    callback=strategies.sampled_from(CALLBACKS),
    metrics=strategies.sampled_from(["auto", "names", "objects"]),
    precision=strategies.sampled_from(["float32", "mixed_bfloat16", "mixed_float16"]),
    saving=strategies.sampled_from(["", "keras", "weights", "preset"]),
    is_resumed=strategies.booleans(),
    # Tracing takes most of the time of a script.
    is_traced=strategies.integers(0, 7).map(lambda number: number == 7),
)


def check_script(script):
    """Run a script and compare it, or return the error that refused it."""
    with tempfile.TemporaryDirectory() as folder, tracing(script.is_traced):
        try:
            result = run(script, folder)
        except REFUSALS as error:
            if is_accepted(script):
                raise
            return error
        assert script.callback != "rate of the default optimizer"
        # It predicts, too, which rounds like `evaluate` only if both are traced.
        check(script, result)
    return None


@contextlib.contextmanager
def tracing(is_traced):
    """Trace functions, or run them eagerly."""
    were_eager = tf.config.functions_run_eagerly()
    tf.config.run_functions_eagerly(not is_traced)
    try:
        yield
    finally:
        tf.config.run_functions_eagerly(were_eager)


# What random scripts found.
FOUND = [
    Script("token classifier", callback="LearningRateScheduler"),
    Script("spelling corrector", callback="LearningRateScheduler", metrics="names"),
    Script("regressor", precision="mixed_float16", is_resumed=True),
    Script("regressor", callback="SwapEMAWeights", precision="mixed_float16"),
]


@pytest.mark.slow
@pytest.mark.parametrize("script", FOUND, ids=lambda script: script.task)
def test_a_script_that_differed_trains_like_the_plain_one(script):
    assert check_script(script) is None


@pytest.mark.nightly
@hypothesis.settings(max_examples=COUNT)
@hypothesis.given(SCRIPTS)
def test_a_random_script_trains_like_the_plain_one_or_is_refused(script):
    refused = check_script(script)
    hypothesis.event(f"refused: {type(refused).__name__}" if refused else "trained")
    if next(numbers) % SCRIPTS_IN_MEMORY == 0:
        release_models()
