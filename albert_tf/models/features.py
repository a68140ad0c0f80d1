"""What a classifier makes of texts, for programs that are no neural networks."""

from __future__ import annotations

from typing import Any

import numpy as np

from albert_tf.models.pass_through import pass_through
from albert_tf.preprocessing.examples import count_examples
from albert_tf.preprocessing.texts import Texts
from albert_tf_lite.errors import AlbertError


def text_features(
    classifier: Any, x: Texts, batch_size: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """What the head of a classifier reads of each text, and its probabilities.

    Args:
        classifier: an `AlbertTextClassifier`.
        x: list of strings, or the tuple of two for pairs, one example at least.
        batch_size: optional int, more than 32 by default where texts are short.

    Returns:
        `(features, probabilities)`, float32 arrays [examples, hidden_dim] and
        [examples, classes].

    Raises:
        AlbertError: if there are no texts.

    Example:
    ```python
    features, probabilities = albert_tf.models.text_features(classifier, texts)
    albert_tf.evaluation.next_to_label(probabilities, features)
    ```
    """
    if not count_examples(x):
        raise AlbertError("`x` should have one text at least. It is empty.")
    head = classifier.output_dense
    grouped = classifier._grouped(x, batch_size=batch_size)
    features = pass_through(classifier, head).predict(grouped.dataset, verbose=0)
    probabilities = classifier.answers(head(features))["probabilities"]
    # Half precision is not for those who read this.
    found = (np.asarray(x, "float32") for x in (features, probabilities))
    return grouped.restore(tuple(found))
