"""`albert_tf.pipeline`: every task, its forms of input, and where models come from."""

import functools
import json
import pathlib
from typing import NamedTuple

import numpy as np
import pytest
from small_classifier import VOCABULARY, call, randomised, small_backbone

import albert_tf
from albert_tf import models

MICRO = pathlib.Path(__file__).parents[1] / "examples" / "albert_micro_zh"
TEXTS = ["很好吃，我想你来吧", "差", "他 去 了吗"]
OTHERS = ["好", "不好吃", "你"]
PAIRS = list(zip(TEXTS, OTHERS, strict=True))
LABEL = {"label": str, "score": float}


class Case(NamedTuple):
    """A task: its model, examples, and the keys and types of an answer."""

    model: type
    examples: list
    keys: dict
    arguments: dict = {}  # noqa: RUF012
    is_list: bool = False
    options: dict = {}  # noqa: RUF012


CASES: dict[str, Case] = {
    "text-classification": Case(
        *(models.AlbertTextClassifier, TEXTS, LABEL),
        {"num_classes": 3, "labels": ["坏", "中", "好"]},
    ),
    "multi-label": Case(
        *(models.AlbertMultiLabelClassifier, PAIRS, LABEL),
        {"num_classes": 3, "thresholds": [0.0, 0.9, 0.2]},
        is_list=True,
    ),
    "regression": Case(models.AlbertTextRegressor, PAIRS, {"score": float}),
    "token-classification": Case(
        *(models.AlbertTokenClassifier, TEXTS),
        dict(entity_group=str, word=str, start=int, end=int, score=float),
        {"tags": ["O", "I-PER", "I-LOC"]},
        is_list=True,
    ),
    "question-answering": Case(
        models.AlbertQuestionAnswering,
        list(zip(OTHERS, TEXTS, strict=True)),
        dict(answer=str, start=int, end=int, score=float),
    ),
    "multiple-choice": Case(
        models.AlbertMultipleChoice,
        [("我想", "吃", ["好", "鸡蛋"]), ("他来了", "谁", ["你", "我", "他"])],
        {**LABEL, "label_id": int},
    ),
    "text-embedding": Case(models.AlbertTextEmbedder, TEXTS, {"embedding": list}),
    "spelling-correction": Case(
        models.AlbertSpellingCorrector, TEXTS, dict(source=str, target=str, errors=list)
    ),
    "summarization": Case(
        models.AlbertSummarizer,
        ["很好吃。我想你来吧！不。他去了。", "差。", "他去了吗？不。好。"],
        {"summary": str, "sentences": list},
    ),
    "fill-mask": Case(
        models.AlbertMaskedLM,
        [text[:1] + "[MASK]" + text[1:] for text in TEXTS],
        dict(score=float, token=int, token_str=str, sequence=str, start=int, end=int),
        is_list=True,
    ),
    "sentence-order": Case(models.AlbertSentenceOrder, PAIRS, LABEL),
    "zero-shot-classification": Case(
        *(models.AlbertTextClassifier, TEXTS),
        dict(sequence=str, labels=list, scores=list),
        {"num_classes": 2, "labels": ["蕴含", "矛盾"], "pairs": True},
        options={"candidate_labels": ["好吃", "你", "中文"]},
    ),
}


def build(name):
    case = CASES[name]
    backbone = small_backbone(num_layers=1, embedding_projection="after_layer_norm")
    model = case.model.from_backbone(backbone, VOCABULARY, **case.arguments)
    return randomised(model)


@pytest.fixture(scope="module")
def built():
    """Return the pipeline of a task, built once."""

    @functools.cache
    def pipeline(name):
        return albert_tf.pipeline(name, build(name), **CASES[name].options)

    return pipeline


def close(one, other):
    """Return whether two answers are equal, numbers to 1e-5."""
    if isinstance(one, float):
        return one == pytest.approx(other, abs=1e-5)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(close(one[x], other[x]) for x in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(close, one, other))
    return one == other


# The other tasks are tested below.
FAST = (
    *("text-classification", "regression", "token-classification"),
    *("question-answering", "spelling-correction", "summarization", "sentence-order"),
)


@pytest.mark.parametrize(
    "name", [pytest.param(x, marks=[pytest.mark.slow] * (x not in FAST)) for x in CASES]
)
def test_one_example_or_many_in_any_form(built, name):
    assert set(models.TASKS) == set(CASES)
    case, pipeline, fields = CASES[name], built(name), models.TASKS[name].fields
    many = pipeline(case.examples)
    assert len(many) == len(case.examples) and any(many) and json.dumps(many)
    assert close(pipeline(case.examples[-1]), many[-1])
    for answer in many:
        found = answer if case.is_list else [answer]
        assert all({x: type(v) for x, v in y.items()} == case.keys for y in found)
    # By name, in dicts, with a batch size.
    tuples = [x if isinstance(x, tuple) else (x,) for x in case.examples]
    dicts = [dict(zip(fields, x, strict=False)) for x in tuples]
    columns = {field: [x[field] for x in dicts] for field in dicts[0]}
    assert close(pipeline(dicts, batch_size=2), many)
    assert close(pipeline(columns), many)
    assert close(pipeline(**dicts[0]), many[0])
    assert pipeline([]) == []


def test_classes_in_order_of_probability_and_above_thresholds(built):
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
    thresholds = {"0": 0.0, "1": 0.9, "2": 0.2}
    assert pipeline(PAIRS) == [
        [x for x in row if x["score"] >= thresholds[x["label"]]]
        for row in pipeline(PAIRS, top_k=3)
    ]
    pipeline = built("zero-shot-classification")
    labels = pipeline.options["candidate_labels"]
    rows = models.ZeroShotClassifier(pipeline.model).predict(TEXTS, labels)
    for row, answer in zip(rows, pipeline(TEXTS), strict=True):
        assert answer["labels"] == [labels[i] for i in np.argsort(-row)]
        assert answer["scores"] == pytest.approx(np.sort(row)[::-1], abs=1e-6)


def test_several_answers_choices_masks_and_cosines(built):
    questions = built("question-answering")
    best = questions(question="谁", context=TEXTS, top_k=3)
    assert [len(x) for x in best] == [3, 1, 3]
    assert questions(question="谁", context=TEXTS) == [x[0] for x in best]
    context, question, choices = CASES["multiple-choice"].examples[1]
    ranked = built("multiple-choice")((context, question, choices), top_k=None)
    assert sorted(x["label_id"] for x in ranked) == [0, 1, 2]
    assert sum(x["score"] for x in ranked) == pytest.approx(1, abs=1e-5)
    assert all(choices[x["label_id"]] == x["label"] for x in ranked)
    masks = built("fill-mask")("很[MASK]吃[MASK]", targets=["好", "差"])
    assert [[x["start"] for x in row] for row in masks] == [[1, 1], [8, 8]]
    pipeline = built("text-embedding")
    vectors = np.array([x["embedding"] for x in pipeline([*TEXTS, *OTHERS])])
    found = [x["score"] for x in pipeline(PAIRS)]
    expected = (vectors[:3] * vectors[3:]).sum(axis=1)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_the_files_determine_the_task(built, tmp_path):
    classifier = built("text-classification")
    expected = classifier(TEXTS)
    classifier.model.save_to_preset(str(tmp_path / "preset"))
    classifier.model.save(tmp_path / "model.keras")
    classifier.model.export_to_transformers(tmp_path / "huggingface")
    for name in ("preset", "model.keras", "huggingface"):
        found = albert_tf.pipeline(tmp_path / name)
        assert found.task == "text-classification"
        assert close(found(TEXTS), expected)
    pipeline = albert_tf.pipeline("fill-mask", MICRO, top_k=2)
    answers = pipeline("今天[MASK]气很好")
    assert len(answers) == 2 and pipeline("今天[MASK]气很好", top_k=1) == answers[:1]


@pytest.mark.parametrize(
    ("task", "model", "message"),
    [
        ("text-classification", MICRO, "is not trained for text-class.*no class"),
        ("question-answering", MICRO, "it has no span_head"),
        (None, MICRO, "without a fine-tuned head. Name the task: one of text-"),
        ("classification", MICRO, "Unknown task 'classification'. Expected one of"),
        ("multi-label", "text-classification", "not trained for multi-label"),
        ("fill-mask", None, "The model is missing"),
    ],
)
def test_a_model_that_is_not_trained_for_the_task_raises(built, task, model, message):
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
        ("regression", ["好", 3], {}, "Example 1 .* Received: int 3"),
        ("regression", ["好", ("好", "差")], {}, "Example 1 has 2 of"),
        ("regression", (["好"], ["差", "好"]), {}, r"lengths \[1, 2\]"),
        ("sentence-order", "好", {}, "a dict or tuple of text, text_pair"),
        ("sentence-order", {"text": "好"}, {}, "tuple of text, text_pair"),
        ("multiple-choice", ("好", "好", "好"), {}, "a list of strings"),
    ],
)
def test_wrong_inputs_and_options_raise(built, name, x, options, message):
    with pytest.raises(albert_tf.AlbertError, match=message):
        built(name)(x, **options)


def test_a_model_of_pairs_needs_pairs():
    model = build("regression")
    model.pairs = True
    with pytest.raises(ValueError, match="This model takes pairs of texts"):
        albert_tf.pipeline("regression", model)(["好"])
