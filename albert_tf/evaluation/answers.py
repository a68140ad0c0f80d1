"""Exact match and F1 of answers, as SQuAD and CMRC 2018 define them."""

from __future__ import annotations

import collections
import difflib
import re
import string
from collections.abc import Sequence

import numpy as np

from albert_tf_lite.errors import AlbertError

# The punctuation that CMRC 2018 removes. Its list has the ellipsis of two characters,
# which never equals a single character, so that "…" stays.
CMRC_PUNCTUATION = frozenset("-:_*^/\\~`+=，。：？！“”；’《》·、「」（）－～『』")
_HAN = re.compile("[\u4e00-\u9fa5]")
# The rules of the Penn Treebank for a text without Chinese.
_TREEBANK = re.compile(
    r"""(n't\b|'(?:s|m|d|ll|re|ve)\b|(?<!\w)'|'(?!\w)"""
    r"""|\.{2,}|\.\s*$|[,:](?!\d)|[][(){}<>"?!;@#$%&–—«»„‘])"""
    r"|\s+"
)
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)


def squad_scores(
    predictions: Sequence[str], answers: Sequence[Sequence[str]]
) -> dict[str, float]:
    """Compute exact match and F1 as the SQuAD scripts of v1.1 and v2.0 do.

    Text is lower-cased. English articles, ASCII punctuation and surplus spaces are
    removed. F1 compares bags of words. If there are several answers, the best counts.
    If there is none, only `""` is right.

    Args:
        predictions: list of strings. `""` means no answer.
        answers: list of lists of strings, the right answers. An empty list or `[""]`
            means that there is no answer.

    Returns:
        `exact_match` and `f1` in percent, and `total`, the number of questions. If
        some have no answer, also `answerable_exact_match`, `answerable_f1` and
        `unanswerable_exact_match`.

    Raises:
        AlbertError: if the numbers of predictions and answers differ or are 0.

    Example:

    >>> squad_scores(["the Yellow River"], [["Yellow river", "River"]])
    {'exact_match': 100.0, 'f1': 100.0, 'total': 1}

    Reference:
        [Rajpurkar et al., 2016](https://arxiv.org/abs/1606.05250),
        [Rajpurkar et al., 2018](https://arxiv.org/abs/1806.03822), and their
        `evaluate-v2.0.py`.
    """
    return answer_scores(predictions, answers, "squad")


def cmrc_scores(
    predictions: Sequence[str], answers: Sequence[Sequence[str]]
) -> dict[str, float]:
    """Compute exact match and F1 as the script of CMRC 2018 does.

    Text is lower-cased, and punctuation (`CMRC_PUNCTUATION`) is removed. F1 counts the
    longest common run of segments. A segment is a Chinese character or another word. If
    there are several answers, the best counts.

    Args, returns, raises: as `squad_scores`.

    Example:

    >>> cmrc_scores(["北京大学"], [["北京"]])["f1"]
    66.66666666666667

    Reference:
        [Cui et al., 2019](https://arxiv.org/abs/1810.07366), and their
        `cmrc2018_evaluate.py`.
    """
    return answer_scores(predictions, answers, "cmrc")


def answer_scores(
    predictions: Sequence[str], answers: Sequence[Sequence[str]], kind: str
) -> dict[str, float]:
    """Return `squad_scores` or `cmrc_scores`, for a `kind` of `"squad"` or `"cmrc"`."""
    scores = score_answers(predictions, answers, kind)
    result = _percent(scores, "exact_match", "f1")
    result["total"] = len(scores)
    has_answer = np.array([_right(texts) != [""] for texts in answers])
    if has_answer.any() and not has_answer.all():
        names = ("answerable_exact_match", "answerable_f1")
        result.update(_percent(scores[has_answer], *names))
        result.update(_percent(scores[~has_answer, :1], "unanswerable_exact_match"))
    return result


def score_answers(
    predictions: Sequence[str], answers: Sequence[Sequence[str]], kind: str
) -> np.ndarray:
    """Return exact match and F1 of each prediction, a float array [questions, 2]."""
    if len(predictions) != len(answers) or not len(answers):
        raise AlbertError(
            "There must be as many predictions as lists of answers, at least one. "
            f"Received: {len(predictions)} and {len(answers)}."
        )
    for position, texts in enumerate(answers):
        if isinstance(texts, str):
            raise AlbertError(
                "`answers` should hold a list of strings for each question. Element "
                f"{position} is {texts!r}."
            )
    if kind not in _KINDS:
        raise AlbertError(f"Unknown scores {kind!r}. Expected one of {list(_KINDS)}.")
    exact, f1 = _KINDS[kind]
    return np.array(
        [
            [max(score(x, given) for x in _right(texts)) for score in (exact, f1)]
            for given, texts in zip(predictions, answers, strict=True)
        ]
    )


def kind_of_answers(texts: Sequence[str]) -> str:
    """Return `"cmrc"` for texts whose letters are mostly Chinese, else `"squad"`."""
    letters = "".join(filter(str.isalpha, "".join(texts)))
    return "cmrc" if 2 * len(_HAN.findall(letters)) > len(letters) else "squad"


def best_null_threshold(
    margins: np.ndarray, answered: np.ndarray, unanswered: np.ndarray
) -> float:
    """Choose the threshold with the best mean score, the lowest if several are equal.

    A question is answered if its margin, the score of no answer minus that of the best
    answer, is at most the threshold. `answered` and `unanswered` are the scores of each
    question in both cases.
    """
    gains = answered - unanswered
    values, group = np.unique(margins, return_inverse=True)
    totals = np.cumsum(np.bincount(group, weights=gains))
    best = totals.argmax()
    if totals[best] <= 0:
        return float(values[0] - 1)
    bounds = np.append(values, values[-1] + 2)
    return float((bounds[best] + bounds[best + 1]) / 2)


def _right(texts):
    return [text for text in texts if text] or [""]


def _percent(scores, *names):
    return dict(zip(names, map(float, 100 * scores.mean(axis=0)), strict=True))


def _squad_words(text):
    text = text.lower().translate(_WITHOUT_PUNCTUATION)
    return _ARTICLES.sub(" ", text).split()


def _squad_exact(answer, given):
    return float(_squad_words(answer) == _squad_words(given))


def _squad_f1(answer, given):
    answer, given = (collections.Counter(_squad_words(x)) for x in (answer, given))
    if not answer or not given:
        return float(answer == given)
    return _f1((answer & given).total(), answer.total(), given.total())


def _cmrc_exact(answer, given):
    return float(_without_punctuation(answer) == _without_punctuation(given))


def _cmrc_f1(answer, given):
    answer, given = _mixed_segments(answer), _mixed_segments(given)
    if not answer or not given:
        return float(answer == given)
    matcher = difflib.SequenceMatcher(None, answer, given, autojunk=False)
    return _f1(matcher.find_longest_match().size, len(answer), len(given))


def _f1(common, answer, given):
    return 2 * common / (answer + given)


def _without_punctuation(text):
    return "".join(x for x in text.lower().strip() if x not in CMRC_PUNCTUATION)


def _mixed_segments(text):
    """Split a text into Chinese characters and the words between them."""
    segments = []
    # Chinese characters stand at odd positions.
    for part in re.split(f"({_HAN.pattern})", _without_punctuation(text)):
        found = [part] if _HAN.match(part) else _TREEBANK.split(part)
        segments += [segment.strip() for segment in found if segment]
    return [segment for segment in segments if segment]


_KINDS = {"squad": (_squad_exact, _squad_f1), "cmrc": (_cmrc_exact, _cmrc_f1)}
