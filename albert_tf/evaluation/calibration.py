"""Calibration: how true the probabilities of a classifier are, and its temperature."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from albert_tf.extras import import_extra
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.inputs import whole_numbers

# Bins of equal width, as in Guo et al.
BINS = 15
# The minimum scores that `coverage` lists.
MINIMUM_SCORES = (0.0, 0.5, 0.7, 0.8, 0.9, 0.95)
# Fewer examples say too little about a temperature.
MIN_EXAMPLES = 20
# The least and the largest temperature.
LOWEST, HIGHEST = 0.2, 20.0
# The temperature before examples are seen, and the standard deviation of its logarithm.
# With 50 examples alone, the logarithm is off by 0.15 to 0.5, and an epoch that was
# chosen by the same examples makes it too low.
USUAL, SPREAD = 1.5, 0.15
# `usual_temperature`: its factor and exponent, and the loss from which it stays.
FACTOR, EXPONENT, LEAST_LOSS = 1.1, -0.134, 0.005


def calibration_scores(
    truth: Iterable[int], probabilities: ArrayLike
) -> dict[str, float]:
    """Compute `ece`, `ece_by_chance` and `brier` of a classifier.

    The expected calibration error is the mean difference of score and accuracy in the
    bins of `reliability_bins`, weighted by their examples. Few examples have one by
    chance even if all scores are true: `ece_by_chance` is its mean. The Brier score is
    the mean squared difference of the probabilities of an example from 1 for the true
    class and 0 for the others, summed over the classes; of two classes one counts, as
    in scikit-learn. If a text may have several classes, each of them is a decision with
    the score of its probability.

    Args:
        truth: int array [examples], the true classes; or of 0 and 1
            [examples, classes], if a text may have several classes.
        probabilities: float array [examples, classes].

    Raises:
        AlbertError: if there are no examples, or not as many as probabilities.

    Example:

    >>> calibration_scores([0, 1], [[1.0, 0.0], [0.5, 0.5]])["ece"]
    0.25

    Reference:
        [Guo et al., 2017](https://arxiv.org/abs/1706.04599).
    """
    classes, predicted = _checked(truth, probabilities)
    scores, is_right = _decisions(classes, predicted)
    numbers = _bin_numbers(scores, BINS)
    gaps = np.bincount(numbers, scores - is_right)
    # The sum of decisions that are right with these probabilities is nearly normal.
    variances = np.bincount(numbers, scores * (1 - scores))
    gaps_by_chance = np.sqrt(2 / np.pi * variances)
    is_binary = classes.ndim == 1 and predicted.shape[1] == 2
    if classes.ndim == 1:
        classes = np.eye(predicted.shape[1])[classes]
    squares = (predicted - classes) ** 2
    count = len(scores)
    return {
        "ece": float(np.abs(gaps).sum() / count),
        "ece_by_chance": float(gaps_by_chance.sum() / count),
        "brier": float(squares.sum() / count / (2 if is_binary else 1)),
    }


def reliability_bins(
    truth: Iterable[int], probabilities: ArrayLike, bins: int = BINS
) -> list[dict[str, float]]:
    """Compare the scores of the predicted classes with their accuracy, by score.

    Args:
        truth, probabilities: as for `calibration_scores`.
        bins: int, the number of intervals of equal width from 0 to 1.

    Returns:
        A list of dicts for the intervals with examples: `low` and `high`, its limits,
        of which the second belongs to it; the `count` of examples; and the means of
        their `score` and `accuracy`, which is the share of true classes if a text may
        have several.
    """
    scores, is_right = _decisions(*_checked(truth, probabilities))
    numbers = _bin_numbers(scores, bins)
    rows = []
    for number in np.unique(numbers):
        inside = numbers == number
        rows.append(
            {
                "low": float(number / bins),
                "high": float((number + 1) / bins),
                "count": int(inside.sum()),
                "score": float(scores[inside].mean()),
                "accuracy": float(is_right[inside].mean()),
            }
        )
    return rows


def coverage(
    truth: Iterable[int],
    probabilities: ArrayLike,
    minimum_scores: Sequence[float] = MINIMUM_SCORES,
) -> list[dict[str, float | None]]:
    """Compute how many texts are answered, and how well, from each score on.

    Args:
        truth: int array [examples], the true classes.
        probabilities: float array [examples, classes].
        minimum_scores: floats, values of `abstain`.

    Returns:
        A list of dicts: `abstain`, the minimum score; `answered`, the share of the
        examples with a score of at least that; and their `accuracy`, `None` without
        any.
    """
    scores, is_right = _decisions(*_checked(truth, probabilities))
    rows: list[dict[str, float | None]] = []
    for minimum in minimum_scores:
        answered = scores >= minimum
        accuracy = float(is_right[answered].mean()) if answered.any() else None
        share = float(answered.mean())
        rows.append({"abstain": minimum, "answered": share, "accuracy": accuracy})
    return rows


def _checked(
    truth: Iterable, probabilities: ArrayLike
) -> tuple[np.ndarray, np.ndarray]:
    """Return the arguments as arrays; raise if their lengths differ or are 0."""
    classes = np.asarray(truth)
    if classes.ndim != 2:
        classes = whole_numbers(truth, "truth")
    predicted = np.asarray(probabilities, "float64")
    is_row_each = (
        predicted.ndim == 2 and predicted.shape[: classes.ndim] == classes.shape
    )
    if not (is_row_each and classes.size):
        raise AlbertError(
            "Expected a row of probabilities for each example, at least one. Received: "
            f"`truth` of shape {classes.shape}, `probabilities` of {predicted.shape}"
        )
    return classes, predicted


def _decisions(
    classes: np.ndarray, predicted: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the score of each decision, and whether it is right."""
    if classes.ndim == 2:
        return predicted.ravel(), classes.ravel().astype(bool)
    return predicted.max(axis=1), predicted.argmax(axis=1) == classes


def _bin_numbers(scores: np.ndarray, bins: int) -> np.ndarray:
    """Return the interval of each score, counted from 0."""
    return np.clip(np.ceil(scores * bins).astype(int) - 1, 0, bins - 1)


# === The temperature ===


def log_loss(logits: ArrayLike, truth: ArrayLike, temperature: float = 1.0) -> float:
    """Compute the mean log loss of logits that a temperature divides.

    Args:
        logits: float array [examples, classes].
        truth: int array [examples], the classes of a softmax; or of 0 and 1
            [examples, classes], the targets of a sigmoid per class.
        temperature: float.
    """
    scaled, classes = np.asarray(logits, "float64") / temperature, np.asarray(truth)
    if classes.ndim == 1:
        of_truth = scaled[np.arange(len(classes)), classes]
        return float(np.mean(np.logaddexp.reduce(scaled, axis=1) - of_truth))
    # -log(sigmoid) of the logit, or of its negative.
    return float(np.mean(np.logaddexp(0, np.where(classes, -scaled, scaled))))


def best_temperature(
    logits: ArrayLike, truth: ArrayLike, usual: float = USUAL
) -> float:
    """Return the `likeliest_temperature` of logits; the arguments are of `log_loss`."""
    count = np.size(truth)
    return likeliest_temperature(lambda x: count * log_loss(logits, truth, x), usual)


def usual_temperature(training_loss: float) -> float:
    """Return the temperature that a text classifier usually needs.

    The better it learned its examples, the surer it is of others.

    Args:
        training_loss: float, its mean cross-entropy in the last epoch.
    """
    return float(FACTOR * max(training_loss, LEAST_LOSS) ** EXPONENT)


def likeliest_temperature(
    loss: Callable[[float], float], usual: float = USUAL
) -> float:
    """Return the likeliest temperature, that of the lowest log loss of many examples.

    Args:
        loss: function of a temperature that returns the log loss of the examples, their
            sum.
        usual: float, the temperature of similar models. Few examples leave it near.
    """

    def unlikelihood(temperature: float) -> float:
        distance = np.log(temperature / usual) / SPREAD
        return loss(temperature) + distance**2 / 2

    return _temperature_of_least(unlikelihood)


def closest_temperature(logits: ArrayLike, probabilities: ArrayLike) -> float:
    """Return the temperature whose softmax is closest to given probabilities.

    The distance is the cross-entropy.

    Args:
        logits: float array [examples, classes].
        probabilities: float array of the same shape, such as those of a model whose
            temperature is known.
    """
    targets, unscaled = (np.asarray(x, "float64") for x in (probabilities, logits))

    def cross_entropy(temperature: float) -> float:
        scaled = unscaled / temperature
        totals = np.logaddexp.reduce(scaled, axis=1, keepdims=True)
        return float((targets * (totals - scaled)).sum(axis=1).mean())

    return _temperature_of_least(cross_entropy)


def _temperature_of_least(loss: Callable[[float], float]) -> float:
    """Return the temperature at which a function is least."""
    optimize = import_extra("scipy.optimize")
    found = optimize.minimize_scalar(
        lambda logarithm: loss(np.exp(logarithm)),
        bounds=np.log([LOWEST, HIGHEST]),
        method="bounded",
        options={"xatol": 1e-3},
    )
    return float(np.exp(found.x))
