"""Read articles with summaries and texts with corrections; build pairs of texts."""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence

import numpy as np

from albert_tf.data.tables import Table
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.inputs import as_label, as_list, as_texts, check_integer, complete


def read_articles(
    path: str | os.PathLike, encoding: str | None = None, sheet: str | None = None
) -> tuple[list, list[str]]:
    """Read articles and their summaries.

    Args:
        path: path of a table, as for `read_labelled_texts`, such as LCSTS, NLPCC 2017
            and CSL. Its columns are `article` (or `text`, `content`, `abst`), in JSON
            a string or a list of sentences, and `summary` (or `summarization`,
            `title`).
        encoding, sheet: optional strings, as in `read_labelled_texts`.

    Returns:
        A list of articles and a list of summaries, for `AlbertSummarizer.fit`.

    Raises:
        FileNotFoundError: if the file does not exist.
        AlbertError: if the file has no articles, or a row has another form.

    Example:
    ```python
    articles, summaries = albert_tf.data.read_articles("train.jsonl")
    summarizer.fit(articles, summaries)
    ```
    """
    table = Table(path, None, encoding, sheet)
    table.find("article", "summary")
    (summaries,) = table.cells("summary")
    articles = table.column("article")
    for place, article in zip(table.places, articles, strict=True):
        if not article or not all(isinstance(x, str) for x in article):
            raise AlbertError(
                f"The article of {place} should be a string or a list of sentences. "
                f"Found: {str(article)[:80]!r}"
            )
    return articles, summaries


def read_spelling(
    path: str | os.PathLike, encoding: str | None = None, sheet: str | None = None
) -> tuple[list[str], list[str]]:
    """Read texts with spelling errors and their corrections, as of SIGHAN.

    Args:
        path: path of a table, as for `read_labelled_texts`. Its columns are
            `original_text` and `correct_text` (or `source` and `target`), or without
            names the misspelt and the correct text.
        encoding, sheet: optional strings, as in `read_labelled_texts`.

    Returns:
        Two lists of strings, for `AlbertSpellingCorrector.fit`.

    Raises:
        FileNotFoundError: if the file does not exist.
        AlbertError: if the file has no texts, a row has another form, or its two
            texts differ in length.

    Example:
    ```python
    corrector.fit(*albert_tf.data.read_spelling("train.tsv"))
    ```
    """
    table = Table(path, None, encoding, sheet)
    table.find("original", "correct")
    sources, targets = table.cells("original", "correct")
    for place, source, target in zip(table.places, sources, targets, strict=True):
        if len(source) != len(target):
            raise AlbertError(
                f"{place} has texts of {len(source)} and {len(target)} characters. "
                f"Expected the same length: {source[:50]!r}, {target[:50]!r}"
            )
    return sources, targets


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
    labels = [as_label(x) for x in complete(as_list(labels, "labels"), "labels")]
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
    same = classes[:, np.newaxis] == classes
    is_other_text = ~np.eye(len(texts), dtype=bool)
    chosen = [
        (i, random.choice(np.flatnonzero(allowed[i])), score)
        for _ in range(rounds)
        for i in range(len(texts))
        for allowed, score in ((same & is_other_text, 1.0), (~same, 0.0))
    ]
    first, second, scores = zip(*chosen, strict=True)
    pairs = [texts[i] for i in first], [texts[i] for i in second]
    return pairs, np.array(scores, "float32")
