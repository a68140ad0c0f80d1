"""`albert_tf.pipeline`: every task, its forms of input, and where models come from."""

import functools
import json
import pathlib

import numpy as np
import pytest
from small_classifier import OTHERS, TEXTS, call, small_classifier
from task_cases import CASES

import albert_tf
from albert_tf import models
from albert_tf_cli.task_table import TASKS

MICRO = pathlib.Path(__file__).parents[1] / "examples" / "albert_micro_zh"
PAIRS = list(zip(TEXTS, OTHERS, strict=True))
ZERO_SHOT = "zero-shot-classification"

# The first case of each task, and the keys and types of its answers.
FIRST = {case.cls.name_of_task: case for case in reversed(CASES.values())}
LABEL = {"label": str, "score": float}
PLACE = {"start": int, "end": int, "score": float}
KEYS = {
    "text-classification": LABEL,
    "multi-label": LABEL,
    "regression": {"score": float},
    "token-classification": {"entity_group": str, "word": str, **PLACE},
    "question-answering": {"answer": str, **PLACE},
    "multiple-choice": {**LABEL, "label_id": int},
    "text-embedding": {"embedding": list},
    "spelling-correction": {"source": str, "target": str, "errors": list},
    "summarization": {"summary": str, "sentences": list},
    "fill-mask": {"token": int, "token_str": str, "sequence": str, **PLACE},
    "sentence-order": LABEL,
    ZERO_SHOT: {"sequence": str, "labels": list, "scores": list},
}
SLOW = ("fill-mask", "text-embedding", "multiple-choice", "multi-label", ZERO_SHOT)


@functools.cache
def built(name):
    """Return the pipeline of a task."""
    if name == ZERO_SHOT:
        model = small_classifier(2, labels=["蕴含", "矛盾"], pairs=True)
        return albert_tf.pipeline(name, model, candidate_labels=["好吃", "你", "中文"])
    return albert_tf.pipeline(name, FIRST[name].build())


def examples_of(name):
    x = TEXTS if name == ZERO_SHOT else FIRST[name].x
    return list(zip(*x, strict=True)) if isinstance(x, tuple) else x


def dicts_in(answer):
    if isinstance(answer, dict):
        return [answer]
    return [found for part in answer for found in dicts_in(part)]


def close(one, other):
    """Return whether two answers are equal, numbers to 1e-5."""
    if isinstance(one, float):
        return one == pytest.approx(other, abs=1e-5)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(close(one[x], other[x]) for x in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(close, one, other))
    return one == other


@pytest.mark.parametrize(
    "name", [pytest.param(x, marks=[pytest.mark.slow] * (x in SLOW)) for x in KEYS]
)
def test_one_example_or_many_in_any_form(name):
    assert set(TASKS) == set(models.TASKS) == set(KEYS)
    pipeline, fields, examples = (
        built(name),
        models.TASKS[name].fields,
        examples_of(name),
    )
    many = pipeline(examples)
    assert len(many) == len(examples) and any(many) and json.dumps(many)
    assert close(pipeline(examples[-1]), many[-1])
    for answer in dicts_in(many):
        assert {key: type(value) for key, value in answer.items()} == KEYS[name]
    # By name, in dicts, with a batch size.
    tuples = [x if isinstance(x, tuple) else (x,) for x in examples]
    dicts = [dict(zip(fields, x, strict=False)) for x in tuples]
    columns = {field: [x[field] for x in dicts] for field in dicts[0]}
    assert close(pipeline(dicts, batch_size=2), many)
    assert close(pipeline(columns), many)
    assert close(pipeline(**dicts[0]), many[0])
    assert pipeline([]) == []


def test_classes_in_order_of_probability_and_above_thresholds():
    pipeline = built("text-classification")
    logits = call(pipeline.model, TEXTS).astype("float64")
    expected = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    found = pipeline(TEXTS, top_k=None)
    for row, answer in zip(expected, found, strict=True):
        order = np.argsort(-row)
        assert [x["label"] for x in answer] == [["坏", "中", "好"][i] for i in order]
        assert [x["score"] for x in answer] == pytest.approx(row[order], abs=1e-5)
    assert close(pipeline(TEXTS[0], top_k=2), found[0][:2])
    pipeline = built("multi-label")
    thresholds = {"坏": 0.25, "中": 0.5, "好": 0.75}
    assert pipeline(TEXTS) == [
        [x for x in row if x["score"] >= thresholds[x["label"]]]
        for row in pipeline(TEXTS, top_k=3)
    ]
    # transformers has one name for both.
    same = albert_tf.pipeline("sentiment-analysis", pipeline.model)
    assert same.task == "multi-label"


def test_several_answers_choices_masks_and_cosines():
    questions = built("question-answering")
    best = questions(question="谁", context=["很好吃，我想", "差"], top_k=3)
    # A context of one token has one answer, or none.
    assert [len(x) for x in best] == [3, 2]
    assert questions(question="谁", context="差", top_k=1) == best[1][0]
    choices = ["你", "我", "他"]
    ranked = built("multiple-choice")(("他来了", "谁", choices), top_k=None)
    assert sorted(x["label_id"] for x in ranked) == [0, 1, 2]
    assert all(choices[x["label_id"]] == x["label"] for x in ranked)
    masks = built("fill-mask")("很[MASK]吃[MASK]", targets=["好", "差"])
    assert [[x["start"] for x in row] for row in masks] == [[1, 1], [8, 8]]
    pipeline = built("text-embedding")
    first, second = (
        pipeline.model.encode_text(TEXTS),
        pipeline.model.encode_text(OTHERS),
    )
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    found = [x["score"] for x in pipeline(PAIRS)]
    np.testing.assert_allclose(found, (first * second).sum(axis=1) / lengths, atol=1e-5)


def test_the_files_determine_the_task(tmp_path):
    model = FIRST["text-classification"].build(embedding_projection="after_layer_norm")
    expected = albert_tf.pipeline(path=model)(TEXTS)
    model.save_to_preset(str(tmp_path / "preset"))
    model.save(tmp_path / "model.keras")
    model.export_to_transformers(tmp_path / "huggingface")
    for name in ("preset", "model.keras", "huggingface"):
        found = albert_tf.pipeline(tmp_path / name)
        assert found.task == "text-classification"
        assert close(found(TEXTS), expected)
    pipeline = albert_tf.pipeline("fill-mask", MICRO, top_k=2)
    answers = pipeline("今天[MASK]气很好")
    assert len(answers) == 2 and pipeline("今天[MASK]气很好", top_k=1) == answers[:1]
    assert repr(pipeline) == "<pipeline fill-mask of AlbertMaskedLM, top_k=2>"


@pytest.mark.parametrize(
    ("task", "model", "message"),
    [
        ("text-classification", MICRO, "is not trained for text-class.*no class"),
        ("question-answering", MICRO, "it has no span_head"),
        (None, MICRO, "without a fine-tuned head. Name the task: one of text-"),
        ("classification", MICRO, "Unknown task 'classification'. Expected one of"),
        ("multi-label", "text-classification", "not trained for multi-label"),
    ],
)
def test_a_model_that_is_not_trained_for_the_task_raises(task, model, message):
    model = built(model).model if isinstance(model, str) else model
    with pytest.raises(ValueError, match=message):
        albert_tf.pipeline(task, model)


@pytest.mark.parametrize(
    ("name", "x", "options", "message"),
    [
        ("fill-mask", "好", {"topk": 3}, "no option topk.*top_k, targets"),
        ("fill-mask", "好", {"top_k": 0}, "from 1 on"),
        ("fill-mask", None, {}, "or text by name"),
        ("fill-mask", 3, {}, "a string, or a dict or tuple of text"),
        ("regression", ["好"], {}, "This model takes pairs of texts"),
        ("regression", ["好", 3], {}, "Element 1 .* Received: int 3"),
        ("regression", ["好", ("好", "差")], {}, "Example 1 has 2 of"),
        ("regression", (["好"], ["差", "好"]), {}, r"lengths \[1, 2\]"),
        ("sentence-order", {"text": "好"}, {}, r"\['text_pair'\]"),
        ("multiple-choice", ("好", "好", "好"), {}, "a list of strings"),
    ],
)
def test_wrong_inputs_and_options_raise(name, x, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        built(name)(x, **options)
