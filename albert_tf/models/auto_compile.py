"""Compiling with defaults that train."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import keras

from albert_tf.training import adamw, fine_tuning_learning_rate


class AutoCompile:
    """`compile` with a default optimizer, loss and scores.

    A task supplies `default_loss` and `default_metrics`, and `default_learning_rate`
    where its rate does not follow from the size of the model.
    """

    _auto_learning_rate = _scheduled_steps = None
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
                1e-4 for texts and models up to small, 3e-5 to large, 1e-5 above.
            **kwargs: passed on to `keras.Model.compile`. On TensorFlow `jit_compile` is
                `False` unless given: XLA compiles again for every length.

        Raises:
            ValueError: if `learning_rate` is given beside an optimizer.
        """
        auto = optimizer == "auto"
        if learning_rate is not None and not auto:
            raise ValueError(
                "`learning_rate` goes with optimizer='auto'; give it to your "
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
        if auto:
            self._auto_learning_rate = learning_rate or self.default_learning_rate
            # For `fit`, which knows the steps. A partial, since Keras would
            # track the metrics in a dict of ours as further ones.
            self._compile_with = functools.partial(super().compile, loss=loss, **kwargs)
            optimizer = adamw(self._auto_learning_rate)
        super().compile(optimizer=optimizer, loss=loss, **kwargs)

    def get_compile_config(self) -> dict[str, Any] | None:
        config = super().get_compile_config()
        if config and self._auto_learning_rate is not None:
            config["optimizer"] = "auto"
            config["learning_rate"] = self._auto_learning_rate
        if config and self._loss_is_default:
            config["loss"] = "auto"
        return config

    def compile_from_config(self, config: Mapping[str, Any]) -> None:
        self.compile(**keras.saving.deserialize_keras_object(config))
        self.optimizer.build(self.trainable_variables)

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
        steps = steps_per_epoch * epochs
        if steps == self._scheduled_steps:
            # As new, but without tracing the training step again.
            for variable in self.optimizer.variables:
                variable.assign(keras.ops.zeros_like(variable))
        else:
            self._compile_with(optimizer=adamw(self._auto_learning_rate, steps))
            self._scheduled_steps = steps
        self.optimizer.iterations.assign(steps_per_epoch * initial_epoch)
