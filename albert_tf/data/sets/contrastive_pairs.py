"""Pairs of texts with a score, drawn from a few labelled texts."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from albert_tf_lite.errors import AlbertError
from albert_tf_lite.inputs import as_label, as_list, as_texts, check_integer, complete


def contrastive_pairs(
    texts: Sequence[str], labels: Sequence[Hashable], rounds: int = 20, seed: int = 0
) -> tuple[tuple[list[str], list[str]], np.ndarray]:
    """Build pairs of texts, to train an embedder on a few labelled examples.

    In each round every text is paired with one of the same class (score 1) and one of
    another class (score 0). Eight texts make 320 pairs in 20 rounds.

    Args:
        texts: list of strings.
        labels: the class of each text.
        rounds: int. Number of rounds.
        seed: int. Seed of the draws.

    Returns:
        `(first, second)`, two lists of strings, and their scores, a float32 array, for
        `AlbertTextEmbedder.fit`.

    Raises:
        AlbertError: if there are fewer than two classes, or a class has fewer than two
            texts.

    Example:
    ```python
    embedder.fit(*albert_tf.data.contrastive_pairs(texts, labels))
    ```

    Reference:
        [SetFit](https://arxiv.org/abs/2209.11055), section 3.
    """
    rounds = check_integer("rounds", rounds)
    texts = as_texts(texts)
    given_labels = complete(as_list(labels, "labels"), "labels")
    labels = [as_label(label) for label in given_labels]
    if len(texts) != len(labels):
        raise AlbertError(
            f"Expected one label per text. Received {len(texts)} texts and "
            f"{len(labels)} labels."
        )
    positions = {label: i for i, label in enumerate(dict.fromkeys(labels))}
    classes = np.array([positions[label] for label in labels])
    counts = np.bincount(classes, minlength=len(positions))
    if len(counts) < 2 or counts.min() < 2:
        raise AlbertError(
            "Expected two classes or more, with two texts or more each. Found: "
            f"{dict(zip(positions, counts.tolist(), strict=True))}"
        )
    random = np.random.default_rng(seed)
    is_other_text = ~np.eye(len(texts), dtype=bool)
    is_same = classes[:, np.newaxis] == classes
    partners = {1.0: is_same & is_other_text, 0.0: ~is_same}
    first, second, scores = [], [], []
    for _ in range(rounds):
        for position, text in enumerate(texts):
            for score, are_allowed in partners.items():
                partner = random.choice(np.flatnonzero(are_allowed[position]))
                first.append(text)
                second.append(texts[partner])
                scores.append(score)
    return (first, second), np.array(scores, "float32")
