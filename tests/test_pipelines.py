"""`albert_tf.pipeline`: every task, its forms of input, and where models come from."""

import functools
import json
import pathlib

import numpy as np
import pytest
from lite_tasks import near
from named_heads import TOPICS, write_named_heads
from scipy.special import expit, softmax
from small_classifier import OTHERS, TEXTS, predict, small_classifier
from task_cases import CASES
from tiers import few

import albert_tf
import albert_tf_lite
from albert_tf import files, models, pipelines

MICRO = pathlib.Path(__file__).parents[1] / "examples" / "albert_micro_zh"
LABEL = {"label": str, "score": float}
# The keys and types of an answer.
KEYS = {
    "text-classification": LABEL,
    "multi-label": LABEL,
    "regression": {"score": float},
    "token-classification": dict(
        entity_group=str, word=str, start=int, end=int, score=float
    ),
    "question-answering": dict(answer=str, start=int, end=int, score=float),
    "multiple-choice": {**LABEL, "label_id": int},
    "text-embedding": {"embedding": list},
    "spelling-correction": dict(source=str, target=str, errors=list),
    "summarization": {"summary": str, "sentences": list},
    "fill-mask": dict(
        score=float, token=int, token_str=str, sequence=str, start=int, end=int
    ),
    "sentence-order": LABEL,
    "zero-shot-classification": dict(sequence=str, labels=list, scores=list),
}
LISTS = ("multi-label", "token-classification", "fill-mask")


def classifier(**sizes):
    sizes |= {"embedding_projection": "after_layer_norm"}
    return small_classifier(2, sizes, labels=["蕴含", "矛盾"], pairs=True)


@functools.cache
def built(name):
    """Return the pipeline of a task and examples for it."""
    if name == "zero-shot-classification":
        options = {"candidate_labels": ["好吃", "你", "中文"]}
        return albert_tf.pipeline(name, classifier(), **options), TEXTS
    case = next(x for x in CASES.values() if x.cls.name_of_task == name)
    x = list(zip(*case.x, strict=True)) if isinstance(case.x, tuple) else case.x
    return albert_tf.pipeline(name, case.build(num_layers=1)), x


def flat(answer):
    return [answer] if isinstance(answer, dict) else sum(map(flat, answer), [])


# The others are slower.
FAST = ("text-classification", "token-classification", "question-answering")


@pytest.mark.parametrize("name", few(KEYS, FAST))
def test_one_example_or_many_in_any_form(name):
    classes = pipelines.answering_classes()
    assert set(classes) == set(KEYS)
    (pipeline, examples), fields = built(name), classes[name].fields
    many = pipeline(examples)
    assert len(many) == len(examples) and any(many) and json.dumps(many)
    assert near(pipeline(examples[-1])) == near(many[-1])
    for answer in many:
        assert isinstance(answer, list) == (name in LISTS)
        # A text with several masks has a list for each.
        for found in flat(answer):
            assert {x: type(value) for x, value in found.items()} == KEYS[name]
    # By name, in dicts, with a batch size.
    tuples = [x if isinstance(x, tuple) else (x,) for x in examples]
    dicts = [dict(zip(fields, x, strict=False)) for x in tuples]
    columns = {field: [x[field] for x in dicts] for field in dicts[0]}
    assert near(pipeline(dicts, batch_size=2)) == near(many)
    assert near(pipeline(columns)) == near(many)
    assert near(pipeline(**dicts[0])) == near(many[0])
    assert pipeline([]) == []


@pytest.mark.parametrize(
    ("cls", "activation"),
    [
        (models.AlbertTextClassifier, functools.partial(softmax, axis=-1)),
        (models.AlbertMultiLabelClassifier, expit),
    ],
)
def test_probabilities_are_an_array_and_the_names_of_its_columns(
    tmp_path, cls, activation
):
    options = {"labels": TOPICS, "temperature": 2.5, "cls": cls}
    model = small_classifier(3, {"num_layers": 1}, **options)
    albert_tf.export.onnx(model, tmp_path / "model.onnx")
    expected = activation(predict(model, TEXTS).astype("float64") / 2.5)
    for pipeline in (
        albert_tf.pipeline(path=model, top_k=2, abstain=0.9, batch_size=2),
        albert_tf_lite.pipeline(tmp_path / "model.onnx"),
    ):
        probabilities, classes = pipeline.probabilities(TEXTS)
        assert classes == TOPICS and probabilities.dtype == "float32"
        np.testing.assert_allclose(probabilities, expected, rtol=1e-4)
        assert pipeline.probabilities(TEXTS[0], batch_size=1)[0].shape == (1, 3)
        assert pipeline.probabilities([])[0].shape == (0, 3)
    with pytest.raises(ValueError, match="no option top_k. It returns all classes"):
        pipeline.probabilities(TEXTS, top_k=1)
    with pytest.raises(ValueError, match="`probabilities` is for text-classification"):
        built("token-classification")[0].probabilities(TEXTS)


def test_repr_shows_task_model_classes_and_options(tmp_path):
    model, path = classifier(num_layers=1), tmp_path / "model.onnx"
    shown = "classes=['蕴含', '矛盾'], batch_size=2)"
    assert repr(albert_tf.pipeline(path=model, batch_size=2)) == (
        f"TaskPipeline('text-classification', model='AlbertTextClassifier', {shown}"
    )
    model.save(tmp_path / "model.keras")
    found = repr(albert_tf.pipeline(path=tmp_path / "model.keras", batch_size=2))
    assert f"path='{tmp_path / 'model.keras'}', {shown}" in found
    albert_tf.export.onnx(model, path)
    assert repr(albert_tf_lite.pipeline(path, batch_size=2)) == (
        f"Pipeline('text-classification', model='OnnxModel', path='{path}', {shown}"
    )


def test_a_progress_bar_of_long_lists(capsys):
    model = small_classifier(3, {"num_layers": 1})
    pipeline, texts = albert_tf.pipeline(path=model), TEXTS * 40
    answers = pipeline(texts)
    # Not on a terminal.
    assert capsys.readouterr().out == ""
    assert near(pipeline(texts, verbose=1)) == near(answers)
    assert "280/280" in capsys.readouterr().out
    probabilities, _ = pipeline.probabilities(texts, verbose=1)
    assert "280/280" in capsys.readouterr().out
    scores = [answer["score"] for answer in answers]
    np.testing.assert_allclose(probabilities.max(axis=1), scores, rtol=1e-4)


def test_the_files_determine_the_task(tmp_path):
    model, pairs = classifier(num_layers=1), list(zip(TEXTS, OTHERS, strict=True))
    model.save_to_preset(str(tmp_path / "preset"))
    model.save(tmp_path / "model.keras")
    model.export_to_transformers(tmp_path / "huggingface")
    expected = albert_tf.pipeline("text-classification", model)(pairs)
    for name in ("preset", "model.keras", "huggingface"):
        found = albert_tf.pipeline(tmp_path / name)
        assert found.task == "text-classification"
        assert near(found(pairs)) == near(expected)
    pipeline = albert_tf.pipeline("fill-mask", MICRO, top_k=2)
    answers = pipeline("今天[MASK]气很好")
    assert len(answers) == 2 and pipeline("今天[MASK]气很好", top_k=1) == answers[:1]


def test_named_heads_answer_without_a_path(tmp_path, monkeypatch):
    """A small checkpoint stands for the bundled one."""
    assert {*files.bundled_heads("albert_micro_zh")} >= {
        head for _, head in map(files.split_head, pipelines.DEFAULTS.values()) if head
    }
    with pytest.raises(ValueError, match="The model is missing. Pass its path"):
        albert_tf.pipeline("question-answering")
    _, tasks = write_named_heads(tmp_path / "examples" / "albert_micro_zh")
    monkeypatch.setattr(files, "__file__", str(tmp_path / "albert_tf" / "files.py"))
    assert files.bundled_heads("albert_micro_zh") == list(tasks)
    pairs = list(zip(TEXTS, OTHERS, strict=True))
    labels = {"candidate_labels": ["好吃", "你"]}
    for task, name, x, options in (
        ("topic-classification", "topics", TEXTS, {}),
        ("text-similarity", "similarity", pairs, {}),
        ("zero-shot-classification", "inference", TEXTS[:2], labels),
    ):
        expected = albert_tf.pipeline(pipelines.ALIASES.get(task, task), tasks[name])
        assert near(albert_tf.pipeline(task)(x, **options)) == near(
            expected(x, **options)
        )
    assert len(albert_tf.pipeline("fill-mask")("很[MASK]吃")) == 5
    # By name, and the only head of the task.
    topics = albert_tf.pipeline(path="albert_micro_zh:topics")
    assert topics.task == "multi-label" and topics.model.labels == TOPICS
    assert albert_tf.pipeline("ner", "albert_micro_zh").model.labels == ["PER", "LOC"]
    choices = "Choose one: albert_micro_zh:sentiment, albert_micro_zh:inference, alb"
    for task in ("text-classification", None):
        with pytest.raises(ValueError, match=choices):
            albert_tf.pipeline(task, "albert_micro_zh")
    with pytest.raises(ValueError, match="no choice_head. Its heads: .*topics"):
        albert_tf.pipeline("multiple-choice", "albert_micro_zh")


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ("text-classification", "is not trained for text-class.*no class"),
        (None, "without a fine-tuned head. Name the task: one of .*text-"),
        ("spam", "Unknown task 'spam'. Expected one of .*text-"),
    ],
)
def test_a_model_that_is_not_trained_for_the_task_raises(tmp_path, task, message):
    backbone = classifier(num_layers=1).backbone
    albert_tf.save_checkpoint(backbone, tmp_path / "tf1", layout="google")
    with pytest.raises(ValueError, match=message):
        albert_tf.pipeline(task, tmp_path / "tf1")


@pytest.mark.parametrize(
    "name", ["text-classification", "multi-label", "token-classification"]
)
def test_answers_below_a_score_are_withheld(name):
    answer, x = built(name)
    given = answer(x)
    scores = sorted(one["score"] for one in flat(given))
    abstain = scores[len(scores) // 2]
    for before, after in zip(given, answer(x, abstain=abstain), strict=True):
        if isinstance(before, list):
            assert after == [one for one in before if one["score"] >= abstain]
        elif before["score"] >= abstain:
            assert after == before
        else:
            assert after == {"label": "", "score": before["score"]}
    assert answer(x, abstain=0) == given
    if name == "text-classification":
        assert answer(x, top_k=None, abstain=1.0) == [[]] * len(x)


@pytest.mark.parametrize(
    ("task", "x", "options", "message"),
    [
        ("text-classification", "好", {"cased": 1}, "has no option cased. Its options"),
        ("text-classification", (["好"], ["好"] * 2), {}, r"the lengths \[1, 2\]"),
        ("text-classification", [3], {}, "Example 0 must be a string, or a dict"),
        ("question-answering", [{"context": "好"}], {}, "a dict or tuple of question"),
        (
            "question-answering",
            [("好", "好")],
            {"abstain": 0.5},
            "`abstain` is for text-",
        ),
        ("text-classification", "好", {"abstain": 80}, "a number from 0 to 1"),
    ],
)
def test_wrong_examples_and_options_raise(task, x, options, message):
    with pytest.raises(ValueError, match=message):
        built(task)[0](x, **options)
    with pytest.raises(ValueError, match="This model takes pairs of texts"):
        albert_tf.pipeline(classifier())("好")
