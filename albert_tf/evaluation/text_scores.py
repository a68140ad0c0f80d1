"""Scores of corrected sentences and of summaries."""

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from albert_tf.evaluation.scores import check_counts
from albert_tf.extras import import_extra
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.inputs import as_texts

_HAN = "\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_TOKEN = re.compile(rf"[{_HAN}]|[^\W_{_HAN}]+")


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
    predicted = [answer["target"] for answer in corrector.correct(sources)]
    spelling_scores(sources, targets, predicted)["correction_f1"]
    ```

    Reference:
        [Tseng et al., 2015](https://aclanthology.org/W15-3106), section 4.
    """
    metrics = import_extra("sklearn.metrics")
    columns = check_counts(sources=sources, targets=targets, predicted=predicted)
    texts = [_Correction(*row) for row in zip(*map(as_texts, columns), strict=True)]
    for i, text in enumerate(texts):
        if len(set(map(len, text))) > 1:
            raise AlbertError(f"The texts {i} differ in length: {tuple(text)}")
    has_errors = np.array([text.source != text.target for text in texts])
    detected = np.array([text.is_detected for text in texts])
    corrected = np.array([text.predicted == text.target for text in texts])
    scores: dict[str, float] = {}
    for name, is_right in (("detection", detected), ("correction", corrected)):
        # A right sentence counts as its own class, a wrong one as the other class.
        precision, recall, f1, _ = metrics.precision_recall_fscore_support(
            has_errors, has_errors == is_right, average="binary", zero_division=0
        )
        scores[f"{name}_accuracy"] = float(np.mean(is_right))
        scores[f"{name}_precision"] = float(precision)
        scores[f"{name}_recall"] = float(recall)
        scores[f"{name}_f1"] = float(f1)
    changed = [text.source != text.predicted for text in texts]
    wrongly_changed = np.array(changed)[~has_errors]
    rate = np.mean(wrongly_changed) if wrongly_changed.size else 0.0
    return {**scores, "false_positive_rate": float(rate)}


class _Correction(NamedTuple):
    """A text with errors, the right one, and that of a model."""

    source: str
    target: str
    predicted: str

    @property
    def is_detected(self) -> bool:
        """True if exactly the wrong characters were changed."""
        rows = zip(self.source, self.target, self.predicted, strict=True)
        return all((old != new) == (old != right) for old, right, new in rows)


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
    summaries, references = check_counts(summaries=summaries, references=references)
    summaries, references = as_texts(summaries), as_texts(references)
    kinds = {"rouge_1": "rouge1", "rouge_2": "rouge2", "rouge_l": "rougeL"}
    scorer = _scorer(kinds.values())
    texts = [scorer.score(*pair) for pair in zip(references, summaries, strict=True)]
    scores = {}
    for name, kind in kinds.items():
        scores[name] = float(np.mean([score[kind].fmeasure for score in texts]))
    return scores


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
    sentences = as_texts(sentences)

    def value(chosen: set[int]) -> float:
        text = "".join(sentences[i] for i in sorted(chosen))
        return sum(score.fmeasure for score in scorer.score(reference, text).values())

    chosen: set[int] = set()
    for _ in sentences[:most]:
        candidates = [chosen | {i} for i in range(len(sentences))]
        best = max(candidates, key=value)
        if value(best) <= value(chosen):
            break
        chosen = best
    return [int(i in chosen) for i in range(len(sentences))]


def _scorer(kinds: Iterable[str]) -> Any:
    """Return the scorer of rouge-score for some kinds of ROUGE."""
    rouge_scorer = import_extra("rouge_score.rouge_scorer")
    return rouge_scorer.RougeScorer(list(kinds), tokenizer=_Characters())
