"""Scores of each task, by scikit-learn, SciPy and rouge-score."""

from __future__ import annotations

import collections
import difflib
import re
import string
from collections.abc import Sequence
from typing import Any

import numpy as np

from albert_tf_lite.errors import AlbertError, import_extra
from albert_tf_lite.inputs import as_label, as_list, as_texts, class_positions, complete

# (start, end, label) in characters.
Span = tuple[int, int, str]
_HAN = "\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_TOKEN = re.compile(rf"[{_HAN}]|[^\W_{_HAN}]+")


def check_counts(**columns: Any) -> list[list]:
    """Return columns of examples as lists; raise if one is empty or shorter."""
    lists = {name: as_list(values, name) for name, values in columns.items()}
    counts = {name: len(values) for name, values in lists.items()}
    if len({0, *counts.values()}) != 2:
        raise AlbertError(f"Expected equally many examples, at least 1, not {counts}.")
    return [complete(values, name) for name, values in lists.items()]


def _labels(values):
    """Return labels, or rows of 0 and 1, as an array."""
    return np.asarray([as_label(x) if np.ndim(x) == 0 else x for x in values])


# === Classes ===


def classification_scores(truth: Any, predicted: Any) -> dict[str, float]:
    """Compute `accuracy`, `macro_f1` and `micro_f1` of classes, as ids or names.

    Classes that are neither true nor predicted do not count in `macro_f1`.
    """
    metrics = import_extra("sklearn.metrics")
    columns = check_counts(truth=truth, predicted=predicted)
    truth, predicted = map(_labels, columns)
    if (truth.dtype.kind == "U") != (predicted.dtype.kind == "U"):
        raise AlbertError(
            "`truth` and `predicted` should both be names, or both ids. Received: "
            f"{truth[:3].tolist()} and {predicted[:3].tolist()}"
        )
    scores = {"accuracy": float(metrics.accuracy_score(truth, predicted))}
    for average in ("macro", "micro"):
        f1 = metrics.f1_score(truth, predicted, average=average, zero_division=0)
        scores[f"{average}_f1"] = float(f1)
    return scores


def multi_label_scores(truth: Any, chosen: Any) -> dict[str, float]:
    """Compute `macro_f1`, `micro_f1` and `exact_match` of arrays of 0 and 1.

    Args:
        truth, chosen: arrays [examples, classes], the true and the predicted classes.
    """
    scores = classification_scores(truth, chosen)
    scores["exact_match"] = scores.pop("accuracy")
    return scores


def classification_report(
    truth: Any, predicted: Any, labels: Sequence[str]
) -> dict[str, Any]:
    """Compute precision, recall and F1 by class with scikit-learn.

    Args:
        truth, predicted: values, names or positions of `labels` [examples], as for
            `fit`, or arrays of 0 and 1 [examples, classes] if a text may have several
            classes.
        labels: list of all classes.

    Returns:
        A dict. For one class per text, it also has the `confusion_matrix` as lists of
        ints: one row per true class, one column per predicted class.
    """
    metrics = import_extra("sklearn.metrics")
    truth, predicted = check_counts(truth=truth, predicted=predicted)
    labels, ids = as_list(labels, "labels"), range(len(labels))
    if np.ndim(truth[0]):
        truth, predicted = np.asarray(truth), np.asarray(predicted)
    else:
        truth = class_positions(truth, labels, "truth")
        predicted = class_positions(predicted, labels, "predicted")
    report = metrics.classification_report(
        truth,
        predicted,
        labels=ids,
        target_names=list(map(str, labels)),
        zero_division=0,
        output_dict=True,
    )
    for row in report.values():
        if isinstance(row, dict):
            row["support"] = int(row["support"])
    if np.ndim(truth) == 1:
        matrix = metrics.confusion_matrix(truth, predicted, labels=ids)
        report["confusion_matrix"] = matrix.tolist()
    return report


def best_thresholds(truth: Any, probabilities: Any, default: float = 0.5) -> list:
    """Return the threshold of each class that has the best F1, `default` if absent.

    `truth` is 0 or 1, `probabilities` a float, both [examples, classes]. A threshold is
    in the middle between two probabilities.
    """
    curve = import_extra("sklearn.metrics").precision_recall_curve
    truth, probabilities = np.asarray(truth), np.asarray(probabilities, "float64")

    def best(column, values):
        if not column.any():
            return default
        precision, recall, thresholds = curve(column, values)
        # The last point of the curve has no threshold.
        sums = np.maximum(precision + recall, 1e-12)
        best = np.argmax((2 * precision * recall / sums)[:-1])
        below = values[values < thresholds[best]]
        return float((thresholds[best] + below.max(initial=0.0)) / 2)

    return [best(*columns) for columns in zip(truth.T, probabilities.T, strict=True)]


# === Numbers ===


def regression_scores(truth: Any, predicted: Any) -> dict[str, float]:
    """Compute `pearson`, `spearman` and `mse`, the scores of STS-B.

    The correlation with a constant is 0.

    Args:
        truth, predicted: float arrays [examples].

    Example:
    ```python
    regression_scores([0.0, 2.5, 5.0], regressor.predict((first, second)))
    ```
    """
    stats = import_extra("scipy.stats")
    columns = check_counts(truth=truth, predicted=predicted)
    truth, predicted = (np.ravel(x).astype("float64") for x in columns)
    constant = np.ptp(truth) == 0 or np.ptp(predicted) == 0
    return {
        "pearson": 0.0 if constant else float(stats.pearsonr(truth, predicted)[0]),
        "spearman": 0.0 if constant else float(stats.spearmanr(truth, predicted)[0]),
        "mse": float(np.mean((truth - predicted) ** 2)),
    }


# === Entities ===


def entity_scores(
    truth: Sequence[Sequence[Span]], predicted: Sequence[Sequence[Span]]
) -> dict[str, Any]:
    """Compute precision, recall and F1 of entities as CoNLL-2003 does.

    An entity is right if its start, end and label are right.

    Args:
        truth, predicted: a list of (start, end, label) for each text. Entities of a
            text must not overlap.

    Returns:
        A dict: `precision`, `recall`, `f1` (floats, over the entities of all types),
        `count` (int, true entities), and `types`, a dict by label of dicts with
        the same four.

    Raises:
        ImportError: if scikit-learn is not installed.
        AlbertError: if the numbers of texts differ or are 0.

    Example:
    ```python
    entity_scores(spans, tagger.predict(texts))["f1"]
    ```

    Reference:
        [CoNLL-2003](https://aclanthology.org/W03-0419), section 3.
    """
    metrics = import_extra("sklearn.metrics")
    truth, predicted = check_counts(truth=truth, predicted=predicted)
    true, found = (
        {(i, *place): label for i, row in enumerate(rows) for *place, label in row}
        for rows in (truth, predicted)
    )
    # The label of each place where an entity is or was found; "" where there is none.
    places = true.keys() | found.keys()
    labels = sorted({*true.values(), *found.values()})
    pair = [[row.get(place, "") for place in places] for row in (true, found)]

    def scores(chosen):
        if not chosen:
            return {"precision": 0.0, "recall": 0.0, "f1": 0.0, "count": 0}
        *values, _ = metrics.precision_recall_fscore_support(
            *pair, labels=chosen, average="micro", zero_division=0
        )
        named = zip(("precision", "recall", "f1"), map(float, values), strict=True)
        return {**dict(named), "count": sum(x in chosen for x in true.values())}

    return {**scores(labels), "types": {label: scores([label]) for label in labels}}


# === Answers, as SQuAD and CMRC 2018 define them ===

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


# === Spelling ===


def spelling_scores(
    sources: Sequence[str], targets: Sequence[str], predicted: Sequence[str]
) -> dict[str, float]:
    """Score detection and correction by sentence, as the SIGHAN bake-offs do.

    A sentence with errors is right if exactly its wrong characters were changed
    (detection) and the result is the target (correction). Precision compares these with
    the sentences without errors that were changed. (Many later papers count every
    changed sentence in the precision.)

    Args:
        sources: strings, the texts with errors.
        targets: strings, the right texts, of the same lengths.
        predicted: strings, the corrections of `sources` by a model.

    Returns:
        A dict of floats: `detection_accuracy`, `detection_precision`,
        `detection_recall`, `detection_f1`, the same for `correction`, and
        `false_positive_rate`, for the sentences without errors.

    Raises:
        ImportError: if scikit-learn is not installed.
        AlbertError: if the numbers of texts differ or are 0, or the lengths of a text
            differ.

    Example:
    ```python
    predicted = [found["target"] for found in corrector.correct(sources)]
    spelling_scores(sources, targets, predicted)["correction_f1"]
    ```

    Reference:
        [Tseng et al., 2015](https://aclanthology.org/W15-3106), section 4.
    """
    metrics = import_extra("sklearn.metrics")
    columns = check_counts(sources=sources, targets=targets, predicted=predicted)
    rows = list(zip(*map(as_texts, columns), strict=True))
    for i, row in enumerate(rows):
        if len(set(map(len, row))) > 1:
            raise AlbertError(f"The texts {i} differ in length: {row}")
    detected = [
        all((a != c) == (a != b) for a, b, c in zip(*row, strict=True)) for row in rows
    ]
    corrected = [p == t for _, t, p in rows]
    has_errors = np.array([s != t for s, t, _ in rows])
    found: dict[str, float] = {}
    for name, is_right in (("detection", detected), ("correction", corrected)):
        # A right sentence counts as its own class, a wrong one as the other class.
        *values, _ = metrics.precision_recall_fscore_support(
            has_errors, has_errors == is_right, average="binary", zero_division=0
        )
        kinds = ("accuracy", "precision", "recall", "f1")
        values = (np.mean(is_right), *values)
        found |= {f"{name}_{x}": float(y) for x, y in zip(kinds, values, strict=True)}
    wrongly_changed = [s != p for s, t, p in rows if s == t]
    return {**found, "false_positive_rate": float(np.mean(wrongly_changed or 0))}


# === Summaries ===


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
    columns = check_counts(summaries=summaries, references=references)
    summaries, references = map(as_texts, columns)
    kinds = {"rouge_1": "rouge1", "rouge_2": "rouge2", "rouge_l": "rougeL"}
    scorer = _scorer(kinds.values())
    rows = [scorer.score(*row) for row in zip(references, summaries, strict=True)]
    return {
        name: float(np.mean([row[kind].fmeasure for row in rows]))
        for name, kind in kinds.items()
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
    scorer, sentences = _scorer(["rouge1", "rouge2"]), as_texts(sentences)

    def value(chosen):
        text = "".join(sentences[i] for i in sorted(chosen))
        return sum(part.fmeasure for part in scorer.score(reference, text).values())

    chosen: set[int] = set()
    for _ in sentences[:most]:
        best = max(({*chosen, i} for i in range(len(sentences))), key=value)
        if value(best) <= value(chosen):
            break
        chosen = best
    return [int(i in chosen) for i in range(len(sentences))]


def _scorer(kinds):
    rouge_scorer = import_extra("rouge_score.rouge_scorer")
    return rouge_scorer.RougeScorer(list(kinds), tokenizer=_Characters())
