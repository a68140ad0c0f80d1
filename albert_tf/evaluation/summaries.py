"""Scores and baselines of summaries."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from albert_tf_lite.errors import AlbertError, import_extra

_HAN = "\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_TOKEN = re.compile(rf"[{_HAN}]|[^\W_{_HAN}]+")
_KINDS = {"rouge_1": "rouge1", "rouge_2": "rouge2", "rouge_l": "rougeL"}


class _Characters:
    """A tokenizer of Chinese characters and other words for rouge-score."""

    def tokenize(self, text):
        return _TOKEN.findall(text.lower())


def rouge_scores(
    summaries: Sequence[str], references: Sequence[str]
) -> dict[str, float]:
    """Compute ROUGE F1 with rouge-score, by Chinese character and by other word.

    Punctuation does not count.

    Args:
        summaries: strings, the summaries of a model.
        references: strings, the right summaries.

    Returns:
        `rouge_1`, `rouge_2` (common characters, and pairs of them) and `rouge_l`
        (longest common subsequence), the means over all summaries.

    Raises:
        AlbertError: if the numbers of summaries and references differ or are 0.
        ImportError: if rouge-score is not installed.

    Reference:
        [Lin, 2004](https://aclanthology.org/W04-1013).
    """
    if len(summaries) != len(references) or not len(references):
        raise AlbertError(
            "There must be as many summaries as references, one at least. Received "
            f"{len(summaries)} and {len(references)}."
        )
    scorer = _scorer(_KINDS.values())
    rows = [scorer.score(*row) for row in zip(references, summaries, strict=True)]
    return {
        name: float(np.mean([row[kind].fmeasure for row in rows]))
        for name, kind in _KINDS.items()
    }


def oracle_labels(sentences: Sequence[str], reference: str, most: int = 3) -> list[int]:
    """Label the sentences that together are closest to a written summary.

    Sentences are added one by one, each time the one that raises the sum of ROUGE-1 and
    ROUGE-2 F1 most, until none raises it.

    Args:
        sentences: strings, the article.
        reference: string, its summary.
        most: int. Maximum number of sentences.

    Returns:
        A list of 1 and 0, one per sentence.

    Reference:
        [Liu and Lapata, 2019](https://arxiv.org/abs/1908.08345), section 4.1.
    """
    scorer = _scorer(["rouge1", "rouge2"])
    chosen, best = set(), 0.0
    for _ in range(most):
        scores = {}
        for i in set(range(len(sentences))) - chosen:
            text = "".join(sentences[j] for j in sorted({*chosen, i}))
            found = scorer.score(reference, text)
            scores[i] = sum(part.fmeasure for part in found.values())
        first = max(scores, key=scores.get, default=None)
        if first is None or scores[first] <= best:
            break
        chosen.add(first)
        best = scores[first]
    return [int(i in chosen) for i in range(len(sentences))]


def centroid_scores(sentences: Sequence[str]) -> np.ndarray:
    """Score sentences by their distance to the centre of the article, a baseline.

    The score is the cosine of the TF-IDF of a sentence (one and two characters, over
    the sentences of the article) and the mean of all sentences.

    Args:
        sentences: strings, the article.

    Returns:
        A float array [sentences], 0 for a sentence without characters.

    Reference:
        [Radev et al., 2004](https://arxiv.org/abs/cs/0005020), with cosines.
    """
    text = import_extra("sklearn.feature_extraction.text")
    tokens = [_Characters().tokenize(sentence) for sentence in sentences]
    if not any(tokens):
        return np.zeros(len(sentences))
    vectorizer = text.TfidfVectorizer(analyzer=_one_and_two)
    # Rows have length 1.
    vectors = vectorizer.fit_transform(tokens).toarray()
    middle = vectors.mean(axis=0)
    return vectors @ middle / np.linalg.norm(middle)


def _one_and_two(tokens):
    return [*tokens, *map(" ".join, zip(tokens[:-1], tokens[1:], strict=True))]


def _scorer(kinds):
    rouge_scorer = import_extra("rouge_score.rouge_scorer")
    return rouge_scorer.RougeScorer(list(kinds), tokenizer=_Characters())
