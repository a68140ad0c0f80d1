"""Compile a task with defaults that train. These are methods of `AlbertTask`."""

import contextlib
import functools
import numbers
from collections.abc import Iterator, Mapping
from typing import Any

import keras

from albert_tf.models.keras_metrics import (
    check_weighted,
    fitting_losses,
    fitting_metrics,
    kind_of_targets,
)
from albert_tf.training import fine_tuning_learning_rate, lower_learning_rate
from albert_tf.training.auto_optimizer import AutoOptimizer
from albert_tf_lite.errors import AlbertError

# Heads with a meaning that the names of their labels tell.
_LABELLED = {"classifier", "token_classifier"}


def compile(
    task: Any,
    optimizer: Any = "auto",
    loss: Any = "auto",
    *,
    metrics: Any = "auto",
    learning_rate: float | None = None,
    ema_momentum: float | None = None,
    gradient_accumulation_steps: int | None = None,
    **kwargs: Any,
) -> None:
    """Configure training, as `keras.Model.compile`, with defaults that train.

    Args:
        optimizer: `"auto"`, or anything Keras takes. `"auto"` is AdamW, whose
            rate rises for the first 10% of the steps of each `fit` of texts and
            falls to 0 with the last.
        loss: `"auto"` for the loss of the task.
        metrics: `"auto"` for the metrics of the task.
        learning_rate: optional float, the peak for `optimizer="auto"`. By default
            that of the backbone's `fine_tuning`, else by its width: 1e-4 for tiny
            and small, 3e-5 up to large, 1e-5 above, 5e-4 and 1e-3 below. `fit`
            lowers this default for few examples of labels that the head of the
            checkpoint has, see `albert_tf.training.lower_learning_rate`.
        ema_momentum: optional float below 1, for `optimizer="auto"`. Keep the
            moving average of the weights, which `fit` ends with, as Keras'
            `use_ema`; 0.99 averages about 100 steps. To score the averages after
            each epoch pass Keras' `SwapEMAWeights` to `fit`.
        gradient_accumulation_steps: optional int of at least 2, for
            `optimizer="auto"`: the number of batches per update.
        **kwargs: passed to `keras.Model.compile`. On TensorFlow `jit_compile` is
            `False` by default, because XLA compiles again for every length.

    Raises:
        AlbertError: if `learning_rate`, `ema_momentum` or
            `gradient_accumulation_steps` is given beside an optimizer.
    """
    settings = {
        "learning_rate": learning_rate,
        "ema_momentum": ema_momentum,
        "gradient_accumulation_steps": gradient_accumulation_steps,
    }
    task._loss_is_default = isinstance(loss, str) and loss == "auto"
    loss = task.default_loss() if task._loss_is_default else fitting_losses(task, loss)
    are_default = isinstance(metrics, str) and metrics == "auto"
    defaults = task.default_metrics() if are_default else {"metrics": metrics}
    kwargs = {"metrics": None, **defaults, **kwargs}
    check_weighted(task, kwargs["metrics"])
    targets = kind_of_targets(task, loss)
    for name in ("metrics", "weighted_metrics"):
        # Given `None` for both, Keras would keep those of the last `compile`.
        kwargs[name] = fitting_metrics(task, kwargs.get(name), targets) or []
    if keras.backend.backend() == "tensorflow":
        kwargs.setdefault("jit_compile", False)
    task._auto_optimizer = None
    if isinstance(optimizer, str) and optimizer == "auto":
        if learning_rate is None:
            settings["learning_rate"] = task.default_learning_rate
        elif not isinstance(learning_rate, numbers.Real) or learning_rate < 0:
            raise AlbertError(
                "`learning_rate` should be a number, the peak of the schedule of "
                f"optimizer='auto'. Received: {learning_rate!r}. Pass a schedule in an "
                "optimizer: optimizer=keras.optimizers.AdamW(schedule)."
            )
        # A partial, because Keras would track the metrics in a dict of ours as
        # further ones.
        recompile = functools.partial(keras.Model.compile, task, loss=loss, **kwargs)
        task._auto_optimizer = AutoOptimizer(
            recompile, has_default_rate=learning_rate is None, **settings
        )
        optimizer = task._auto_optimizer.build()
    elif given := [name for name, value in settings.items() if value is not None]:
        raise AlbertError(
            f"`{given[0]}` goes with optimizer='auto'. Pass it to your own "
            "optimizer instead."
        )
    keras.Model.compile(task, optimizer=optimizer, loss=loss, **kwargs)


def get_compile_config(task: Any) -> dict[str, Any] | None:
    config = keras.Model.get_compile_config(task)
    if config and task._auto_optimizer:
        settings = dict(task._auto_optimizer.settings)
        if task._auto_optimizer.has_default_rate:
            # Each `fit` chooses its rate.
            settings["learning_rate"] = None
        if task._loss_is_default:
            settings["loss"] = "auto"
        if task.starts_trained:
            settings["starts_trained"] = True
        # In the optimizer, so that a plain model, as of `clone_model`, reads it.
        config["optimizer"]["config"]["task_settings"] = settings
    return config


def compile_from_config(task: Any, config: Mapping[str, Any]) -> None:
    optimizer = config["optimizer"]
    is_config = isinstance(optimizer, Mapping)
    settings = dict(is_config and optimizer["config"].get("task_settings") or {})
    if settings:
        task.starts_trained = settings.pop("starts_trained", False)
        config = {**config, "optimizer": "auto", **settings}
    task.compile(**keras.saving.deserialize_keras_object(config))
    if settings:
        task._auto_optimizer.restore(keras.saving.deserialize_keras_object(optimizer))
    build_optimizer(task)


def build_optimizer(task: Any) -> None:
    """Create the variables of the optimizer, which Keras would do in the first step.

    Such a step is traced twice, with a condition for each variable, and TensorFlow
    never frees such graphs.
    """
    if task._auto_optimizer:
        task._auto_optimizer.build_variables(task)
    elif task.optimizer is not None and not task.optimizer.built:
        task.optimizer.build(task.trainable_variables)


def check_weights(task: Any) -> None:
    """Raise if the optimizer cannot train weights of 16 bits."""
    types = {variable.dtype for variable in task.trainable_variables}
    if "float16" in types:
        raise AlbertError(
            "Weights of float16 cannot be trained: in float16 small gradients and "
            "Adam's epsilon of 1e-7 are 0, and the weights would become NaN. Build the "
            'model with dtype="mixed_float16" or "mixed_bfloat16", which keep weights '
            "of 32 bits."
        )
    if "bfloat16" in types and task._auto_optimizer:
        raise AlbertError(
            "Adam cannot train weights of 16 bits: in these, its decay of 0.999 is "
            '1. Build the model with dtype="mixed_bfloat16", which keeps weights '
            "of 32 bits, or compile with your own optimizer."
        )


def default_learning_rate(task: Any) -> float:
    """Return the peak learning rate of `optimizer="auto"`."""
    stored = task.backbone.fine_tuning.get("learning_rate")
    return stored or fine_tuning_learning_rate(task.backbone.hidden_dim)


def peak_learning_rate(task: Any, examples: int | None) -> float:
    """Return the peak learning rate of a `fit` of a number of examples, if known."""
    optimizer = task._auto_optimizer
    rate = optimizer.settings["learning_rate"]
    is_labelled = not _LABELLED.isdisjoint(task.heads)
    if examples and optimizer.has_default_rate and is_labelled and task.starts_trained:
        return lower_learning_rate(rate, examples)
    return rate


def default_loss(task: Any) -> Any:
    """Return the loss: the cross-entropy of each output with class ids.

    Targets of `ignored_class` do not count.
    """
    loss = keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, ignore_class=task.ignored_class
    )
    outputs = task.output
    return dict.fromkeys(outputs, loss) if isinstance(outputs, dict) else loss


def default_metrics(task: Any) -> dict[str, Any]:
    """Return the metrics of the task, as arguments of `keras.Model.compile`."""
    return {"metrics": None}


def has_unused_metrics(task: Any) -> bool:
    """Return whether a `train_step` of the user's own leaves out compiled metrics."""
    return not all(getattr(metric, "built", True) for metric in task.metrics)


@contextlib.contextmanager
def one_training(task: Any, callbacks: Any = None) -> Iterator[None]:
    """Hold the default optimizer for one training, and leave a failed one in order."""
    optimizer = task._auto_optimizer
    with optimizer.running() if optimizer else contextlib.nullcontext():
        try:
            yield
        except BaseException:
            for callback in keras.tree.flatten(callbacks):
                if isinstance(callback, keras.callbacks.SwapEMAWeights):
                    # Takes averages out of the model that it put there to score them.
                    callback.on_test_end()
            raise


@contextlib.contextmanager
def without_optimizer(task: Any) -> Iterator[None]:
    """Hide the optimizer of a task, whose state of all weights KerasHub would write."""
    optimizer, task.optimizer = getattr(task, "optimizer", None), None
    try:
        yield
    finally:
        task.optimizer = optimizer
