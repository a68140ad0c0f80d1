"""Reading articles and their summaries."""

from __future__ import annotations

import os
import pathlib

from albert_tf.data.json_files import read_json_records
from albert_tf_lite.errors import AlbertError

# LCSTS, NLPCC 2017 and CSL among others.
_ARTICLE_KEYS = ("article", "text", "content", "abst")
_SUMMARY_KEYS = ("summary", "summarization", "title")


def read_articles(path: str | os.PathLike) -> tuple[list, list[str]]:
    """Read articles and the summaries that someone wrote.

    Args:
        path: path of a file in UTF-8, of lines of JSON objects (`.jsonl`), or a list of
            them (`.json`), with an `article` (or `text`, `content`, `abst`), which is a
            string or a list of its sentences, and a `summary` (or `summarization`,
            `title`).

    Returns:
        A list of articles and a list of summaries: what `AlbertSummarizer.fit` takes.

    Raises:
        FileNotFoundError: if there is no such file.
        AlbertError: if it holds no articles, or an entry is not as above. Says which.
    """
    path = pathlib.Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    rows = [_row(entry, record) for entry, record in read_json_records(path)]
    if not rows:
        raise AlbertError(f"{path} holds no articles.")
    articles, summaries = map(list, zip(*rows, strict=True))
    return articles, summaries


def _row(entry, record):
    values = []
    for keys in (_ARTICLE_KEYS, _SUMMARY_KEYS):
        fields = record if isinstance(record, dict) else {}
        found = next((fields[key] for key in keys if key in fields), None)
        if found is None:
            raise AlbertError(
                f"{entry} should be an object with one of the fields {keys}. Found: "
                f"{str(record)[:80]!r}"
            )
        values.append(found)
    article, summary = values
    sentences = article if isinstance(article, list) else [article]
    if not sentences or not all(isinstance(x, str) for x in [*sentences, summary]):
        raise AlbertError(
            f"{entry} should have a string, or a list of sentences, for article and a "
            f"string for summary. Found: {str(record)[:80]!r}"
        )
    return article, summary
