"""Pairs of texts that a few labelled examples make."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from albert_tf_lite.errors import AlbertError


def contrastive_pairs(
    texts: Sequence[str],
    labels: Sequence[Hashable],
    rounds: int = 20,
    seed: int = 0,
) -> tuple[tuple[list[str], list[str]], np.ndarray]:
    """Pairs of alike and unlike texts, to train an embedder on a few examples.

    In each round every text meets one of its own class, with score 1, and one of
    another class, with score 0. Eight texts make 320 pairs in 20 rounds.

    Args:
        texts: list of strings.
        labels: the class of each text.
        rounds: int.
        seed: int.

    Returns:
        `(first, second)`, two lists of strings, and their scores, a float32 array:
        what `AlbertTextEmbedder.fit` takes.

    Raises:
        AlbertError: if there are not as many labels as texts, or fewer than two
            classes, or a class has one text only.

    Reference:
        [SetFit](https://arxiv.org/abs/2209.11055), section 3.
    """
    if len(texts) != len(labels):
        raise AlbertError(f"There are {len(texts)} texts, but {len(labels)} labels.")
    positions = {label: i for i, label in enumerate(dict.fromkeys(labels))}
    classes = np.array([positions[label] for label in labels])
    counts = np.bincount(classes, minlength=len(positions))
    if len(counts) < 2 or counts.min() < 2:
        raise AlbertError(
            "Pairs need two classes at least, of two texts at least each. Found: "
            f"{dict(zip(positions, counts.tolist(), strict=True))}"
        )
    random = np.random.default_rng(seed)
    own = classes[:, np.newaxis] == classes
    # Not with itself.
    kinds = ((own & ~np.eye(len(texts), dtype=bool), 1.0), (~own, 0.0))
    chosen = [
        (i, random.choice(np.flatnonzero(allowed[i])), score)
        for _ in range(rounds)
        for i in range(len(texts))
        for allowed, score in kinds
    ]
    first, second, scores = zip(*chosen, strict=True)
    pairs = tuple([texts[i] for i in part] for part in (first, second))
    return pairs, np.array(scores, "float32")
