"""`albert_tf.pipeline`: every task, its forms of input, and where models come from."""

import functools
import json
import pathlib
from typing import NamedTuple

import pytest
from small_classifier import VOCABULARY, randomised, small_backbone

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
    ("task", "message"),
    [
        ("text-classification", "is not trained for text-class.*no class"),
        (None, "without a fine-tuned head. Name the task: one of text-"),
    ],
)
def test_a_model_that_is_not_trained_for_the_task_raises(task, message):
    with pytest.raises(ValueError, match=message):
        albert_tf.pipeline(task, MICRO)


@pytest.mark.parametrize(
    ("task", "x", "options", "message"),
    [
        ("text-classification", "好", {"cased": 1}, "has no option cased. Its options"),
        ("text-classification", (["好"], ["好"] * 2), {}, r"the lengths \[1, 2\]"),
        ("text-classification", [3], {}, "Example 0 must be a string, or a dict"),
        ("question-answering", [{"context": "好"}], {}, "a dict or tuple of question"),
    ],
)
def test_wrong_examples_and_options_raise(built, task, x, options, message):
    with pytest.raises(ValueError, match=message):
        built(task)(x, **options)


def test_models_that_do_not_fit_raise(built):
    pairs = build("zero-shot-classification")
    with pytest.raises(ValueError, match="This model takes pairs of texts"):
        albert_tf.pipeline(pairs)("好")
    with pytest.raises(ValueError, match="Unknown task 'spam'. Expected one of text-"):
        albert_tf.pipeline("spam", pairs)
