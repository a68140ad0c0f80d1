"""Simple predictors that a fine-tuned model should beat.

Each function of training examples returns a predictor, a function of texts, or `None`
if the examples do not suffice. They are those of `benchmarks/lib/baselines.py`.
"""

import math
import random
import re
import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from albert_tf_cli.tasks.task import Examples, Inputs, Predictor, Task, as_columns

# Their names in metrics.json, on the terminal and in model cards.
CONSTANT = "constant answer"
LINEAR = "TF-IDF with logistic regression"
RIDGE = "TF-IDF with ridge regression"
COSINE = "cosine of TF-IDF"
DICTIONARY = "dictionary of training entities"

# The most training examples that TF-IDF reads.
MOST_EXAMPLES = 50_000
# The most weights of a linear model, of which its solver holds 20 copies, and the
# fewest and the most features.
MOST_WEIGHTS = 4_000_000
FEATURES = (1_000, 200_000)

Span = tuple[int, int, str]
# Scores by baseline, part ("dev") and name ("accuracy").
BaselineScores = dict[str, dict[str, dict[str, float]]]

_IN_WORD = re.compile("[A-Za-z0-9]{2}")


def score_baselines(task: Task, parts: dict[str, Examples]) -> BaselineScores:
    """Return all scores of the baselines of a task on dev and test.

    `parts` are the examples of "train", "dev" and perhaps "test".
    """
    scored = {name: parts[name] for name in ("dev", "test") if name in parts}
    return {
        name: {
            part: task.baseline_scores(examples, predict(examples.x))
            for part, examples in scored.items()
        }
        for name, predict in task.baselines(parts["train"], parts["dev"]).items()
    }


def baselines_by(score: str, baselines: BaselineScores) -> dict[str, dict[str, float]]:
    """Return one of the scores of each baseline that has it, by part."""
    rows = {}
    for name, parts in baselines.items():
        if score in parts["dev"]:
            rows[name] = {part: scores[score] for part, scores in parts.items()}
    return rows


def warn_if_beaten(monitor: str, metrics: dict[str, Any], may_adapt: bool) -> None:
    """Warn if a model is not better on dev than its baselines.

    Args:
        monitor: string, the score that chose the epoch.
        metrics: dict with the scores of the model on `dev`, and of its `baselines`.
        may_adapt: bool. Mention that texts without labels may help.
    """
    dev = metrics["dev"]
    beating = []
    for name, scores in baselines_by(monitor, metrics["baselines"]).items():
        # Keras computes in 32 bits.
        is_equal = math.isclose(scores["dev"], dev[monitor], abs_tol=1e-6)
        if is_equal or scores["dev"] > dev[monitor]:
            relation = "equal" if is_equal else "better"
            beating.append(f"{name} {scores['dev']:.4f} ({relation})")
    if not beating:
        return
    remedies = ["more labelled examples"]
    if may_adapt:
        remedies.append("texts without labels (--unlabelled)")
    if "macro_f1" in dev and monitor != "macro_f1":
        remedies.append("--monitor macro_f1")
    warnings.warn(
        f"The model is not better on dev than simple baselines: {monitor} "
        f"{dev[monitor]:.4f}, {', '.join(beating)}. What may help: "
        f"{', or '.join(remedies)}.",
        stacklevel=2,
    )


def sample(examples: Examples) -> Examples:
    """Return the examples, or `MOST_EXAMPLES` of them, always the same."""
    if len(examples) <= MOST_EXAMPLES:
        return examples
    chosen = random.Random(0).sample(range(len(examples)), MOST_EXAMPLES)
    return examples.select(sorted(chosen))


# === Constants ===


def most_frequent(y: Sequence) -> Predictor:
    """Predict the most frequent value of `y`, of equally frequent ones the first."""
    ((value, _),) = Counter(y).most_common(1)
    return lambda x: np.full(len(as_columns(x)[0]), value)


def most_frequent_labels(y: Any) -> Predictor:
    """Predict the labels that have the best micro F1 if each text has them.

    `y` is an array of 0 and 1 [examples, labels].
    """
    y = np.asarray(y)
    counts = y.sum(axis=0)
    order = np.argsort(-counts, kind="stable")
    hits = np.cumsum(counts[order])
    predicted = len(y) * np.arange(1, len(order) + 1)
    f1 = 2 * hits / (predicted + counts.sum())
    chosen = np.zeros(len(order), int)
    chosen[order[: np.argmax(f1) + 1]] = 1
    return lambda x: np.tile(chosen, (len(as_columns(x)[0]), 1))


def mean(y: Any) -> Predictor:
    """Predict the mean of `y`."""
    value = float(np.mean(y))
    return lambda x: np.full(len(as_columns(x)[0]), value)


# === TF-IDF of characters ===


class _Features:
    """TF-IDF of the characters and their bigrams in texts or pairs.

    Those of a pair are the absolute differences and the products of both texts. For
    many `outputs` of a linear model, only the most frequent characters and bigrams
    count.
    """

    def __init__(self, x: Inputs, outputs: int = 1):
        from sklearn.feature_extraction.text import TfidfVectorizer

        fewest, most = FEATURES
        self._vectors = TfidfVectorizer(
            analyzer="char",
            ngram_range=(1, 2),
            sublinear_tf=True,
            max_features=min(max(MOST_WEIGHTS // outputs, fewest), most),
        )
        self._vectors.fit([text for column in as_columns(x) for text in column])

    def __call__(self, x: Inputs) -> Any:
        """Return the features as a sparse matrix [examples, features]."""
        from scipy.sparse import hstack

        if not isinstance(x, tuple):
            return self._vectors.transform(x)
        first, second = self.of_parts(x)
        return hstack([abs(first - second), first.multiply(second)]).tocsr()

    def of_parts(self, x: Inputs) -> list:
        """Return the TF-IDF of each part of the examples."""
        return [self._vectors.transform(column) for column in as_columns(x)]


def _has_texts(x: Inputs) -> bool:
    return any(text for column in as_columns(x) for text in column)


def _linear(
    model: Any, examples: Examples, outputs: int = 1
) -> tuple[_Features, Any] | None:
    """Return features and the linear model fitted on them; `None` without texts."""
    examples = sample(examples)
    if not _has_texts(examples.x):
        return None
    features = _Features(examples.x, outputs)
    with warnings.catch_warnings():
        # A label of all texts or of none, and iterations that end early.
        warnings.simplefilter("ignore")
        model.fit(features(examples.x), np.asarray(examples.y))
    return features, model


def linear_classes(examples: Examples) -> Predictor | None:
    """Predict a class by logistic regression on TF-IDF."""
    from sklearn.linear_model import LogisticRegression

    examples = sample(examples)
    classes = len(set(examples.y))
    if classes < 2:
        return None
    fitted = _linear(LogisticRegression(C=10), examples, classes)
    if fitted is None:
        return None
    features, model = fitted
    return lambda x: model.predict(features(x))


def linear_labels(examples: Examples) -> Predictor | None:
    """Return a function that predicts the probability of each label of texts."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier

    model = OneVsRestClassifier(LogisticRegression(C=10))
    fitted = _linear(model, examples, outputs=len(examples.y[0]))
    if fitted is None:
        return None
    features, model = fitted
    return lambda x: model.predict_proba(features(x))


def linear_numbers(examples: Examples) -> Predictor | None:
    """Predict a number by ridge regression on TF-IDF."""
    from sklearn.linear_model import Ridge

    fitted = _linear(Ridge(), examples)
    if fitted is None:
        return None
    features, model = fitted
    return lambda x: model.predict(features(x))


def cosine(examples: Examples) -> Predictor | None:
    """Return a function that computes the cosine of the TF-IDF of two texts."""
    examples = sample(examples)
    if not _has_texts(examples.x):
        return None
    features = _Features(examples.x)

    def predict(x: Inputs) -> np.ndarray:
        first, second = features.of_parts(x)
        # The vectors have the length 1, or 0 without a known character.
        return np.asarray(first.multiply(second).sum(axis=1)).ravel()

    return predict


# === Entities ===


def dictionary(texts: Sequence[str], spans: Sequence[Sequence[Span]]) -> Predictor:
    """Find the entities of the training texts again, the longest first.

    The label of an entity is its most frequent one.
    """
    labels: dict[str, Counter] = {}
    for text, text_spans in zip(texts, spans, strict=True):
        for start, end, label in text_spans:
            labels.setdefault(text[start:end], Counter())[label] += 1
    entities = {name: found.most_common(1)[0][0] for name, found in labels.items()}
    # The lengths of entities by their first character, the longest first.
    lengths: dict[str, list[int]] = {}
    for name in sorted(entities, key=len, reverse=True):
        of_character = lengths.setdefault(name[:1], [])
        if len(name) not in of_character:
            of_character.append(len(name))

    def predict(x: Inputs) -> list[list[Span]]:
        return [_find_entities(text, entities, lengths) for text in as_columns(x)[0]]

    return predict


def _find_entities(
    text: str, entities: dict[str, str], lengths: dict[str, list[int]]
) -> list[Span]:
    """Return the entities of a text from left to right, without overlaps."""
    found: list[Span] = []
    start = 0
    while start < len(text):
        end = start
        for length in lengths.get(text[start], ()):
            name = text[start : start + length]
            name_end = start + len(name)
            if name in entities and not _cuts_word(text, start, name_end):
                end = name_end
                found.append((start, end, entities[name]))
                break
        start = max(end, start + 1)
    return found


def _cuts_word(text: str, start: int, end: int) -> bool:
    """Return whether a span begins or ends within a word of Latin letters or digits."""
    begins_within = start > 0 and _IN_WORD.match(text, start - 1)
    return bool(begins_within or _IN_WORD.match(text, end - 1))
