"""Scores of answers to questions: those of SQuAD and of CMRC 2018."""

import collections
import difflib
import re
import string
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from albert_tf.evaluation.scores import check_counts
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.inputs import as_texts

# The punctuation that CMRC 2018 removes. Its list has the ellipsis of two characters,
# which never equals a single character, so that "…" stays.
CMRC_PUNCTUATION = frozenset("-:_*^/\\~`+=，。：？！“”；’《》·、「」（）－～『』")
_CMRC_HAN = re.compile("([\u4e00-\u9fa5])")
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
    return _answer_scores(predictions, answers, "squad")


def cmrc_scores(
    predictions: Sequence[str], answers: Sequence[Sequence[str]]
) -> dict[str, float]:
    """Compute exact match and F1 as the script of CMRC 2018 does.

    Text is lower-cased, and punctuation (`CMRC_PUNCTUATION`) is removed. F1 counts the
    longest common run of segments. A segment is a Chinese character or another word. If
    there are several answers, the best counts.

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

    >>> cmrc_scores(["北京大学"], [["北京"]])["f1"]
    66.66...

    Reference:
        [Cui et al., 2019](https://arxiv.org/abs/1810.07366), and their
        `cmrc2018_evaluate.py`.
    """
    return _answer_scores(predictions, answers, "cmrc")


def _answer_scores(
    predictions: Sequence[str], answers: Sequence[Sequence[str]], kind: str
) -> dict[str, float]:
    """Return the means of `score_answers`."""
    predictions, answers = check_counts(predictions=predictions, answers=answers)
    scores = 100 * score_answers(predictions, answers, kind)
    exact, f1 = scores[:, 0], scores[:, 1]
    groups = {"exact_match": exact, "f1": f1}
    has_answer = np.array([any(texts) for texts in answers])
    if has_answer.any() and not has_answer.all():
        groups["answerable_exact_match"] = exact[has_answer]
        groups["answerable_f1"] = f1[has_answer]
        groups["unanswerable_exact_match"] = exact[~has_answer]
    means = {name: float(values.mean()) for name, values in groups.items()}
    return {**means, "total": len(exact)}


def score_answers(
    predictions: Sequence[str], answers: Sequence[Sequence[str]], kind: str
) -> np.ndarray:
    """Return exact match and F1 of each prediction, a float array [questions, 2]."""
    predictions, answers = check_counts(predictions=predictions, answers=answers)
    if isinstance(answers[0], str):
        raise AlbertError(
            "`answers` should hold a list of strings for each question. The first "
            f"element is {answers[0]!r}."
        )
    score = {"squad": _squad, "cmrc": _cmrc}[kind]
    best = []
    for given, texts in zip(as_texts(predictions), answers, strict=True):
        right = [text for text in as_texts(texts) if text] or [""]
        best.append(np.max([score(text, given) for text in right], axis=0))
    return np.array(best)


def kind_of_answers(texts: Sequence[str]) -> str:
    """Return `"cmrc"` for texts whose letters are mostly Chinese, else `"squad"`."""
    letters = [character for character in "".join(texts) if character.isalpha()]
    chinese = [letter for letter in letters if _CMRC_HAN.match(letter)]
    return "cmrc" if 2 * len(chinese) > len(letters) else "squad"


def best_null_threshold(
    margins: np.ndarray, answered: np.ndarray, unanswered: np.ndarray
) -> float:
    """Choose the threshold with the best mean score, the lowest if several are equal.

    A question is answered if its margin, the score of no answer minus that of the best
    answer, is at most the threshold. `answered` and `unanswered` are the scores of each
    question in both cases.
    """
    values, group = np.unique(margins, return_inverse=True)
    gains = np.bincount(group, weights=answered - unanswered)
    bounds = [values[0] - 1, *(values[:-1] + values[1:]) / 2, values[-1] + 1]
    return float(bounds[np.append(0, np.cumsum(gains)).argmax()])


class _Score(NamedTuple):
    exact_match: bool
    f1: float


def _squad(right: str, given: str) -> _Score:
    """Score an answer by words, as the SQuAD scripts do."""
    right_words, words = _words(right), _words(given)
    common = collections.Counter(right_words) & collections.Counter(words)
    return _Score(right_words == words, _f1(common.total(), right_words, words))


def _words(text: str) -> list[str]:
    """Return the words of a text without punctuation and articles."""
    plain = text.lower().translate(_WITHOUT_PUNCTUATION)
    return _ARTICLES.sub(" ", plain).split()


def _cmrc(right: str, given: str) -> _Score:
    """Score an answer by segments, as the script of CMRC 2018 does."""
    right, given = _without_cmrc_punctuation(right), _without_cmrc_punctuation(given)
    right_segments, segments = _mixed_segments(right), _mixed_segments(given)
    matcher = difflib.SequenceMatcher(None, right_segments, segments, autojunk=False)
    common = matcher.find_longest_match().size
    return _Score(right == given, _f1(common, right_segments, segments))


def _without_cmrc_punctuation(text: str) -> str:
    kept = [x for x in text.lower().strip() if x not in CMRC_PUNCTUATION]
    return "".join(kept)


def _f1(common: int, right: list[str], given: list[str]) -> float:
    """Return the F1 of an answer that has a number of words of the right one."""
    if not right or not given:
        return float(right == given)
    return 2 * common / (len(right) + len(given))


def _mixed_segments(text: str) -> list[str]:
    """Split a text into Chinese characters and the words between them."""
    segments: list[str | None] = []
    for run in _CMRC_HAN.split(text):
        segments += [run] if _CMRC_HAN.match(run) else _TREEBANK.split(run)
    return [segment.strip() for segment in segments if segment and segment.strip()]
