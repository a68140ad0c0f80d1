"""Losses of the embedder and the summarizer."""

from typing import Any

import keras
from keras import ops

from albert_tf.layers.tensor_types import Tensor

# As a logit: its exponential is 0, and so is the gradient of that.
EXCLUDED = -1e9


@keras.saving.register_keras_serializable(package="albert_tf")
class PairLoss(keras.losses.Loss):
    """Train embeddings on pairs of texts, with scores or without.

    Pairs with scores: CoSENT. The pair with the higher score should have the higher
    cosine,

        log(1 + sum exp(scale * (cos_j - cos_i))) over all i, j with score_i > score_j,

    so that only the order of the scores matters, not their range.

    Pairs without scores: in-batch negatives. Each text should be nearer to its partner
    than to the texts of all other pairs of the batch (cross-entropy of scale * cosine,
    in both directions). Pairs that have a text in common are not compared: equal texts
    are no negatives of each other.

    Args:
        scale: float. Factor of the cosines; 1 / temperature.

    Call arguments:
        y_true: float tensor [2 * pairs], [2 * pairs, 1] or [2 * pairs, 2], the score of
            each text's pair, NaN for a pair without score; and optionally the number of
            the text, the same for equal texts. Without numbers, texts of the same
            vector are equal.
        y_pred: float tensor [2 * pairs, dim], embeddings: first, second, first, ...

    Returns:
        A scalar: the sum of the losses of both kinds of pairs.

    Reference:
        Su Jianlin, [CoSENT](https://kexue.fm/archives/8847);
        [Henderson et al., 2017](https://arxiv.org/abs/1705.00652), section 4.4;
        [SimCSE](https://arxiv.org/abs/2104.08821), whose temperature is 0.05.
    """

    def __init__(self, scale: float = 20.0, reduction: str = "sum", **kwargs: Any):
        super().__init__(reduction=reduction, **kwargs)
        self.scale = scale

    def call(self, y_true, y_pred):
        y_pred = ops.normalize(ops.cast(y_pred, self.dtype), axis=-1, order=2)
        if len(y_true.shape) == 1:
            y_true = y_true[:, None]
        has_numbers = y_true.shape[1] == 2
        numbers = y_true[:, 1] if has_numbers else first_equal_rows(y_pred)
        # The rows alternate: first text of a pair, second text.
        first, second = y_pred[::2], y_pred[1::2]
        related = share_a_text(numbers[::2], numbers[1::2])
        scores = y_true[::2, 0]
        is_scored = ops.logical_not(ops.isnan(scores))
        # [pairs, pairs]: of each first text with each second one.
        cosines = self.scale * ops.matmul(first, ops.transpose(second))
        of_pairs = ops.diagonal(cosines)
        ranking_loss = _cosent(ops.where(is_scored, scores, 0.0), of_pairs, is_scored)
        negatives_loss = _in_batch_negatives(
            ops.where(related, EXCLUDED, cosines),
            of_pairs,
            ops.logical_not(is_scored),
        )
        return ranking_loss + negatives_loss

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "scale": self.scale}


def first_equal_rows(rows: Tensor) -> Tensor:
    """Return the index of the first row that equals each of [rows, width], int32."""
    are_equal = ops.all(rows[:, None] == rows[None, :], axis=-1)
    return ops.cast(ops.argmax(are_equal, axis=1), "int32")


def share_a_text(first: Tensor, second: Tensor) -> Tensor:
    """Return which pairs of texts have a text in common with which others.

    Args:
        first, second: tensors [pairs], numbers of texts, the same for equal texts.

    Returns:
        A bool tensor [pairs, pairs], true where the second text of the column's pair is
        no negative for the first text of the row's. It is false on the diagonal.
    """
    has_same_first = first[:, None] == first[None, :]
    has_same_second = second[:, None] == second[None, :]
    is_text_itself = first[:, None] == second[None, :]
    place = ops.arange(ops.shape(first)[0])
    is_other_pair = place[:, None] != place[None, :]
    return (has_same_first | has_same_second | is_text_itself) & is_other_pair


def _cosent(scores, cosines, scored):
    """Return CoSENT of the `scored` pairs; 0 if all their scores are equal."""
    higher = scores[:, None] > scores[None, :]
    both = ops.logical_and(scored[:, None], scored[None, :])
    compared = ops.logical_and(higher, both)
    differences = cosines[None, :] - cosines[:, None]
    # The padding is the 1 of the logarithm.
    differences = ops.where(compared, differences, EXCLUDED)
    terms = ops.pad(ops.reshape(differences, (-1,)), [[1, 0]])
    return ops.logsumexp(terms)


def _in_batch_negatives(cosines, own, asked):
    """Return the mean over the `asked` rows and columns; 0 without any."""
    asked = ops.cast(asked, cosines.dtype)
    losses = ops.logsumexp(cosines, axis=0) + ops.logsumexp(cosines, axis=1) - 2 * own
    return ops.sum(losses * asked) / ops.maximum(2 * ops.sum(asked), 1)


@keras.saving.register_keras_serializable(package="albert_tf")
class SentenceLoss(keras.losses.Loss):
    """Binary cross-entropy at the tokens that represent sentences.

    Call arguments:
        y_true: float tensor [batch, time], 1 or 0, and negative at all other tokens.
        y_pred: float tensor [batch, time], logits.

    Returns:
        The mean over the sentences of each example, then over the batch.
    """

    def call(self, y_true, y_pred):
        y_true = ops.cast(y_true, y_pred.dtype)
        is_sentence = ops.cast(y_true >= 0, y_pred.dtype)
        losses = (ops.softplus(y_pred) - y_true * y_pred) * is_sentence
        count = ops.maximum(ops.sum(is_sentence, axis=-1), 1)
        return ops.sum(losses, axis=-1) / count
