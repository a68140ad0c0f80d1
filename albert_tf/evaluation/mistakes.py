"""The worst mistakes of a classifier, and labels that look wrong."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from albert_tf_lite.errors import AlbertError, import_extra
from albert_tf_lite.inputs import as_label, as_list, as_texts, complete, whole_numbers


def worst_mistakes(
    probabilities: Any, truth: Any, count: int = 50
) -> list[dict[str, Any]]:
    """Return the wrongly classified examples, the worst first.

    Args:
        probabilities: float array [examples, classes].
        truth: int array [examples], the true classes.
        count: int, the maximum number of examples.

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
    probabilities = np.asarray(probabilities, "float64")
    truth = whole_numbers(truth, "truth")
    # Sums of bfloat16 are off by about 1 %.
    if not np.allclose(probabilities.sum(axis=-1), 1, atol=0.05):
        raise AlbertError(
            "The `probabilities` of each example should sum to 1. For the logits of a "
            'classifier, pass `answers(outputs)["probabilities"]`.'
        )
    given = probabilities[np.arange(len(truth)), truth]
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


def suspicious_labels(
    features: Any, truth: Any, count: int = 50
) -> list[dict[str, Any]]:
    """Return the training examples that the others classify differently.

    They are the `worst_mistakes` of a cross-validated logistic regression.

    Features of a model that was trained on these labels have memorised some of them, so
    that wrong labels look right. `character_features` do not depend on labels.

    Args:
        features: float array or sparse matrix [examples, features], for example
            `character_features(texts)`, or those of `albert_tf.models.text_features`.
        truth: list or array of labels [examples], names or ids.
        count: int, the maximum number of examples.

    Returns:
        As `worst_mistakes`. The only example of a class is left out.

    Raises:
        ImportError: if scikit-learn is not installed.
        AlbertError: if fewer than two classes have two examples.
    """
    model_selection = import_extra("sklearn.model_selection")
    model = import_extra("sklearn.linear_model").LogisticRegression(max_iter=1000)
    truth = [as_label(x) for x in complete(as_list(truth, "truth"), "truth")]
    classes, labels, sizes = np.unique(truth, return_inverse=True, return_counts=True)
    if (sizes > 1).sum() < 2:
        raise AlbertError(
            "At least two classes should have two examples each. Received classes of "
            f"{sizes.tolist()} examples."
        )
    if not hasattr(features, "tocsr"):
        # Pooled outputs of all texts are nearly equal. Scaling enlarges the
        # differences.
        scaler = import_extra("sklearn.preprocessing").StandardScaler()
        features, model.C = scaler.fit_transform(features), 0.01
    folds = min(5, sizes.max())
    split = model_selection.StratifiedKFold(folds, shuffle=True, random_state=1)
    with warnings.catch_warnings():
        # Some classes have fewer examples than there are folds.
        warnings.simplefilter("ignore")
        probabilities = model_selection.cross_val_predict(
            model, features, labels, cv=split, method="predict_proba"
        )
    rows = worst_mistakes(probabilities, labels, len(labels))
    rows = [row for row in rows if sizes[row["label_id"]] > 1][:count]
    for row in rows:
        for name in ("label_id", "predicted_id"):
            row[name] = classes[row[name]].item()
    return rows


def character_features(texts: Sequence[str]) -> Any:
    """Return the TF-IDF of one and two characters, a sparse [texts, features]."""
    text = import_extra("sklearn.feature_extraction.text")
    vectorizer = text.TfidfVectorizer(
        analyzer="char", ngram_range=(1, 2), sublinear_tf=True
    )
    return vectorizer.fit_transform(as_texts(texts))
