"""Training steps on stacked batches, on TensorFlow and JAX."""

from typing import Any

import keras
from keras import ops

from albert_tf.layers.tensor_types import Tensor
from albert_tf.pretraining.training.stacked_batches import Item


class StepModel(keras.Model):
    """Base class of models whose call returns losses, and whose batches are stacked.

    A call takes the dict of a batch and returns `<name>_loss`, `<name>_accuracy` and
    `<name>_count` of each of `heads`, scalars. An item of the data has the batches of
    several steps, along a second axis, which a single call of the device trains on, so
    that a small model does not wait for Python.

    Args:
        heads: dict of the weight of the loss of each head, by name.
    """

    def __init__(self, heads: dict[str, float]):
        # The values of a batch keep their 32 bits; the network casts its own.
        super().__init__(dtype="float32")
        self.heads = heads
        self.means = {
            f"{head}_{kind}": keras.metrics.Mean(name=f"{head}_{kind}")
            for head in heads
            for kind in ("loss", "accuracy")
        }

    def compute_loss(self, x=None, y=None, y_pred=None, *args, **kwargs):
        losses = [rate * y_pred[f"{head}_loss"] for head, rate in self.heads.items()]
        return sum(losses)

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        for name, mean in self.means.items():
            head, _, _ = name.rpartition("_")
            mean.update_state(y_pred[name], y_pred[f"{head}_count"])
        return self.get_metrics_result()

    def train_step(self, *args: Any) -> Any:
        """Train on the batches of an item.

        Keras passes the data on TensorFlow, the state of the training and the data on
        JAX, where it expects both the metrics and the new state.
        """
        if keras.backend.backend() == "jax":
            return self._train_on_jax(*args)
        return self._train_on_tensorflow(*args)

    def test_step(self, *args: Any) -> Any:
        """Evaluate the only batch of an item; Keras passes what `train_step` takes."""
        *state, data = args
        return super().test_step(*state, _batch(data, 0))

    def _train_on_tensorflow(self, data):
        count = _steps(data)
        if count == 1:
            return self._train_once(_batch(data, 0))

        def train_next(number):
            self._train_once(_batch(data, number))
            return (number + 1,)

        ops.while_loop(lambda number: number < count, train_next, (0,))
        return self.get_metrics_result()

    def _train_once(self, data):
        rate = _learning_rate(data)
        if rate is not None:
            self.optimizer.learning_rate = rate
        return super().train_step(data)

    def _train_on_jax(self, state, data):
        import jax

        train_once = super().train_step
        names = [variable.name for variable in self.optimizer.variables]

        def step(state, data):
            rate = _learning_rate(data)
            if rate is not None:
                trained, untrained, optimizer, metrics = state
                optimizer = list(optimizer)
                optimizer[names.index("learning_rate")] = rate
                state = trained, untrained, optimizer, metrics
            logs, state = train_once(state, data)
            return state, logs

        if _steps(data) == 1:
            state, logs = step(state, _batch(data, 0))
            return logs, state
        steps_first = keras.tree.map_structure(lambda x: ops.moveaxis(x, 1, 0), data)
        state, logs = jax.lax.scan(step, state, steps_first)
        # The metrics are means over all steps.
        return keras.tree.map_structure(lambda x: x[-1], logs), state


def _steps(data: tuple[Item]) -> int:
    """Return the number of batches of an item."""
    return keras.tree.flatten(data)[0].shape[1]


def _batch(data: tuple[Item], number: int | Tensor) -> Any:
    """Return the batch of one step of an item."""
    return keras.tree.map_structure(lambda x: x[:, number], data)


def _learning_rate(data: tuple[Item]) -> Tensor | None:
    """Return the learning rate of a batch, which each of its sequences has."""
    batch, _, _ = keras.utils.unpack_x_y_sample_weight(data)
    rate = batch.get("learning_rate")
    return None if rate is None else rate[0]
