"""Compiling with defaults that train."""

import functools
from collections.abc import Mapping
from typing import Any

import keras

from albert_tf.layers.private_keras import moving_averages
from albert_tf.training import fine_tuning_learning_rate, scheduled_optimizer
from albert_tf_lite.errors import AlbertError

# A task is a Keras model, which Keras does not let this class be, see `AlbertTask`.
_Model: Any = object
# Callbacks that set the learning rate, which Keras refuses if it has a schedule.
_RATE_CALLBACKS = (
    keras.callbacks.LearningRateScheduler,
    keras.callbacks.ReduceLROnPlateau,
)


class AutoCompile(_Model):
    """`compile` with a default optimizer, loss and metrics."""

    # The settings of `optimizer="auto"`, `None` for an optimizer of the user.
    _auto_settings: dict[str, Any] | None = None
    _scheduled_steps: int | None = None
    _loss_is_default = False
    ignored_class: int | None = None

    @property
    def default_learning_rate(self) -> float:
        """The peak learning rate of `optimizer="auto"`."""
        backbone = self.backbone
        stored = backbone.fine_tuning.get("learning_rate")
        return stored or fine_tuning_learning_rate(backbone.hidden_dim)

    def default_loss(self) -> Any:
        """Return the loss: the cross-entropy of each output with class ids.

        Targets of `ignored_class` do not count.
        """
        loss = keras.losses.SparseCategoricalCrossentropy(
            from_logits=True, ignore_class=self.ignored_class
        )
        outputs = self.output
        return dict.fromkeys(outputs, loss) if isinstance(outputs, dict) else loss

    def default_metrics(self) -> dict[str, Any]:
        """Return the metrics of the task, as arguments of `keras.Model.compile`."""
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
        """Configure training, as `keras.Model.compile`, with defaults that train.

        Args:
            optimizer: `"auto"`, or anything Keras takes. `"auto"` is AdamW, whose
                rate rises for the first 10% of the steps of each `fit` of texts and
                falls to 0 with the last.
            loss: `"auto"` for the loss of the task.
            metrics: `"auto"` for the metrics of the task.
            learning_rate: optional float, the peak for `optimizer="auto"`. By default
                that of the backbone's `fine_tuning`, else by its width: 1e-4 for tiny
                and small, 3e-5 up to large, 1e-5 above, 5e-4 and 1e-3 below.
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
        auto = isinstance(optimizer, str) and optimizer == "auto"
        settings = {
            "learning_rate": learning_rate,
            "ema_momentum": ema_momentum,
            "gradient_accumulation_steps": gradient_accumulation_steps,
        }
        given = [name for name, value in settings.items() if value is not None]
        if given and not auto:
            raise AlbertError(
                f"`{given[0]}` goes with optimizer='auto'. Pass it to your own "
                "optimizer instead."
            )
        self._loss_is_default = loss == "auto"
        loss = self.default_loss() if self._loss_is_default else loss
        defaults = self.default_metrics() if metrics == "auto" else {"metrics": metrics}
        kwargs = {"metrics": None, **defaults, **kwargs}
        if keras.backend.backend() == "tensorflow":
            kwargs.setdefault("jit_compile", False)
        self._auto_settings = self._scheduled_steps = None
        if auto:
            settings["learning_rate"] = learning_rate or self.default_learning_rate
            self._auto_settings = settings
            # For `fit`, which counts the steps. A partial, because Keras would track
            # the metrics in a dict of ours as further ones.
            self._compile_with = functools.partial(super().compile, loss=loss, **kwargs)
            optimizer = self._auto_optimizer()
        super().compile(optimizer=optimizer, loss=loss, **kwargs)

    def get_compile_config(self) -> dict[str, Any] | None:
        config = super().get_compile_config()
        if config and self._auto_settings is not None:
            # In the optimizer, so that a plain model, as of `clone_model`, reads it.
            config["optimizer"]["config"]["task_settings"] = {
                **self._auto_settings,
                **({"loss": "auto"} if self._loss_is_default else {}),
            }
        return config

    def compile_from_config(self, config: Mapping[str, Any]) -> None:
        optimizer = config["optimizer"]
        is_config = isinstance(optimizer, Mapping)
        if settings := is_config and optimizer["config"].get("task_settings"):
            config = {**config, "optimizer": "auto", **settings}
        self.compile(**keras.saving.deserialize_keras_object(config))
        self.optimizer.build(self.trainable_variables)

    def make_train_function(self, force: bool = False) -> Any:
        dtypes = {variable.dtype for variable in self.trainable_variables}
        if self._auto_settings and dtypes & {"bfloat16", "float16"}:
            raise AlbertError(
                "Adam cannot train weights of 16 bits: in these, its decay of 0.999 is "
                '1. Build the model with dtype="mixed_bfloat16", which keeps weights '
                "of 32 bits, or compile with your own optimizer."
            )
        # A step that builds the optimizer is traced twice, with a condition for each
        # variable, and TensorFlow never frees such graphs.
        if self.optimizer is not None and not self.optimizer.built:
            self.optimizer.build(self.trainable_variables)
        return super().make_train_function(force)

    def check_callbacks(self, callbacks: Any) -> None:
        """Raise if a callback would set the rate that the schedule sets."""
        if self._auto_settings is None:
            return
        for callback in keras.tree.flatten(callbacks):
            if isinstance(callback, _RATE_CALLBACKS):
                rate = self._auto_settings["learning_rate"]
                raise AlbertError(
                    f"{type(callback).__name__} cannot set the learning rate, because "
                    "the default optimizer has a schedule. First call "
                    f"compile(optimizer=keras.optimizers.AdamW({rate}))."
                )

    def schedule_learning_rate(
        self, steps_per_epoch: int, epochs: int, initial_epoch: int = 0
    ) -> None:
        """Set the schedule of the default optimizer for the steps of one `fit`.

        The rate is constant if `steps_per_epoch` is 0, unknown. `epochs` include those
        before `initial_epoch`, where a resumed `fit` starts.
        """
        if self._auto_settings is None:
            return
        # Keras' schedules count batches, even if several are one update.
        steps = steps_per_epoch * epochs
        if steps == self._scheduled_steps:
            # Reset without tracing the training step again.
            for variable in self.optimizer.variables:
                variable.assign(keras.ops.zeros_like(variable))
        else:
            self._compile_with(optimizer=self._auto_optimizer(steps))
            self._scheduled_steps = steps
        optimizer = self.optimizer
        # The first variable counts batches; `iterations` are updates.
        optimizer.variables[0].assign(steps_per_epoch * initial_epoch)
        if initial_epoch and optimizer.use_ema:
            # Keras starts an average from the weights only at the very first step.
            optimizer.build(self.trainable_variables)
            averages = moving_averages(optimizer)
            for average, weight in zip(averages, self.trainable_variables, strict=True):
                average.assign(weight)

    def _auto_optimizer(self, steps=None):
        return scheduled_optimizer("adamw", total_steps=steps, **self._auto_settings)
