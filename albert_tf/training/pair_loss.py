import keras
from keras import ops


@keras.saving.register_keras_serializable(package="albert_tf")
class PairLoss(keras.losses.Loss):
    """Teaches embeddings by pairs of texts: ranked by scores, or told from others.

    Pairs with scores: CoSENT. Of two pairs, the one with the higher score should have
    the higher cosine,

        log(1 + sum exp(scale * (cos_j - cos_i))) over all i, j with score_i > score_j,

    so that only the order of the scores counts, whatever they are: 0 and 1, 0 to 5.

    Pairs without scores: in-batch negatives. The texts of a pair belong together, and
    each text should be nearer to its own partner than to those of all other pairs of
    the batch (cross-entropy of scale * cosine, from both sides).

    Args:
        scale: float. What cosines are multiplied by; 1 / temperature.

    Call arguments:
        y_true: float tensor [2 * pairs] or [2 * pairs, 1], the score of each text's
            pair; NaN for a pair without score.
        y_pred: float tensor [2 * pairs, dim], embeddings: first, second, first, ...

    Returns:
        A scalar: the sum of both losses, each of its own pairs.

    Reference:
        Su Jianlin, [CoSENT](https://kexue.fm/archives/8847);
        [Henderson et al., 2017](https://arxiv.org/abs/1705.00652), section 4.4;
        [SimCSE](https://arxiv.org/abs/2104.08821), whose temperature is 0.05.
    """

    def __init__(self, scale=20.0, reduction="sum", name="pair_loss", **kwargs):
        super().__init__(reduction=reduction, name=name, **kwargs)
        self.scale = scale

    def call(self, y_true, y_pred):
        y_pred = ops.normalize(ops.cast(y_pred, self.dtype), axis=-1, order=2)
        scores = ops.reshape(y_true, (-1,))[::2]
        cosines = self.scale * ops.matmul(y_pred[::2], ops.transpose(y_pred[1::2]))
        scored = ops.logical_not(ops.isnan(scores))
        own = ops.diagonal(cosines)
        ranked = _cosent(ops.where(scored, scores, 0.0), own, scored)
        return ranked + _in_batch_negatives(cosines, own, ops.logical_not(scored))

    def get_config(self):
        return {**super().get_config(), "scale": self.scale}


def _cosent(scores, cosines, scored):
    """Of the pairs that are `scored`; 0 where no score is higher than another."""
    higher = scores[:, None] > scores[None, :]
    both = ops.logical_and(scored[:, None], scored[None, :])
    compared = ops.logical_and(higher, both)
    differences = cosines[None, :] - cosines[:, None]
    # exp of it is 0, and the gradient too.
    differences = ops.where(compared, differences, -1e9)
    # The 1 of the logarithm.
    terms = ops.pad(ops.reshape(differences, (-1,)), [[1, 0]])
    return ops.logsumexp(terms)


def _in_batch_negatives(cosines, own, asked):
    """The mean over the rows and columns `asked` for; 0 without any."""
    asked = ops.cast(asked, cosines.dtype)
    losses = ops.logsumexp(cosines, axis=0) + ops.logsumexp(cosines, axis=1) - 2 * own
    return ops.sum(losses * asked) / ops.maximum(2 * ops.sum(asked), 1)
