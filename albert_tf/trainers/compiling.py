"""The arguments of `compile`, read once, and the checks of a training."""

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import keras

from albert_tf.trainers.keras_metrics import (
    Loss,
    Metrics,
    TaskOutputs,
    check_weighted,
    fitting_losses,
    fitting_metrics,
    kind_of_targets,
)
from albert_tf_lite.errors import AlbertError

AUTO = "auto"


def is_auto(given: object) -> bool:
    """Return whether an argument of `compile` is `"auto"`."""
    return isinstance(given, str) and given == AUTO


@dataclasses.dataclass(frozen=True)
class Compiled:
    """The arguments that a model was compiled with, apart from its optimizer.

    Attributes:
        loss: the loss, or losses by output.
        has_default_loss: bool. It is the loss of the task.
        options: the other arguments of `keras.Model.compile`.
    """

    loss: Loss
    has_default_loss: bool
    options: Mapping[str, Any]

    def apply(
        self, model: keras.Model, optimizer: str | keras.optimizers.Optimizer
    ) -> None:
        """Compile a model with an optimizer."""
        keras.Model.compile(model, optimizer=optimizer, loss=self.loss, **self.options)


def read_compile_arguments(
    outputs: TaskOutputs,
    loss: Loss,
    metrics: Metrics,
    default_metrics: Mapping[str, Metrics],
    options: Mapping[str, Any],
) -> Compiled:
    """Read the arguments of `compile` apart from the optimizer.

    Args:
        outputs: what the task returns.
        loss: a loss, a name or losses by output; or `"auto"`.
        metrics: metrics or names, a list or by output; or `"auto"` for
            `default_metrics`.
        default_metrics: arguments of `keras.Model.compile`.
        options: other arguments of `keras.Model.compile`.
    """
    has_default_loss = is_auto(loss)
    loss = outputs.default_loss if has_default_loss else fitting_losses(outputs, loss)
    given = default_metrics if is_auto(metrics) else {"metrics": metrics}
    arguments: dict[str, Any] = {"metrics": None, **given, **options}
    check_weighted(outputs, arguments["metrics"])
    targets = kind_of_targets(outputs, loss)
    for name in ("metrics", "weighted_metrics"):
        fitting = fitting_metrics(outputs, arguments.get(name), targets)
        # Given `None` for both, Keras would keep those of the last `compile`.
        arguments[name] = fitting or []
    if keras.backend.backend() == "tensorflow":
        arguments.setdefault("jit_compile", False)
    return Compiled(loss, has_default_loss, arguments)


def check_types_of_weights(
    weights: Sequence[keras.Variable], has_default_optimizer: bool
) -> None:
    """Raise if the optimizer cannot train weights of 16 bits."""
    types = {weight.dtype for weight in weights}
    if "float16" in types:
        raise AlbertError(
            "Weights of float16 cannot be trained: in float16 small gradients and "
            "Adam's epsilon of 1e-7 are 0, and the weights would become NaN. Build the "
            'model with dtype="mixed_float16" or "mixed_bfloat16", which keep weights '
            "of 32 bits."
        )
    if "bfloat16" in types and has_default_optimizer:
        raise AlbertError(
            "Adam cannot train weights of 16 bits: in these, its decay of 0.999 is "
            '1. Build the model with dtype="mixed_bfloat16", which keeps weights '
            "of 32 bits, or compile with your own optimizer."
        )


@contextlib.contextmanager
def without_averages_after_failure(
    callbacks: Sequence[keras.callbacks.Callback],
) -> Iterator[None]:
    """Take averages of weights out of the model again if a training fails.

    `SwapEMAWeights` puts them into the model while it is scored.
    """
    try:
        yield
    except BaseException:
        for callback in callbacks:
            if isinstance(callback, keras.callbacks.SwapEMAWeights):
                callback.on_test_end()
        raise
