"""Losses of heads, each with an accuracy and the sum of the weights."""

from keras import ops

from albert_tf.layers.tensor_types import Tensor
from albert_tf.training.losses import EXCLUDED, first_equal_rows, share_a_text

TEMPERATURE = 0.05


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


def attraction(vectors: Tensor, token_ids: Tensor) -> dict[str, Tensor]:
    """Return the losses of finding the second text of each pair among all.

    Equal texts are no negatives of each other: a pair may be drawn twice.

    Args:
        vectors: float tensor [2 * pairs, hidden_dim], first those of the first texts.
        token_ids: int tensor [2 * pairs, time], the texts.
    """
    norms = ops.sqrt(ops.sum(vectors**2, axis=-1, keepdims=True))
    vectors /= norms + 1e-6
    count = ops.shape(vectors)[0] // 2
    similarities = ops.matmul(vectors[:count], ops.transpose(vectors[count:]))
    numbers = first_equal_rows(token_ids)
    related = share_a_text(numbers[:count], numbers[count:])
    similarities = ops.where(related, EXCLUDED, similarities)
    # Each first text seeks its second, then each second text its first.
    logits = ops.concatenate([similarities, ops.transpose(similarities)]) / TEMPERATURE
    partners = ops.arange(2 * count) % count
    weights = ops.ones_like(logits[:, 0])
    return weighted_losses(logits, partners, weights, "pairs", count)
