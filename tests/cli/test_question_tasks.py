"""`--task question-answering` and `multiple-choice`: from files to answers."""

import json
import shutil

import numpy as np
import pytest
from command_line import run
from conftest import GOLDEN
from small_classifier import CHARACTERS, SPECIAL

from albert_tf.data import read_choices, read_squad
from albert_tf.evaluation import cmrc_scores
from albert_tf.models import AlbertMultipleChoice, AlbertQuestionAnswering

CONTEXTS = [
    "我想吃鸡蛋，你想来。",
    "他去天上了！我前后多少见你？",
    "上下左右是好的。" * 3,
]


def squad(copies, unanswerable):
    """Questions for the first characters of a context; some have no answer."""
    entries = []
    for i in range(copies):
        for j, context in enumerate(CONTEXTS):
            answers = [{"text": context[:2], "answer_start": 0}]
            if unanswerable and j == 1:
                answers = []
            question = {"question": "谁", "id": f"{i}-{j}", "answers": answers}
            entries.append({"context": context, "qas": [question]})
    return {"data": [{"paragraphs": entries}]}


def choices(copies):
    rng = np.random.default_rng(0)
    documents = []
    for i in range(copies):
        texts = list(map(str, rng.permutation(["好", "差", "很"][: 2 + i % 2])))
        question = {"question": "谁", "choice": texts, "answer": "好"}
        documents.append([["我想吃。", "你来。"], [question], str(i)])
    return documents


def finetune(folder, task, train, dev):
    for name, content in (("train.json", train), ("dev.json", dev)):
        text = json.dumps(content, ensure_ascii=False)
        (folder / name).write_text(text, encoding="utf-8")
    shutil.copytree(GOLDEN / "google_v2", folder / "checkpoint")
    tokens = [*SPECIAL, *CHARACTERS]
    tokens += [f"[unused{i}]" for i in range(120 - len(tokens))]
    vocabulary = folder / "checkpoint" / "vocab.txt"
    vocabulary.write_text("\n".join(tokens) + "\n", encoding="utf-8")
    return run(
        *("finetune", "--task", task, "--checkpoint", folder / "checkpoint"),
        *("--train", folder / "train.json", "--dev", folder / "dev.json"),
        *("--output", folder / "model", "--epochs", 2, "--learning-rate", 3e-3),
        *("--sequence-length", 16),
    ).stdout


@pytest.fixture(scope="module")
def spans(tmp_path_factory):
    folder = tmp_path_factory.mktemp("spans")
    printed = finetune(folder, "question-answering", squad(8, True), squad(1, True))
    assert "train 24, dev 3 questions" in printed
    return folder


@pytest.mark.slow
def test_questions_keep_the_epoch_with_the_best_f1(spans):
    metrics = json.loads((spans / "model" / "metrics.json").read_text("utf-8"))
    assert metrics["dev"]["f1"] == max(metrics["history"]["val_f1"])
    model = AlbertQuestionAnswering.from_preset(str(spans / "model"))
    # Tuned, for the dev questions without an answer.
    assert model.null_threshold not in (None, 0.0)
    data = read_squad(spans / "dev.json")
    found = model.predict(data.x, verbose=0)
    scores = cmrc_scores([answer["answer"] for answer in found], data.texts)
    result = run("evaluate", spans / "model", spans / "dev.json", "--json")
    assert json.loads(result.stdout) == {"scores": "cmrc", **scores}
    assert scores["f1"] == metrics["dev"]["f1"]
    shown = run("evaluate", spans / "model", spans / "dev.json").stdout
    assert f"f1 {scores['f1']:.2f}" in shown and "CMRC 2018" in shown


@pytest.mark.slow
def test_questions_are_answered(spans):
    model = AlbertQuestionAnswering.from_preset(str(spans / "model"))
    lines = [f"谁\t{context}" for context in CONTEXTS]
    expected = model.predict((["谁"] * 3, CONTEXTS), verbose=0)
    printed = run("predict", spans / "model", "--json", *lines).stdout.splitlines()
    for context, answer, line in zip(CONTEXTS, expected, printed, strict=True):
        given = json.loads(line)
        assert given["answer"] == answer["answer"]
        assert context[given["start"] : given["end"]] == given["answer"]
    cells = run("predict", spans / "model", lines[0]).stdout.rstrip("\n").split("\t")
    answer = [expected[0]["answer"], f"{expected[0]['score']:.4f}"]
    assert cells == [*answer, "谁", CONTEXTS[0]]
    with pytest.raises(ValueError, match="question and its context with a tab"):
        run("predict", spans / "model", "谁")
    result = run("export", spans / "model", spans / "served" / "1")
    printed = " ".join(result.stdout.split())
    assert "takes question, context and gives answer, start, end, score." in printed


def test_what_the_reader_of_questions_tells(spans):
    content = squad(1, False)
    first, second, _ = content["data"][0]["paragraphs"]
    first["qas"][0]["answers"][0]["answer_start"] = 3
    second["qas"][0]["answers"][0]["text"] = "不在"
    path = spans / "odd.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.warns(UserWarning, match="1 answers were not where.*; 1 questions"):
        result = run("evaluate", spans / "model", path, "--json")
    assert json.loads(result.stdout)["total"] == 2


@pytest.fixture(scope="module")
def chosen(tmp_path_factory):
    folder = tmp_path_factory.mktemp("choices")
    printed = finetune(folder, "multiple-choice", choices(24), choices(6))
    assert "train 24, dev 6 questions" in printed
    return folder


@pytest.mark.slow
def test_choices(chosen):
    model = AlbertMultipleChoice.from_preset(str(chosen / "model"))
    data = read_choices(chosen / "dev.json")
    found = model.predict(data.x, verbose=0).argmax(-1)
    result = run("evaluate", chosen / "model", chosen / "dev.json", "--json")
    assert json.loads(result.stdout) == {
        "accuracy": pytest.approx(np.mean(found == data.labels)),
        "chance": pytest.approx((3 / 2 + 3 / 3) / 6),
        "total": 6,
    }
    rows = zip(data.contexts, data.questions, data.choices, strict=True)
    lines = ["\t".join([text.replace("\n", ""), q, *texts]) for text, q, texts in rows]
    printed = run("predict", chosen / "model", "--json", *lines).stdout.splitlines()
    given = [json.loads(line) for line in printed]
    for texts, answer in zip(data.choices, given, strict=True):
        assert answer["label"] == texts[answer["label_id"]]
        assert 1 / len(texts) <= answer["score"] <= 1
    with pytest.raises(ValueError, match="two choices at least"):
        run("predict", chosen / "model", "天\t谁\t好")
    result = run("export", chosen / "model", chosen / "served" / "1")
    printed = " ".join(result.stdout.split())
    assert "takes context, question, choices and gives label_id, prob" in printed


def test_choices_need_answers(chosen):
    content = choices(2)
    for _, (question,), _ in content:
        del question["answer"]
    (chosen / "test.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ValueError, match="test.json does not say which choices"):
        run("evaluate", chosen / "model", chosen / "test.json")
