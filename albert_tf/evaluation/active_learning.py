"""Which texts without labels are worth one."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from albert_tf.evaluation.extra import import_extra
from albert_tf.evaluation.mistakes import LEAST_PROBABILITY, check_probabilities
from albert_tf_lite.errors import AlbertError

# So many times as many uncertain examples as are wanted are clustered.
CANDIDATES = 10


def next_to_label(
    probabilities: Any, features: Any, count: int = 50, seed: int = 1
) -> list[dict[str, Any]]:
    """The examples to label next: uncertain ones that are unlike one another.

    The examples of the highest entropy, ten times as many as wanted, are cut into
    `count` clusters by k-means, weighted by entropy. Of each the one nearest to the
    centre is given.

    Args:
        probabilities: float array [examples, classes], of the model so far.
        features: float array [examples, features], such as those of
            `albert_tf.models.text_features`.
        count: int, the most to give. Fewer come back if there are not as many
            examples with different features.
        seed: int, of the clusters.

    Returns:
        A list of dicts, by falling entropy: `index`, `predicted_id`,
        `predicted_probability`, and `entropy` in nats.

    Raises:
        ImportError: if scikit-learn is not installed.
        AlbertError: if the arrays do not fit together.

    Reference:
        [Diverse mini-batch Active Learning](https://arxiv.org/abs/1901.05954),
        algorithm 1, with the entropy for its informativeness.
    """
    probabilities = check_probabilities(probabilities)
    features = np.asarray(features, "float64")
    if features.ndim != 2 or len(features) != len(probabilities):
        raise AlbertError(
            "`features` should have a row for each of the "
            f"{len(probabilities)} examples. Received shape {features.shape}."
        )
    logarithms = np.log(np.maximum(probabilities, LEAST_PROBABILITY))
    entropy = -(probabilities * logarithms).sum(axis=1)
    order = np.argsort(-entropy, kind="stable")[: CANDIDATES * count]
    chosen = order[_central(features[order], entropy[order], count, seed)]
    return [
        {
            "index": int(i),
            "predicted_id": int(probabilities[i].argmax()),
            "predicted_probability": float(probabilities[i].max()),
            "entropy": float(entropy[i]),
        }
        for i in chosen[np.argsort(-entropy[chosen], kind="stable")]
    ]


def _central(features, weights, count, seed):
    """The positions of the example nearest to the centre of each cluster."""
    if not len(features) or count < 1:
        return np.zeros(0, "int64")
    distinct = len(np.unique(features, axis=0))
    clusters = import_extra("sklearn.cluster").KMeans(
        min(count, distinct), n_init=1, random_state=seed
    )
    with warnings.catch_warnings():
        # Features that are nearly the same count as one; then a cluster is empty.
        warnings.filterwarnings("ignore", "Number of distinct clusters")
        # A weight of 0 for all would leave no centres.
        labels = clusters.fit_predict(features, sample_weight=weights + 1e-9)
    distances = np.linalg.norm(features - clusters.cluster_centers_[labels], axis=1)
    nearest = np.lexsort((distances, labels))
    return nearest[np.unique(labels[nearest], return_index=True)[1]]
