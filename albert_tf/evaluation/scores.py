"""Scores of each task, by scikit-learn, SciPy, seqeval and rouge-score."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from albert_tf_lite.errors import AlbertError, import_extra

# (start, end, label) in characters.
Span = tuple[int, int, str]
_HAN = "\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_TOKEN = re.compile(rf"[{_HAN}]|[^\W_{_HAN}]+")


# === One class per text ===


def classification_scores(truth: Sequence, predicted: Sequence) -> dict[str, float]:
    """Compute `accuracy`, `macro_f1` and `micro_f1` of classes, as ids or names.

    Classes that are neither true nor predicted do not count in `macro_f1`.
    """
    metrics = import_extra("sklearn.metrics")
    return {
        "accuracy": float(metrics.accuracy_score(truth, predicted)),
        "macro_f1": _f1(truth, predicted, "macro"),
        "micro_f1": _f1(truth, predicted, "micro"),
    }


def classification_report(
    truth: Sequence[int],
    predicted: Sequence[int],
    labels: Sequence[str],
    as_text: bool = False,
) -> Any:
    """Compute precision, recall and F1 by class with scikit-learn.

    Args:
        truth, predicted: int arrays [examples], positions in `labels`.
        labels: the names of all classes.
        as_text: bool. Return a table as a string.

    Returns:
        A string, or a dict that also contains the `confusion_matrix` as lists of ints:
        one row per true class, one column per predicted class.
    """
    ids = range(len(labels))
    report = _report(truth, predicted, labels, as_text, labels=ids)
    if not as_text:
        metrics = import_extra("sklearn.metrics")
        matrix = metrics.confusion_matrix(truth, predicted, labels=ids)
        report["confusion_matrix"] = matrix.tolist()
    return report


def level_scores(
    truth: Sequence[int], predicted: Sequence[int], labels: Sequence[str]
) -> list[dict[str, float]]:
    """Score hierarchical classes, such as "体育/足球", at each of their levels.

    Args:
        truth, predicted, labels: as for `classification_report`.

    Returns:
        A list of dicts: `level` (1 counts the part before the first "/" only) and
        `classification_scores`. Empty if no label has levels.
    """
    parts = [label.split("/") for label in labels]
    depth = max(map(len, parts), default=0)
    scores = []
    for level in range(1, depth + 1 if depth > 1 else 1):
        names = ["/".join(part[:level]) for part in parts]
        pair = ([names[i] for i in ids] for ids in (truth, predicted))
        scores.append({"level": level, **classification_scores(*pair)})
    return scores


# === Any number of classes per text ===


def multi_label_scores(truth: Any, chosen: Any) -> dict[str, float]:
    """Compute `micro_f1`, `macro_f1` and `exact_match` of arrays of 0 and 1.

    Args:
        truth, chosen: arrays [examples, classes], the true and the predicted classes.
    """
    metrics = import_extra("sklearn.metrics")
    return {
        "micro_f1": _f1(truth, chosen, "micro"),
        "macro_f1": _f1(truth, chosen, "macro"),
        "exact_match": float(metrics.accuracy_score(truth, chosen)),
    }


def multi_label_report(
    truth: Any, chosen: Any, labels: Sequence[str], as_text: bool = False
) -> Any:
    """Compute the `classification_report` of arrays of 0 and 1 [examples, classes]."""
    return _report(truth, chosen, labels, as_text)


def best_thresholds(truth: Any, probabilities: Any, default: float = 0.5) -> list:
    """Choose the threshold of each class that has the best F1.

    Args:
        truth: array of 0 and 1 [examples, classes].
        probabilities: float array [examples, classes].
        default: float, for classes without examples.

    Returns:
        A list of floats, each in the middle between the lowest probability above the
        threshold and the highest below it.
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


def _f1(truth, predicted, average):
    f1_score = import_extra("sklearn.metrics").f1_score
    return float(f1_score(truth, predicted, average=average, zero_division=0))


def _report(truth, predicted, names, as_text, **kwargs):
    return import_extra("sklearn.metrics").classification_report(
        truth,
        predicted,
        target_names=names,
        zero_division=0,
        digits=4,
        output_dict=not as_text,
        **kwargs,
    )


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
    truth, predicted = (np.ravel(x).astype("float64") for x in (truth, predicted))
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
    """Compute precision, recall and F1 of entities as CoNLL-2003 does, with seqeval.

    An entity is right if its start, end and label are right.

    Args:
        truth, predicted: a list of (start, end, label) for each text. Entities of a
            text must not overlap.

    Returns:
        A dict: `precision`, `recall`, `f1` (floats, over the entities of all types),
        `count` (int, true entities), and `types`, a dict by label of dicts with
        the same four.

    Raises:
        ImportError: if seqeval is not installed.
        AlbertError: if the two lists have different lengths.

    Example:
    ```python
    entity_scores(spans, tagger.predict(texts))["f1"]
    ```

    Reference:
        [CoNLL-2003](https://aclanthology.org/W03-0419), section 3; seqeval.
    """
    if len(truth) != len(predicted):
        raise AlbertError(
            "`truth` and `predicted` must have a list of spans for each text. Received "
            f"{len(truth)} and {len(predicted)}."
        )
    seqeval = import_extra("seqeval.metrics")
    # seqeval fails if there are no entities.
    if not any(map(any, (truth, predicted))):
        return {**_entity_row({}), "types": {}}
    rows = zip(truth, predicted, strict=True)
    tagged = [[_tags(spans, pair) for spans in pair] for pair in rows]
    report = seqeval.classification_report(
        *map(list, zip(*tagged, strict=True)), output_dict=True, zero_division=0
    )
    averages = {
        name: report.pop(f"{name} avg") for name in ("micro", "macro", "weighted")
    }
    types = {label: _entity_row(values) for label, values in sorted(report.items())}
    return {**_entity_row(averages["micro"]), "types": types}


def _entity_row(values):
    return {
        "precision": float(values.get("precision", 0.0)),
        "recall": float(values.get("recall", 0.0)),
        "f1": float(values.get("f1-score", 0.0)),
        "count": int(values.get("support", 0)),
    }


def _tags(spans, pair):
    """The BIO tag of each character, up to the last entity of the pair."""
    tags = ["O"] * max((end for spans in pair for _, end, _ in spans), default=0)
    for start, end, label in spans:
        tags[start:end] = [f"B-{label}"] + [f"I-{label}"] * (end - start - 1)
    return tags


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
        AlbertError: if the numbers of texts differ, or the lengths of a text.

    Example:
    ```python
    predicted = [found["target"] for found in corrector.correct(sources)]
    spelling_scores(sources, targets, predicted)["correction_f1"]
    ```

    Reference:
        [Tseng et al., 2015](https://aclanthology.org/W15-3106), section 4.
    """
    if not len(sources) == len(targets) == len(predicted):
        raise AlbertError(
            "There should be as many sources, targets and predicted texts. Received "
            f"{len(sources)}, {len(targets)} and {len(predicted)}."
        )
    rows = list(zip(sources, targets, predicted, strict=True))
    for i, row in enumerate(rows):
        if len(set(map(len, row))) > 1:
            raise AlbertError(f"The texts {i} differ in length: {row}")
    detected = [_changed(s, p) == _changed(s, t) for s, t, p in rows]
    corrected = [p == t for _, t, p in rows]
    has_errors = np.array([s != t for s, t, _ in rows])
    wrongly_changed = [s != p for s, t, p in rows if s == t]
    return {
        **_spelling_row("detection", has_errors, detected),
        **_spelling_row("correction", has_errors, corrected),
        "false_positive_rate": float(np.mean(wrongly_changed or 0)),
    }


def _changed(source, other):
    """The positions at which two texts differ."""
    pairs = enumerate(zip(source, other, strict=True))
    return {i for i, (first, second) in pairs if first != second}


def _spelling_row(name, has_errors, is_right):
    metrics = import_extra("sklearn.metrics")
    # A right sentence counts as its own class, a wrong one as the other class.
    given = has_errors == np.array(is_right)
    scores = metrics.precision_recall_fscore_support(
        has_errors, given, average="binary", zero_division=0
    )
    row = {"accuracy": np.mean(is_right)}
    row |= zip(("precision", "recall", "f1"), scores[:3], strict=True)
    return {f"{name}_{score}": float(value) for score, value in row.items()}


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
    if len(summaries) != len(references) or not len(references):
        raise AlbertError(
            "There must be as many summaries as references, one at least. Received "
            f"{len(summaries)} and {len(references)}."
        )
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
    scorer = _scorer(["rouge1", "rouge2"])
    chosen: set[int] = set()
    best = 0.0
    for _ in range(most):
        scores = {}
        for i in set(range(len(sentences))) - chosen:
            text = "".join(sentences[j] for j in sorted({*chosen, i}))
            found = scorer.score(reference, text)
            scores[i] = sum(part.fmeasure for part in found.values())
        first = max(scores, key=scores.__getitem__, default=None)
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
