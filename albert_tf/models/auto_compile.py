"""Compiling with defaults that train."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import keras

from albert_tf.training import adamw, fine_tuning_learning_rate
from albert_tf_lite.errors import AlbertError


class AutoCompile:
    """`compile` with a default optimizer, loss and scores.

    A task supplies `default_loss` and `default_metrics`, and `default_learning_rate`
    where its rate does not follow from the size of the model.
    """

    _auto_learning_rate = _scheduled_steps = None
    _ema_momentum = _gradient_accumulation_steps = None
    _loss_is_default = False

    @property
    def default_learning_rate(self) -> float:
        """The peak for `optimizer="auto"`."""
        return fine_tuning_learning_rate(self.backbone.hidden_dim)

    def default_loss(self) -> Any:
        """What `loss="auto"` is, as `keras.Model.compile` takes it."""
        raise NotImplementedError

    def default_metrics(self) -> dict[str, Any]:
        """What `metrics="auto"` is: arguments of `keras.Model.compile`."""
        return {"metrics": None}

    def compile(
        self,
        optimizer: Any = "auto",
        loss: Any = "auto",
        *,
        metrics: Any = "auto",
        learning_rate: float | None = None,
        ema_momentum: float | None = None,
        gradient_accumulation_steps: int | None = None,
        **kwargs: Any,
    ) -> None:
        """Configure training; as `keras.Model.compile`, with defaults that train.

        Args:
            optimizer: `"auto"`, or anything Keras takes. `"auto"` is AdamW, whose
                rate rises for the first 10% of the steps of each `fit` of texts and
                falls to 0 with the last.
            loss: `"auto"` for the loss of the task.
            metrics: `"auto"` for the scores of the task.
            learning_rate: optional float, the peak for `optimizer="auto"`. By default
                5e-4 for models as wide as micro, 1e-4 as tiny and small, 3e-5 up to
                large, 1e-5 above; 1e-3 for toys.
            ema_momentum: optional float below 1, for `optimizer="auto"`. Keep the
                moving average of the weights over the steps, which `fit` ends with, as
                Keras' `use_ema`; 0.99 averages some 100 steps. To score the averages
                after each epoch give `fit` Keras' `SwapEMAWeights`.
            gradient_accumulation_steps: optional int, from 2 on, for
                `optimizer="auto"`. How many batches make one update.
            **kwargs: passed on to `keras.Model.compile`. On TensorFlow `jit_compile` is
                `False` unless given: XLA compiles again for every length.

        Raises:
            AlbertError: if `learning_rate`, `ema_momentum` or
                `gradient_accumulation_steps` is given beside an optimizer.
        """
        auto = isinstance(optimizer, str) and optimizer == "auto"
        options = {
            "learning_rate": learning_rate,
            "ema_momentum": ema_momentum,
            "gradient_accumulation_steps": gradient_accumulation_steps,
        }
        given = [name for name, value in options.items() if value is not None]
        if given and not auto:
            raise AlbertError(
                f"`{given[0]}` goes with optimizer='auto'; give it to your "
                "own optimizer otherwise."
            )
        self._loss_is_default = loss == "auto"
        if self._loss_is_default:
            loss = self.default_loss()
        if metrics == "auto":
            kwargs = {"metrics": None, **self.default_metrics(), **kwargs}
        else:
            kwargs["metrics"] = metrics
        if keras.backend.backend() == "tensorflow":
            kwargs.setdefault("jit_compile", False)
        self._auto_learning_rate = self._scheduled_steps = None
        self._ema_momentum = ema_momentum
        self._gradient_accumulation_steps = gradient_accumulation_steps
        if auto:
            self._auto_learning_rate = learning_rate or self.default_learning_rate
            # For `fit`, which knows the steps. A partial, since Keras would
            # track the metrics in a dict of ours as further ones.
            self._compile_with = functools.partial(super().compile, loss=loss, **kwargs)
            optimizer = self._auto_optimizer()
        super().compile(optimizer=optimizer, loss=loss, **kwargs)

    def get_compile_config(self) -> dict[str, Any] | None:
        config = super().get_compile_config()
        if config and self._auto_learning_rate is not None:
            # Where a model that is no task, as `clone_model` makes, reads it, too.
            config["optimizer"]["config"]["task_settings"] = {
                "learning_rate": self._auto_learning_rate,
                "ema_momentum": self._ema_momentum,
                "gradient_accumulation_steps": self._gradient_accumulation_steps,
                **({"loss": "auto"} if self._loss_is_default else {}),
            }
        return config

    def compile_from_config(self, config: Mapping[str, Any]) -> None:
        optimizer = config["optimizer"]
        of_task = isinstance(optimizer, Mapping) and optimizer["config"]
        if of_task and of_task.get("task_settings"):
            config = {**config, "optimizer": "auto", **of_task["task_settings"]}
        self.compile(**keras.saving.deserialize_keras_object(config))
        self.optimizer.build(self.trainable_variables)

    def make_train_function(self, force: bool = False) -> Any:
        """As Keras'.

        Raises:
            AlbertError: if the default optimizer would train weights of 16 bits.
        """
        dtypes = {variable.dtype for variable in self.trainable_variables}
        if self._auto_learning_rate and dtypes & {"bfloat16", "float16"}:
            raise AlbertError(
                "The weights are of 16 bits, in which Adam's decay of 0.999 is 1: "
                'they would stay as they are. Build the model with dtype="mixed_'
                'bfloat16", which keeps the weights in 32 bits, or compile with '
                "an optimizer of your own."
            )
        # A step that makes the optimizer's variables is traced twice, with a condition
        # for each of them, and TensorFlow never lets such graphs go.
        if self.optimizer is not None and not self.optimizer.built:
            self.optimizer.build(self.trainable_variables)
        return super().make_train_function(force)

    def schedule_learning_rate(
        self, steps_per_epoch: int, epochs: int, initial_epoch: int = 0
    ) -> None:
        """Give the default optimizer its schedule for the steps of one `fit`.

        Args:
            steps_per_epoch: int; 0 where it is not known, for a constant rate.
            epochs: int, those before `initial_epoch` included.
            initial_epoch: int, where a resumed `fit` starts.
        """
        if self._auto_learning_rate is None:
            return
        # Of batches: Keras' schedules count these, also where several are an update.
        steps = steps_per_epoch * epochs
        optimizer = self.optimizer
        if steps == self._scheduled_steps:
            # As new, but without tracing the training step again.
            for variable in optimizer.variables:
                variable.assign(keras.ops.zeros_like(variable))
        else:
            optimizer = self._auto_optimizer(steps)
            self._compile_with(optimizer=optimizer)
            self._scheduled_steps = steps
        # The first of its variables; `iterations` are updates, and not to be set.
        optimizer.variables[0].assign(steps_per_epoch * initial_epoch)
        if initial_epoch and optimizer.use_ema:
            # Keras begins an average with the weights only at the first step of all.
            optimizer.build(self.trainable_variables)
            averages = optimizer._model_variables_moving_average
            for average, weight in zip(averages, self.trainable_variables, strict=True):
                average.assign(weight)

    def _auto_optimizer(self, steps=None):
        options = {}
        if self._ema_momentum is not None:
            options.update(use_ema=True, ema_momentum=self._ema_momentum)
        if self._gradient_accumulation_steps is not None:
            options["gradient_accumulation_steps"] = self._gradient_accumulation_steps
        return adamw(self._auto_learning_rate, steps, **options)
