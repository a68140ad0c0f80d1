"""Answers of models, as arrays and as dicts of plain Python."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from albert_tf_lite.errors import AlbertError
from albert_tf_lite.inputs import check_integer
from albert_tf_lite.spans import answer_arrays, answer_dicts

# Vectors of a corpus whose cosines are computed together.
ROWS_AT_A_TIME = 2**16


class Answers(NamedTuple):
    """Functions that turn the outputs of a task into its answers."""

    # (outputs, settings) -> arrays.
    arrays: Callable[[Any, dict[str, Any]], dict[str, Any]]
    # (parts, outputs, settings, options of the task) -> dicts. `parts` are the lists
    # of the parts of the examples, one per name of `fields`, also for a single one.
    dicts: Callable[..., list]
    # The parts of an example, and how many of them it must have.
    fields: tuple[str, ...] = ("text", "text_pair")
    num_required: int = 1


# === Arrays, named as the outputs of a SavedModel ===


def _softmax(x):
    exponentials = np.exp(x - x.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def _sigmoid(x):
    # In this form no exponential overflows.
    return (np.tanh(x / 2) + 1) / 2


ACTIVATIONS = {"softmax": _softmax, "sigmoid": _sigmoid, None: lambda x: x}


def probabilities_of(outputs: np.ndarray, settings: dict[str, Any]) -> np.ndarray:
    """Return the probabilities [batch, classes] of the outputs of a classifier.

    Logits are divided by the temperature of the model, which is 1 in files of earlier
    versions.
    """
    scaled = outputs / settings.get("temperature", 1.0)
    return ACTIVATIONS[settings["activation"]](scaled)


def classify(outputs: np.ndarray, settings: dict[str, Any]) -> dict[str, np.ndarray]:
    """Return `label`, `label_id` [batch] and `probabilities` [batch, classes]."""
    probabilities = probabilities_of(outputs, settings)
    label_id = probabilities.argmax(axis=-1).astype("int32")
    label = np.array(settings["labels"])[label_id]
    return {"label": label, "label_id": label_id, "probabilities": probabilities}


def classify_multi_label(
    outputs: np.ndarray, settings: dict[str, Any]
) -> dict[str, np.ndarray]:
    """Return `labels` (or ""), `chosen`, `probabilities`, each [batch, classes]."""
    probabilities = probabilities_of(outputs, settings)
    chosen = probabilities >= np.array(settings["thresholds"], "float32")
    labels = np.where(chosen, np.array(settings["labels"]), "")
    return {"labels": labels, "chosen": chosen, "probabilities": probabilities}


def choose(logits: np.ndarray, settings: dict[str, Any]) -> dict[str, np.ndarray]:
    """Return `label_id` [batch] and `probabilities` [batch, choices]."""
    label_id = logits.argmax(axis=-1).astype("int32")
    return {"label_id": label_id, "probabilities": _softmax(logits)}


def order_probability(
    outputs: np.ndarray, settings: dict[str, Any]
) -> dict[str, np.ndarray]:
    """Return `in_order` [batch], the probability that the second text follows."""
    return {"in_order": _softmax(outputs)[:, 0]}


# === Dicts, with the keys of transformers ===


def check_top_k(top_k: int | None) -> None:
    """Raise unless `top_k` is a number of answers, or `None` for all."""
    if top_k is not None:
        check_integer("top_k", top_k)


def best_of(answers: Sequence[list], top_k: int | None = 1) -> list:
    """Return the first of each list, or with another `top_k` the first `top_k`."""
    check_top_k(top_k)
    return [row[0] if top_k == 1 else row[:top_k] for row in answers]


def rank_classes(
    names: Sequence[str], probabilities: np.ndarray, top_k: int | None = 1
) -> list:
    """Return `label` and `score` of the best classes, as `best_of`."""
    return best_of([_sorted(names, row) for row in probabilities], top_k)


def rank_chosen(
    names: Sequence[str],
    answers: dict[str, np.ndarray],
    top_k: int | None | Literal["auto"] = "auto",
) -> list[list[dict[str, Any]]]:
    """Return `label` and `score` of the chosen classes, or of the `top_k` best.

    `answers` is what `classify_multi_label` returns.
    """
    if top_k != "auto":
        check_top_k(top_k)
        return [_sorted(names, row)[:top_k] for row in answers["probabilities"]]
    classes = np.array(names)
    texts = zip(answers["probabilities"], answers["chosen"], strict=True)
    return [_sorted(classes[chosen], row[chosen]) for row, chosen in texts]


def rank_choices(choices: Sequence[Sequence[str]], logits: np.ndarray) -> list[list]:
    """Return `label`, `label_id` and `score` of all choices, the best first."""
    answers = []
    for texts, scores in zip(choices, _softmax(logits), strict=True):
        order = np.argsort(-scores[: len(texts)], kind="stable").tolist()
        answers.append(
            [
                {"label": texts[i], "label_id": i, "score": float(scores[i])}
                for i in order
            ]
        )
    return answers


# The tasks whose answers have a label and a calibrated score.
ABSTAINING = ("text-classification", "multi-label", "token-classification")


def check_abstain(abstain: float) -> None:
    """Raise unless `abstain` is a score."""
    is_number = isinstance(abstain, (int, float)) and abstain is not True
    if not (is_number and 0 <= abstain <= 1):
        raise AlbertError(
            f"`abstain` must be a number from 0 to 1. Received: {abstain!r:.80}"
        )


def withhold(answers: Sequence[Any], abstain: float) -> list:
    """Return answers without those whose score is below `abstain`.

    Of a single class per text, the label becomes "" and the score stays. From a list of
    classes or entities, those below are left out.
    """
    kept = []
    for answer in answers:
        if isinstance(answer, list):
            answer = [one for one in answer if one["score"] >= abstain]
        elif answer["score"] < abstain:
            answer = {**answer, "label": ""}
        kept.append(answer)
    return kept


def entity_dicts(texts: Sequence[str], spans: Sequence) -> list[list[dict[str, Any]]]:
    """Return a dict for each span (start, end, label, score) of each text."""
    answers = []
    for text, entities in zip(texts, spans, strict=True):
        answers.append([_entity(text, *entity) for entity in entities])
    return answers


def _entity(text: str, start: int, end: int, label: str, score: float) -> dict:
    """Return an entity as a dict."""
    return {
        "entity_group": label,
        "word": text[start:end],
        "start": start,
        "end": end,
        "score": score,
    }


def score_dicts(values: np.ndarray) -> list[dict[str, float]]:
    """Return each number as the `score` of a dict."""
    return [{"score": float(value)} for value in values]


def cosines(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the cosine of each two vectors, rows of [pairs, width], as float32."""
    return _in_range(np.sum(_unit_vectors(first) * _unit_vectors(second), axis=1))


def all_cosines(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the cosines of rows of two arrays, float32 [first, second].

    They are symmetric if both arrays are equal.
    """
    units = _unit_vectors(first)
    cosines = np.empty((len(first), len(second)), "float32")
    # In parts, because a large corpus as float64 takes twice its memory.
    for start in range(0, len(second), ROWS_AT_A_TIME):
        end = start + ROWS_AT_A_TIME
        others = _unit_vectors(second[start:end])
        cosines[:, start:end] = _in_range(units @ others.T)
    if np.array_equal(first, second):
        cosines = np.maximum(cosines, cosines.T)
    return cosines


def _unit_vectors(vectors):
    """Return vectors of length 1, those of zeros as zeros, as float64.

    In float16 the squares would overflow, and in float32 cosines would exceed 1.
    """
    vectors = np.asarray(vectors).astype("float64")
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.where(lengths == 0, 1.0, lengths)


def _in_range(cosines):
    return np.clip(cosines, -1.0, 1.0).astype("float32")


def order_dicts(in_order: np.ndarray) -> list[dict[str, Any]]:
    """Return `label`, "in_order" or "swapped", and its `score`."""
    answers: list[dict[str, Any]] = []
    for score in map(float, in_order):
        if score >= 0.5:
            answers.append({"label": "in_order", "score": score})
        else:
            answers.append({"label": "swapped", "score": 1 - score})
    return answers


def _sorted(names, scores):
    order = np.argsort(-scores, kind="stable")
    return [{"label": str(names[i]), "score": float(scores[i])} for i in order]


# === Tasks of exported files ===

Settings = dict[str, Any]


def _class_dicts(parts, outputs, settings: Settings, top_k: int | None = 1) -> list:
    probabilities = classify(outputs, settings)["probabilities"]
    return rank_classes(settings["labels"], probabilities, top_k)


def _multi_label_dicts(
    parts,
    outputs,
    settings: Settings,
    top_k: int | None | Literal["auto"] = "auto",
) -> list:
    answers = classify_multi_label(outputs, settings)
    return rank_chosen(settings["labels"], answers, top_k)


def _scores(outputs, settings: Settings) -> dict[str, np.ndarray]:
    return {"score": outputs[:, 0]}


def _score_dicts(parts, outputs, settings: Settings) -> list:
    return score_dicts(outputs[:, 0])


def _spans(spans, settings: Settings) -> dict[str, Any]:
    return {"spans": spans}


def _entity_dicts(parts, spans, settings: Settings) -> list:
    (texts,) = parts
    return entity_dicts(texts, spans)


def _choice_dicts(parts, logits, settings: Settings, top_k: int | None = 1) -> list:
    _, _, choices = parts
    return best_of(rank_choices(choices, logits), top_k)


def _vectors(outputs, settings: Settings) -> dict[str, np.ndarray]:
    return {"embedding": outputs}


def _vector_dicts(parts, outputs, settings: Settings) -> list:
    if len(parts) > 1:
        first, second = outputs
        return score_dicts(cosines(first, second))
    return [{"embedding": vector} for vector in outputs.tolist()]


def _order_dicts(parts, outputs, settings: Settings) -> list:
    return order_dicts(order_probability(outputs, settings)["in_order"])


ANSWERS = {
    "text-classification": Answers(classify, _class_dicts),
    "multi-label": Answers(classify_multi_label, _multi_label_dicts),
    "regression": Answers(_scores, _score_dicts),
    "token-classification": Answers(_spans, _entity_dicts, fields=("text",)),
    "question-answering": Answers(
        answer_arrays, answer_dicts, fields=("question", "context"), num_required=2
    ),
    "multiple-choice": Answers(
        choose,
        _choice_dicts,
        fields=("context", "question", "choices"),
        num_required=3,
    ),
    "text-embedding": Answers(_vectors, _vector_dicts),
    "sentence-order": Answers(order_probability, _order_dicts, num_required=2),
}
