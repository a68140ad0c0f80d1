"""The class that compiles a task, with defaults that train."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import keras

from albert_tf.trainers.auto_optimizer import AutoOptimizer, AutoSettings
from albert_tf.trainers.compiling import (
    Compiled,
    check_types_of_weights,
    is_auto,
    read_compile_arguments,
)
from albert_tf.trainers.keras_metrics import Loss, Metrics
from albert_tf.trainers.task_hooks import TaskHooks
from albert_tf_lite.errors import AlbertError


class CompiledTask(TaskHooks):
    """Compile a task with the loss, the metrics and an optimizer that suit it."""

    _compiled: Compiled | None = None
    _auto: AutoOptimizer | None = None

    def compile(
        self,
        optimizer: str | keras.optimizers.Optimizer = "auto",
        loss: Loss = "auto",
        *,
        metrics: Metrics = "auto",
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
        settings = AutoSettings(
            learning_rate, ema_momentum, gradient_accumulation_steps
        )
        compiled = read_compile_arguments(
            self.task_outputs, loss, metrics, self.default_metrics(), kwargs
        )
        auto = None
        if is_auto(optimizer):
            settings.check()
            peak = settings.learning_rate
            auto = AutoOptimizer(
                settings, self.default_learning_rate if peak is None else peak
            )
            optimizer = auto.new_optimizer()
        elif given := settings.given():
            raise AlbertError(
                f"`{given[0]}` goes with optimizer='auto'. Pass it to your own "
                "optimizer instead."
            )
        self._auto = auto
        self._compiled = compiled
        compiled.apply(self, optimizer)

    def get_compile_config(self) -> dict[str, Any]:
        """Return the arguments of `compile` for a file, as in Keras."""
        config = keras.Model.get_compile_config(self)
        if config and self._auto is not None:
            settings = dataclasses.asdict(self._auto.settings)
            if self.has_default_loss:
                settings["loss"] = "auto"
            if self.starts_trained:
                settings["starts_trained"] = True
            config["task_settings"] = settings
        return config

    def compile_from_config(self, config: Mapping[str, Any]) -> None:
        """Compile the model as in a file, and continue its schedule."""
        config = dict(config)
        settings = dict(config.pop("task_settings", {}))
        arguments = keras.saving.deserialize_keras_object(config)
        optimizer = arguments.pop("optimizer")
        if settings:
            self.starts_trained = settings.pop("starts_trained", False)
            self.compile("auto", **{**arguments, **settings})
        else:
            self.compile(optimizer, **arguments)
        if self._auto is not None:
            self._auto.resume(optimizer)
        self._build_optimizer()

    @property
    def has_default_loss(self) -> bool:
        """True if the model was compiled with the loss of the task."""
        return self._compiled is not None and self._compiled.has_default_loss

    def peak_learning_rate(self, examples: int | None) -> float:
        """Return the peak learning rate of a `fit` of a number of examples, if known.

        It is that of `optimizer="auto"`, and lower for few examples of known labels.
        """
        auto: Any = self._auto
        if examples and auto.has_default_rate:
            return self.lowered_rate(auto.learning_rate, examples)
        return auto.learning_rate

    def make_train_function(self, force: bool = False) -> None:
        """Make the function of a training step, as Keras; `force` makes it again."""
        check_types_of_weights(self.trainable_variables, self._auto is not None)
        self._build_optimizer()
        super().make_train_function(force)

    def get_metrics_result(self) -> dict[str, Any]:
        """Return the values of the metrics by name.

        It is empty if a `train_step` of the user's own leaves out compiled metrics, for
        which Keras would raise an error.
        """
        if all(getattr(metric, "built", True) for metric in self.metrics):
            return super().get_metrics_result()
        return {}

    def _build_optimizer(self):
        """Create the variables of the optimizer.

        Keras would do so in the first step. Such a step is traced twice, with a
        condition for each variable, and TensorFlow never frees such graphs.
        """
        if self.optimizer is None or self.optimizer.built:
            return
        if self._auto is None:
            self.optimizer.build(self.trainable_variables)
        else:
            self._auto.build(self.optimizer, self.trainable_variables)
