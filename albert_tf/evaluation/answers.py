"""Scores of answers to questions: those of SQuAD and of CMRC 2018."""

import collections
import difflib
import re
import string
from collections.abc import Sequence

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

    Args, returns, raises: as `squad_scores`.

    Example:

    >>> cmrc_scores(["北京大学"], [["北京"]])["f1"]
    66.66...

    Reference:
        [Cui et al., 2019](https://arxiv.org/abs/1810.07366), and their
        `cmrc2018_evaluate.py`.
    """
    return _answer_scores(predictions, answers, "cmrc")


def _answer_scores(predictions, answers, kind):
    predictions, answers = check_counts(predictions=predictions, answers=answers)
    exact, f1 = 100 * score_answers(predictions, answers, kind).T
    parts = {"exact_match": exact, "f1": f1}
    has_answer = np.array([any(texts) for texts in answers])
    if has_answer.any() and not has_answer.all():
        parts["answerable_exact_match"] = exact[has_answer]
        parts["answerable_f1"] = f1[has_answer]
        parts["unanswerable_exact_match"] = exact[~has_answer]
    means = {name: float(values.mean()) for name, values in parts.items()}
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
    rows = []
    for given, texts in zip(as_texts(predictions), answers, strict=True):
        texts = [text for text in as_texts(texts) if text] or [""]
        rows.append(np.max([score(text, given) for text in texts], axis=0))
    return np.array(rows)


def kind_of_answers(texts: Sequence[str]) -> str:
    """Return `"cmrc"` for texts whose letters are mostly Chinese, else `"squad"`."""
    letters = "".join(filter(str.isalpha, "".join(texts)))
    return "cmrc" if 2 * len(_CMRC_HAN.findall(letters)) > len(letters) else "squad"


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


def _squad(*texts):
    texts = (text.lower().translate(_WITHOUT_PUNCTUATION) for text in texts)
    answer, given = (_ARTICLES.sub(" ", text).split() for text in texts)
    common = collections.Counter(answer) & collections.Counter(given)
    return answer == given, _f1(common.total(), answer, given)


def _cmrc(*texts):
    texts = [
        "".join(x for x in text.lower().strip() if x not in CMRC_PUNCTUATION)
        for text in texts
    ]
    answer, given = map(_mixed_segments, texts)
    matcher = difflib.SequenceMatcher(None, answer, given, autojunk=False)
    common = matcher.find_longest_match().size
    return texts[0] == texts[1], _f1(common, answer, given)


def _f1(common, answer, given):
    if not answer or not given:
        return float(answer == given)
    return 2 * common / (len(answer) + len(given))


def _mixed_segments(text):
    """Split a text into Chinese characters and the words between them."""
    segments = []
    for part in _CMRC_HAN.split(text):
        segments += [part] if _CMRC_HAN.match(part) else _TREEBANK.split(part)
    return [segment.strip() for segment in segments if segment and segment.strip()]
