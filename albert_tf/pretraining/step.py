"""Training steps on stacked batches, and the losses that models return."""

from typing import Any

import keras
from keras import ops

from albert_tf.layers.common import Tensor
from albert_tf.training.losses import EXCLUDED, first_equal_rows, share_a_text

TEMPERATURE = 0.05


class StepModel(keras.Model):
    """Base class of models whose call returns losses, and whose batches are stacked.

    A call takes the dict of a batch and returns `<name>_loss`, `<name>_accuracy` and
    `<name>_count` of each of `heads`, scalars. An item of the data has the batches of
    several steps, along a second axis, which a single call of the device trains on, so
    that a small model does not wait for Python.

    Args:
        heads: dict of the weight of the loss of each head, by name.
    """

    def __init__(self, heads: dict[str, float], **kwargs: Any):
        # The values of a batch keep their 32 bits; the network casts its own.
        super().__init__(dtype="float32", **kwargs)
        self.heads = heads
        self.means = {
            f"{head}_{kind}": keras.metrics.Mean(name=f"{head}_{kind}")
            for head in heads
            for kind in ("loss", "accuracy")
        }

    def compute_loss(self, x=None, y=None, y_pred=None, *args, **kwargs):
        return sum(rate * y_pred[f"{x}_loss"] for x, rate in self.heads.items())

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        for name, mean in self.means.items():
            head, _, _ = name.rpartition("_")
            mean.update_state(y_pred[name], y_pred[f"{head}_count"])
        return self.get_metrics_result()

    def train_step(self, *args: Any) -> Any:
        """Train on the batches of an item, on TensorFlow or JAX."""
        *state, data = args
        count = keras.tree.flatten(data)[0].shape[1]
        if state:
            return self._train_on_jax(state[0], data, count)
        if count == 1:
            return self._train_once(_item(data, 0))

        def body(number):
            self._train_once(_item(data, number))
            return (number + 1,)

        ops.while_loop(lambda number: number < count, body, (0,))
        return self.get_metrics_result()

    def _train_once(self, data):
        batch, _, _ = keras.utils.unpack_x_y_sample_weight(data)
        if (rate := batch.get("learning_rate")) is not None:
            self.optimizer.learning_rate = rate[0]
        return super().train_step(data)

    def _train_on_jax(self, state, data, count):
        import jax

        one_step = super().train_step
        names = [variable.name for variable in self.optimizer.variables]

        def step(state, data):
            batch, _, _ = keras.utils.unpack_x_y_sample_weight(data)
            if (rate := batch.get("learning_rate")) is not None:
                optimizer = [*state[2]]
                optimizer[names.index("learning_rate")] = rate[0]
                state = *state[:2], optimizer, state[3]
            logs, state = one_step(state, data)
            return state, logs

        if count == 1:
            state, logs = step(state, _item(data, 0))
            return logs, state
        data = keras.tree.map_structure(lambda x: ops.moveaxis(x, 1, 0), data)
        state, logs = jax.lax.scan(step, state, data)
        return keras.tree.map_structure(lambda x: x[-1], logs), state

    def test_step(self, *args: Any) -> Any:
        *state, data = args
        return super().test_step(*state, _item(data, 0))


def _item(data: Any, number: Any) -> Any:
    """Return the batch of one step."""
    return keras.tree.map_structure(lambda x: x[:, number], data)


# === Losses ===


def weighted_losses(
    logits: Tensor,
    labels: Tensor,
    weights: Tensor,
    name: str,
    guesses: Tensor | None = None,
) -> dict[str, Tensor]:
    """Return the mean cross-entropy and accuracy of logits, and the sum of weights.

    With `guesses`, the number of classes to choose from, a uniform guess has loss 1.
    """
    logits = ops.cast(logits, "float32")
    losses = ops.sparse_categorical_crossentropy(labels, logits, from_logits=True)
    if guesses is not None:
        losses /= ops.log(ops.cast(guesses, "float32"))
    is_right = ops.cast(ops.argmax(logits, axis=-1) == labels, "float32")
    total = ops.maximum(ops.sum(weights), 1e-6)
    return {
        f"{name}_loss": ops.sum(weights * losses) / total,
        f"{name}_accuracy": ops.sum(weights * is_right) / total,
        f"{name}_count": ops.sum(weights),
    }


def squared_errors(
    outputs: Tensor, scores: Tensor, variances: Tensor, name: str
) -> dict[str, Tensor]:
    """Return the mean of the errors by variance, where the scores are not NaN."""
    is_score = ~ops.isnan(scores)
    weights = ops.cast(is_score, "float32")
    errors = (outputs - ops.where(is_score, scores, 0.0)) ** 2 / variances
    total = ops.maximum(ops.sum(weights), 1.0)
    return {
        f"{name}_loss": ops.sum(weights * errors) / total,
        f"{name}_count": ops.sum(weights),
    }


def attraction(
    vectors: Tensor, token_ids: Tensor, name: str = "pairs"
) -> dict[str, Tensor]:
    """Return the losses of finding the second text of each pair among all.

    Equal texts are no negatives of each other: a pair may be drawn twice.

    Args:
        vectors: float tensor [2 * pairs, hidden_dim], first those of the first texts.
        token_ids: int tensor [2 * pairs, time], the texts.
        name: string, that of the loss.
    """
    norms = ops.sqrt(ops.sum(vectors**2, axis=-1, keepdims=True))
    vectors /= norms + 1e-6
    count = ops.shape(vectors)[0] // 2
    similarities = ops.matmul(vectors[:count], ops.transpose(vectors[count:]))
    numbers = first_equal_rows(token_ids)
    related = share_a_text(numbers[:count], numbers[count:])
    similarities = ops.where(related, EXCLUDED, similarities)
    both = ops.concatenate([similarities, ops.transpose(similarities)]) / TEMPERATURE
    y = ops.arange(2 * count) % count
    return weighted_losses(both, y, ops.ones_like(both[:, 0]), name, count)
