"""Read texts with another text beside each: summaries of articles, and corrections."""

from __future__ import annotations

import os

from albert_tf.data.files.tables import read_table
from albert_tf_lite.errors import AlbertError


def read_articles(
    path: str | os.PathLike, encoding: str | None = None, sheet: str | None = None
) -> tuple[list, list[str]]:
    """Read articles and their summaries.

    Args:
        path: path of a table in any format of `read_labelled_texts`, such as LCSTS,
            NLPCC 2017 and CSL. Its columns are `article` (or `text`, `content`,
            `abst`), in JSON a string or a list of sentences, and `summary` (or
            `summarization`, `title`).
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
    table = read_table(path, encoding, sheet)
    table.find("article", "summary")
    summaries = table.strings("summary")
    articles = table.column("article")
    for place, article in zip(table.places, articles, strict=True):
        is_text = isinstance(article, (str, list)) and bool(article)
        if not is_text or not all(isinstance(part, str) for part in article):
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
        path: path of a table in any format of `read_labelled_texts`. Its columns are
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
    table = read_table(path, encoding, sheet)
    table.find("original", "correct")
    sources, targets = table.strings("original"), table.strings("correct")
    for place, source, target in zip(table.places, sources, targets, strict=True):
        if len(source) != len(target):
            raise AlbertError(
                f"{place} has texts of {len(source)} and {len(target)} characters. "
                f"Expected the same length: {source[:50]!r}, {target[:50]!r}"
            )
    return sources, targets
