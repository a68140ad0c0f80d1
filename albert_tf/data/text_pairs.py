"""Read articles with summaries and texts with corrections; build pairs of texts."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Hashable, Sequence

import numpy as np

from albert_tf.data.reading import field, numbered_lines, read_json_records
from albert_tf_lite.errors import AlbertError


def read_articles(path: str | os.PathLike) -> tuple[list, list[str]]:
    """Read articles and their summaries.

    Args:
        path: path of a UTF-8 file with one JSON object per line (`.jsonl`) or a list of
            objects (`.json`), as of LCSTS, NLPCC 2017 and CSL. Each has an `article`
            (or `text`, `content`, `abst`), which is a string or a list of sentences,
            and a `summary` (or `summarization`, `title`).

    Returns:
        A list of articles and a list of summaries, for `AlbertSummarizer.fit`.

    Raises:
        FileNotFoundError: if the file does not exist.
        AlbertError: if the file has no articles, or an entry has another form.

    Example:
    ```python
    articles, summaries = albert_tf.data.read_articles("train.jsonl")
    summarizer.fit(articles, summaries)
    ```
    """
    articles, summaries = [], []
    for place, record in read_json_records(path):
        names = "article", "text", "content", "abst"
        article = field(record, names, str | list, place)
        summary = field(record, ("summary", "summarization", "title"), str, place)
        summaries.append(summary)
        if article == [] or not all(isinstance(x, str) for x in article):
            raise AlbertError(
                f"The article of {place} should be a string or a list of sentences. "
                f"Found: {str(article)[:80]!r}"
            )
        articles.append(article)
    if not articles:
        raise AlbertError(f"{path} has no articles.")
    return articles, summaries


def read_spelling(path: str | os.PathLike) -> tuple[list[str], list[str]]:
    """Read texts with spelling errors and their corrections, as of SIGHAN.

    Args:
        path: path of a UTF-8 file with the misspelt and the correct text on each line,
            separated by a tab, or a `.json` or `.jsonl` file: a list of objects or one
            object per line, with `original_text` and `correct_text` (or `source` and
            `target`).

    Returns:
        Two lists of strings, for `AlbertSpellingCorrector.fit`.

    Raises:
        FileNotFoundError: if the file does not exist.
        AlbertError: if the file has no texts, an entry has another form, or its two
            texts differ in length.

    Example:
    ```python
    corrector.fit(*albert_tf.data.read_spelling("train.tsv"))
    ```
    """
    is_json = pathlib.Path(path).suffix in (".json", ".jsonl")
    sources, targets = [], []
    for place, source, target in (_json_pairs if is_json else _tab_pairs)(path):
        if len(source) != len(target):
            raise AlbertError(
                f"{place} has texts of {len(source)} and {len(target)} characters. "
                f"Expected the same length: {source[:50]!r}, {target[:50]!r}"
            )
        sources.append(source)
        targets.append(target)
    if not sources:
        raise AlbertError(f"{path} has no texts.")
    return sources, targets


def _json_pairs(path):
    for place, record in read_json_records(path):
        source = field(record, ("original_text", "source"), str, place)
        yield place, source, field(record, ("correct_text", "target"), str, place)


def _tab_pairs(path):
    for place, line in numbered_lines(path):
        parts = line.split("\t")
        if len(parts) != 2:
            raise AlbertError(
                f"{place} has {len(parts)} columns. Expected the misspelt and the "
                f"correct text, separated by a tab: {line[:80]!r}"
            )
        yield place, *parts


def contrastive_pairs(
    texts: Sequence[str],
    labels: Sequence[Hashable],
    rounds: int = 20,
    seed: int = 0,
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
        AlbertError: if the numbers of labels and texts differ, or there are fewer than
            two classes, or a class has fewer than two texts.

    Example:
    ```python
    embedder.fit(*albert_tf.data.contrastive_pairs(texts, labels))
    ```

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
