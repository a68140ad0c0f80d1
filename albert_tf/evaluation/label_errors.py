"""Training examples whose label looks wrong."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from albert_tf.evaluation.extra import import_extra
from albert_tf.evaluation.mistakes import check_classes, losses
from albert_tf_lite.errors import AlbertError


def suspicious_labels(
    features: Any, truth: Any, count: int | None = 50, folds: int = 5, seed: int = 1
) -> list[dict[str, Any]]:
    """The examples whose label the other examples speak against, the worst first.

    The examples are cut into folds. A logistic regression of scikit-learn on the
    features of the others gives the probabilities of each fold; so no label speaks for
    itself. Those that confident learning takes for wrong (`confident_issues`) are
    given, ordered by this cross-validated loss.

    Features of a model that was fine-tuned on these very labels know some of them by
    heart, and the wrong ones then look better than they are. `character_features` know
    no label.

    Args:
        features: float array or sparse matrix [examples, features], such as
            `character_features`, or those of `albert_tf.models.text_features`.
        truth: int array [examples], the labels.
        count: int, the most to give; `None` for all.
        folds: int.
        seed: int, of the folds.

    Returns:
        As `confident_issues`. An example whose class no other has is not judged.

    Raises:
        ImportError: if scikit-learn is not installed.
        AlbertError: if fewer than two classes have two examples.

    Reference:
        [Confident Learning](https://arxiv.org/abs/1911.00068), sections 3.1 and 3.2.
    """
    probabilities = cross_validated(features, truth, folds, seed)
    return confident_issues(probabilities, truth, count)


def character_features(texts: Sequence[str]) -> Any:
    """TF-IDF of one and two characters of texts, a sparse matrix [texts, features]."""
    text = import_extra("sklearn.feature_extraction.text")
    vectorizer = text.TfidfVectorizer(
        analyzer="char", ngram_range=(1, 2), sublinear_tf=True
    )
    return vectorizer.fit_transform(texts)


def cross_validated(
    features: Any, truth: Any, folds: int = 5, seed: int = 1
) -> np.ndarray:
    """The probabilities of each example, of a model that was fitted without it.

    Args and errors as for `suspicious_labels`.

    Returns:
        A float64 array [examples, classes], NaN for one whose class no other has.
    """
    model_selection = import_extra("sklearn.model_selection")
    is_sparse = hasattr(features, "tocsr")
    features = features.tocsr() if is_sparse else np.asarray(features)
    truth = np.asarray(truth)
    sizes = np.bincount(truth)
    if (sizes > 1).sum() < 2:
        raise AlbertError(
            "Two classes at least should have two examples each. Received classes of "
            f"{sizes.tolist()} examples."
        )
    folds = min(folds, sizes.max())
    split = model_selection.StratifiedKFold(folds, shuffle=True, random_state=seed)
    probabilities = np.zeros((len(truth), len(sizes)))
    with warnings.catch_warnings():
        # Of classes that have fewer examples than there are folds.
        warnings.filterwarnings("ignore", "The least populated class")
        parts = list(split.split(np.zeros(len(truth)), truth))
    for train, held_out in parts:
        model = _cheap_model(is_sparse).fit(features[train], truth[train])
        columns = np.ix_(held_out, model.classes_)
        probabilities[columns] = model.predict_proba(features[held_out])
    probabilities[sizes[truth] < 2] = np.nan
    return probabilities


def _cheap_model(is_sparse):
    regression = import_extra("sklearn.linear_model").LogisticRegression
    # TF-IDF is on one scale as it is.
    if is_sparse:
        return regression(max_iter=1000)
    # The pooled outputs of all texts are nearly the same: what differs is enlarged.
    scaler = import_extra("sklearn.preprocessing").StandardScaler()
    make_pipeline = import_extra("sklearn.pipeline").make_pipeline
    return make_pipeline(scaler, regression(C=0.01, max_iter=1000))


def confident_issues(
    probabilities: Any, truth: Any, count: int | None = 50
) -> list[dict[str, Any]]:
    """The labels that probabilities from outside contradict, by confident learning.

    An example confidently belongs to a class if its probability for it is at least the
    mean that the examples labelled so have; to the most probable one if there are
    several. Where that is not its label, the label is suspicious.

    Args:
        probabilities: float array [examples, classes], of models that did not see the
            label; an example of NaN is not judged.
        truth: int array [examples], the labels.
        count: int, the most to give; `None` for all.

    Returns:
        A list of dicts, by falling loss: `index`, `label_id` and `suggested_id`, the
        probability of each (`label_probability`, `suggested_probability`), and `loss`,
        the cross-entropy of the label in nats.

    Reference:
        [Confident Learning](https://arxiv.org/abs/1911.00068), equation 1.
    """
    given = np.asarray(probabilities, "float64")
    judged = np.flatnonzero(~np.isnan(given).any(axis=1))
    given, truth = check_classes(given[judged], np.asarray(truth)[judged])
    thresholds = np.full(given.shape[1], np.inf)
    for label in np.unique(truth):
        thresholds[label] = given[truth == label, label].mean()
    confident = np.where(given >= thresholds, given, -1.0)
    suggested = confident.argmax(axis=1)
    is_issue = (confident.max(axis=1) >= 0) & (suggested != truth)
    loss = losses(given, truth)
    order = np.argsort(-loss, kind="stable")
    return [
        {
            "index": int(judged[i]),
            "label_id": int(truth[i]),
            "suggested_id": int(suggested[i]),
            "label_probability": float(given[i, truth[i]]),
            "suggested_probability": float(given[i, suggested[i]]),
            "loss": float(loss[i]),
        }
        for i in order[is_issue[order]][:count]
    ]
