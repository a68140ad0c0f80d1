"""The worst mistakes of a model, and training labels that look wrong."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from albert_tf_lite.errors import AlbertError, import_extra

# Keeps the logarithm of a probability of 0 finite.
LEAST_PROBABILITY = 1e-12


def worst_mistakes(
    probabilities: Any, truth: Any, count: int | None = 50
) -> list[dict[str, Any]]:
    """Return the wrongly classified examples, the worst first.

    Args:
        probabilities: float array [examples, classes].
        truth: int array [examples], the true classes.
        count: int, the maximum number of examples; `None` for all.

    Returns:
        A list of dicts, sorted by the probability of the true class: `index` of the
        example, `label_id` and `predicted_id`, and the probability of each,
        `label_probability` and `predicted_probability`.

    Raises:
        AlbertError: if the probabilities of an example do not sum to 1.

    Example:

    >>> worst_mistakes([[0.9, 0.1], [0.7, 0.3]], [0, 1])[0]["index"]
    1
    """
    probabilities, truth = np.asarray(probabilities, "float64"), np.asarray(truth)
    # Sums of bfloat16 are off by about 1 %.
    if not np.allclose(probabilities.sum(axis=-1), 1, atol=0.05):
        raise AlbertError(
            "The `probabilities` of each example should sum to 1. For the logits of a "
            'classifier, pass `answers(outputs)["probabilities"]`.'
        )
    given = np.take_along_axis(probabilities, truth[:, None], axis=1)[:, 0]
    predicted = probabilities.argmax(axis=1)
    order = np.argsort(given, kind="stable")
    return [
        {
            "index": int(i),
            "label_id": int(truth[i]),
            "predicted_id": int(predicted[i]),
            "label_probability": float(given[i]),
            "predicted_probability": float(probabilities[i, predicted[i]]),
        }
        for i in order[predicted[order] != truth[order]][:count]
    ]


def worst_multi_label_mistakes(
    probabilities: Any, truth: Any, chosen: Any, count: int | None = 50
) -> list[dict[str, Any]]:
    """Return the examples with missed or wrong classes, the worst first.

    Args:
        probabilities: float array [examples, classes].
        truth, chosen: arrays of 0 and 1 [examples, classes].
        count: int, the maximum number of examples; `None` for all.

    Returns:
        A list of dicts, by falling loss: `index`, `missed` and `wrong`, dicts of the
        probability by class id, and `loss`, the sum of the classes' binary
        cross-entropies in nats.
    """
    given = np.asarray(probabilities, "float64")
    truth, chosen = np.asarray(truth, bool), np.asarray(chosen, bool)
    right = np.maximum(np.where(truth, given, 1 - given), LEAST_PROBABILITY)
    loss = -np.log(right).sum(axis=1)
    order = np.argsort(-loss, kind="stable")

    def by_class(i, is_listed):
        return {int(j): float(given[i, j]) for j in np.flatnonzero(is_listed[i])}

    return [
        {
            "index": int(i),
            "missed": by_class(i, truth & ~chosen),
            "wrong": by_class(i, chosen & ~truth),
            "loss": float(loss[i]),
        }
        for i in order[(truth != chosen).any(axis=1)[order]][:count]
    ]


def worst_entity_mistakes(
    truth: Sequence[Sequence[tuple]],
    predicted: Sequence[Sequence[tuple]],
    count: int | None = 50,
) -> list[dict[str, Any]]:
    """Return the texts with missed or wrong entities, the worst first.

    Args:
        truth: a list of (start, end, label) for each text.
        predicted: a list of (start, end, label, score) for each text.
        count: int, the maximum number of texts; `None` for all.

    Returns:
        A list of dicts: `index`, `missed` (spans as in `truth`), `wrong` (spans as in
        `predicted`), and `loss`: the sum of the scores of wrong entities, plus 1 for
        each missed one.
    """
    found = []
    for index, (spans, given) in enumerate(zip(truth, predicted, strict=True)):
        right, seen = {tuple(x) for x in spans}, {tuple(x[:3]) for x in given}
        missed = [tuple(x) for x in spans if tuple(x) not in seen]
        wrong = [tuple(x) for x in given if tuple(x[:3]) not in right]
        loss = len(missed) + sum(float(score) for *_, score in wrong)
        if missed or wrong:
            row = {"index": index, "missed": missed, "wrong": wrong, "loss": loss}
            found.append(row)
    return sorted(found, key=lambda row: -row["loss"])[:count]


def suspicious_labels(
    features: Any, truth: Any, count: int | None = 50, folds: int = 5, seed: int = 1
) -> list[dict[str, Any]]:
    """Return the training examples that the others classify differently.

    A logistic regression is cross-validated on the features. The result is its
    `worst_mistakes`.

    Features of a model that was trained on these labels have memorised some of them, so
    that wrong labels look right. `character_features` do not depend on labels.

    Args:
        features: float array or sparse matrix [examples, features], for example
            `character_features(texts)`, or those of `albert_tf.models.text_features`.
        truth: int array [examples], the labels.
        count: int, the maximum number of examples; `None` for all.
        folds: int, of the cross-validation.
        seed: int, of the folds.

    Returns:
        As `worst_mistakes`. The only example of a class is left out.

    Raises:
        ImportError: if scikit-learn is not installed.
        AlbertError: if fewer than two classes have two examples.
    """
    model_selection = import_extra("sklearn.model_selection")
    linear_model = import_extra("sklearn.linear_model")
    preprocessing = import_extra("sklearn.preprocessing")
    truth, is_sparse = np.asarray(truth), hasattr(features, "tocsr")
    sizes = np.bincount(truth)
    judged = np.flatnonzero(sizes[truth] > 1)
    classes, labels = np.unique(truth[judged], return_inverse=True)
    if len(classes) < 2:
        raise AlbertError(
            "At least two classes should have two examples each. Received classes of "
            f"{sizes.tolist()} examples."
        )
    features = (features.tocsr() if is_sparse else np.asarray(features))[judged]
    model = linear_model.LogisticRegression(max_iter=1000)
    if not is_sparse:
        # Pooled outputs of all texts are nearly equal. Scaling enlarges the
        # differences.
        features = preprocessing.StandardScaler().fit_transform(features)
        model.C = 0.01
    split = model_selection.StratifiedKFold(
        min(folds, sizes.max()), shuffle=True, random_state=seed
    )
    with warnings.catch_warnings():
        # Some classes have fewer examples than there are folds.
        warnings.filterwarnings("ignore", "The least populated class")
        warnings.filterwarnings("ignore", "Number of classes in training fold")
        probabilities = model_selection.cross_val_predict(
            model, features, labels, cv=split, method="predict_proba"
        )
    ids = {"index": judged, "label_id": classes, "predicted_id": classes}
    return [
        {name: int(ids[name][x]) if name in ids else x for name, x in row.items()}
        for row in worst_mistakes(probabilities, labels, count)
    ]


def character_features(texts: Sequence[str]) -> Any:
    """Return the TF-IDF of one and two characters, a sparse [texts, features]."""
    text = import_extra("sklearn.feature_extraction.text")
    vectorizer = text.TfidfVectorizer(
        analyzer="char", ngram_range=(1, 2), sublinear_tf=True
    )
    return vectorizer.fit_transform(texts)
