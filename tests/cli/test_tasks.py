"""Every task on the command line: from a file of examples to answers and an export."""

import functools
import itertools
import json
import re
import typing
import unittest.mock
import warnings
from typing import NamedTuple

import keras
import numpy as np
import pytest
from command_line import as_options, refused, run, write_start
from lite_tasks import near
from small_classifier import VOCABULARY

import albert_tf
from albert_tf.data.files.tables import read_table
from albert_tf.models.pooling import POOLING_MODES
from albert_tf.training import fine_tuning
from albert_tf_cli.commands.finetune_options import Freeze, PoolingMode
from albert_tf_cli.shared.column_options import ColumnOptions
from albert_tf_cli.tasks import TASKS, Examples, split
from albert_tf_cli.tasks.data_warnings import warn_of_rare_class
from albert_tf_cli.tasks.reading import read_remembered
from albert_tf_lite.errors import AlbertError

pytestmark = pytest.mark.filterwarnings("ignore:Only .* dev examples")


class Case(NamedTuple):
    """A task, its data, and what its user sees."""

    file: str
    content: str
    summary: str
    score: str
    lines: list


def as_json(value):
    return json.dumps(value, ensure_ascii=False)


def question(text, answer):
    answers = [{"text": answer, "answer_start": 0}] if answer else []
    qas = [{"question": "谁", "id": text, "answers": answers}]
    return {"context": text, "qas": qas}


QUESTIONS = [
    question("我想吃鸡蛋，你想来。", "我想"),
    question("他去天上了！我前后见你？", "他去"),
    question("上下左右是好的。", ""),
] * 4
CHOICES = [
    [["我想吃。", "你来。"], [{"question": "谁", "choice": x, "answer": "好"}], "1"]
    for x in (["好", "差"], ["差", "好", "很"])
] * 4
ARTICLES = [
    {"article": "天地上下。我想吃鸡蛋。你来吗？中文天地！", "summary": "想吃鸡蛋"},
    {"article": ["你好吗？", "天地上下。", "他想吃鸡蛋。"], "summary": "吃鸡蛋"},
] * 2
TAGGED = (
    "小 B-PER\n明 I-PER\n在 O\n大 B-LOC\n地 I-LOC\n\n我 O\n见 O\n小 B-PER\n好 I-PER\n\n"
)
MULTI_LABEL = "label\ttext\n" + "好|吃\t好吃\n\t天地\n吃\t想吃鸡蛋\n好\t很好\n" * 5


CASES = {
    "multi-label": Case(
        file="a.tsv",
        content=MULTI_LABEL,
        summary="2 labels: 吃, 好. train 20, dev 20 examples",
        score="micro_f1",
        lines=["好吃", "天地", "想吃鸡蛋", "很好"],
    ),
    "regression": Case(
        file="a.csv",
        content="text_a,text_b,score\n你好,你好吗,5\n你好,天地,0.5\n好吃,很好吃,4\n鸡蛋,左右,0\n",
        summary="train 4, dev 4 examples",
        score="spearman",
        lines=["你好\t你好吗", "鸡蛋\t左右"],
    ),
    "token-classification": Case(
        file="a.txt",
        content=TAGGED * 10,
        summary="2 labels: LOC, PER. train 20, dev 20 examples",
        score="f1",
        lines=["小明在大地", "我见小好"],
    ),
    "question-answering": Case(
        file="a.json",
        content=as_json({"data": [{"paragraphs": QUESTIONS}]}),
        summary="train 12, dev 12 examples",
        score="f1",
        lines=["谁\t我想吃鸡蛋，你想来。", "谁\t好。"],
    ),
    "multiple-choice": Case(
        file="a.json",
        content=as_json(CHOICES),
        summary="train 8, dev 8 examples",
        score="accuracy",
        lines=["我想吃。\t谁\t好\t差", "你来。\t谁\t好\t很\t差"],
    ),
    "text-embedding": Case(
        file="a.tsv",
        content="score\ttext\ttext_b\n5\t好吃\t很好吃\n0\t天地\t你好\n2\t鸡蛋\t想吃\n",
        summary="train 3, dev 3 examples",
        score="spearman",
        lines=["好吃\t想吃", "天\t地"],
    ),
    "spelling-correction": Case(
        file="a.tsv",
        content="我很吃\t我很好\n很好\t很好\n他很不\t他很好\n",
        summary="train 3, dev 3 examples",
        score="correction_f1",
        lines=["我很吃", "好"],
    ),
    "summarization": Case(
        file="a.jsonl",
        content="\n".join(map(as_json, ARTICLES)),
        summary="train 4, dev 4 examples",
        score="rouge_l",
        lines=["天地上下。我想吃鸡蛋。你来吗？中文天地！"],
    ),
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Train a model for a case, once, and return its directory and what was printed."""

    @functools.cache
    def train(name):
        case, folder = CASES[name], tmp_path_factory.mktemp("task")
        data, output = folder / case.file, folder / "model"
        data.write_text(case.content, "utf-8")
        files = as_options(train=data, dev=data, output=output)
        training = as_options(task=name, epochs=2, learning_rate=0.01)
        result = run("finetune", *files, *training, *write_start(folder))
        return output, data, result.stdout

    return train


def examples_of(task, lines):
    """Lines of `predict` as the examples of a pipeline."""
    parts = [tuple(line.split("\t")) for line in lines]
    if task == "multiple-choice":
        return [(context, asked, choices) for context, asked, *choices in parts]
    return [x if len(x) > 1 else x[0] for x in parts]


def fast_and_slow(names):
    """Tasks as parameters, marked by how long they train."""
    nightly = ("multiple-choice", "regression", "spelling-correction", "text-embedding")
    slow = ("multi-label", "question-answering", "summarization")
    marks = dict.fromkeys(slow, pytest.mark.slow)
    marks |= dict.fromkeys(nightly, pytest.mark.nightly)
    return [pytest.param(x, marks=marks.get(x, ())) for x in names]


@pytest.mark.parametrize("name", fast_and_slow(CASES))
def test_a_task_from_a_file_to_answers(name, trained, monkeypatch, tmp_path):
    case, task = CASES[name], TASKS[name]
    model, data, printed = trained(name)
    assert printed.startswith(case.summary)
    metrics = json.loads((model / "metrics.json").read_text("utf-8"))
    assert metrics["settings"]["task"] == name
    # The best epoch is kept, with what was chosen on its dev examples.
    best = metrics["dev"][case.score]
    assert best == pytest.approx(max(metrics["history"][f"val_{case.score}"]))
    assert f"dev {case.score} {best:.4f}" in " ".join(printed.split())
    assert {"history.png", "task.json"} <= {x.name for x in model.iterdir()}
    assert not (model / ".training").exists()

    # The columns of the training are remembered.
    report = ("--report", tmp_path) if task.mistakes else ()
    values = json.loads(run("evaluate", model, data, "--json", *report).stdout)
    assert values[case.score] == pytest.approx(best, abs=1e-5)
    assert f"{values[case.score]:.4g}" in run("evaluate", model, data).stdout

    answers = run("predict", model, "--json", *case.lines).stdout.splitlines()
    answers = [json.loads(line) for line in answers]
    pipeline = albert_tf.pipeline(name, model)
    expected = pipeline(examples_of(name, case.lines))
    # By the network beside the model, if the task has one.
    assert near(answers) == json.loads(as_json(expected))
    if name in ("multi-label", "token-classification"):
        assert pipeline.model.temperature == metrics["temperature"] != 1
        assert f"scores {metrics['temperature']:.2f}" in " ".join(printed.split())
    rows = run("predict", model, *case.lines).stdout.splitlines()
    for answer, line, row in zip(answers, case.lines, rows, strict=True):
        shown = [word for word in re.split(r"\W+", row.removesuffix(line)) if word]
        assert row.endswith(f"\t{line}") and all(x in str(answer) for x in shown[:1])

    # Files as for `finetune`.
    x = task.read(str(data), ColumnOptions()).x
    examples = [*zip(*x, strict=True)] if isinstance(x, tuple) else map("".join, x)
    run("predict", model, data, "--json", "--output", tmp_path / "found.jsonl")
    lines = (tmp_path / "found.jsonl").read_text("utf-8").splitlines()
    for line, answer in zip(lines, pipeline([*examples]), strict=True):
        named = answer if isinstance(answer, dict) else {"answer": answer}
        values = list(near(json.loads(line)).values())
        assert values[-len(named) :] == list(json.loads(as_json(named)).values())


CHOICE = {"context": "我", "question": "谁", "choices": ["好", "差"]}
FILES = {
    "question-answering": (
        "a.csv",
        "id,question,context\n7,谁,我想吃。\n8,几时,他去。\n",
        ("--text-column", 2, "--text-b-column", 3),
        ["7", "8"],
    ),
    "multiple-choice": (
        "a.jsonl",
        "\n".join(as_json({"id": i, **CHOICE}) for i in (7, 8)),
        (),
        [7, 8],
    ),
    "text-embedding": ("a.csv", "id,text\n7,好吃\n8,天地\n", (), ["7", "8"]),
    "spelling-correction": ("a.csv", "id,text\n7,我很吃\n8,很好\n", (), ["7", "8"]),
    "summarization": ("a.csv", "id,content\n7,天地。你来。\n8,好。\n", (), ["7", "8"]),
    "token-classification": ("a.txt", "小明在大地\n我见小好\n", (), None),
}


@pytest.mark.parametrize("name", fast_and_slow(FILES))
def test_a_table_of_each_task_is_answered_beside_its_ids(name, trained, tmp_path):
    file, content, options, ids = FILES[name]
    (tmp_path / file).write_text(content, "utf-8")
    command = ("predict", trained(name)[0], tmp_path / file, *options)
    run(*command, "--output", tmp_path / "found.jsonl")
    lines = (tmp_path / "found.jsonl").read_text("utf-8").splitlines()
    found = list(map(json.loads, lines))
    assert [x.get("id") for x in found] == (ids or [None] * 2)
    assert len({len(x) for x in found}) == 1
    if name == "text-embedding":
        assert all(len(x["embedding"]) > 2 for x in found)


@pytest.mark.slow
def test_the_ids_of_questions_stay_and_their_files_take_no_columns(trained, tmp_path):
    model, data, _ = trained("question-answering")
    run("predict", model, data, "--output", tmp_path / "found.csv")
    ids = [question["context"] for question in QUESTIONS]
    assert [x["id"] for x in read_table(tmp_path / "found.csv").records()] == ids
    error = refused("evaluate", model, data, "--text-column", "question")
    assert "does not apply to question-answering, only to text-classif" in error


@pytest.mark.text_ops
def test_a_task_is_exported_and_says_what_it_takes(trained, tmp_path):
    model = trained("token-classification")[0]
    printed = run("export", model, tmp_path / "1").stdout
    assert "text; outputs: spans, labels, scores" in " ".join(printed.split())
    assert (tmp_path / "1" / "saved_model.pb").exists()


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("multi-label", marks=pytest.mark.nightly),
        pytest.param("token-classification", marks=pytest.mark.slow),
    ],
)
def test_training_that_hurts_leaves_the_checkpoint_as_it_is(name, trained, tmp_path):
    case, (model, data, _) = CASES[name], trained(name)
    wrong, output = tmp_path / case.file, tmp_path / "model"
    if name == "multi-label":
        opposite = {"": "好|吃", "好|吃": "", "好": "吃", "吃": "好"}
        head, *rows = (x.split("\t") for x in case.content.splitlines())
        rows = [head, *([opposite[label], text] for label, text in rows)]
        text = "".join(f"{label}\t{text}\n" for label, text in rows)
    else:
        # No entity stays right.
        text = re.sub("B-PER|I-PER", "O", case.content).replace("LOC", "PER")
        text = text.replace("我 O", "我 B-LOC")
    wrong.write_text(text, "utf-8")
    files = ("--train", wrong, "--dev", data, "--checkpoint", model)
    options = ("--epochs", 3, "--patience", 2, "--learning-rate", 0.1)
    command = ("finetune", "--task", name, *files, *options, "--output", output)
    printed = " ".join(run(*command).stdout.split())
    assert "learning rate: 0.1 " in printed and "lower" not in printed
    assert "Epoch 0, before training - " in printed
    metrics = json.loads((output / "metrics.json").read_text("utf-8"))
    start, best = metrics["start"], metrics["best_epoch"]
    assert best == 0 and metrics["dev"] == start
    assert len(metrics["history"]["loss"]) == 2
    assert "did not improve on the checkpoint; its weights are kept" in printed
    assert "unchanged" in (output / "README.md").read_text("utf-8")
    answers = [run("predict", x, *case.lines).stdout for x in (model, output)]
    assert answers[0] == answers[1]


# === Options of finetune ===


class Stopped(BaseException):
    """Ends a command where it would train."""


@pytest.fixture
def start_of_training(monkeypatch, tmp_path):
    """Return what `finetune` would start to train, given these options."""
    rows = "1\t好\ta\n0\t差\tb\n" * 5
    (tmp_path / "a.tsv").write_text(f"label\ttext\tdomain\n{rows}", "utf-8")

    def start(*options):
        fine_tune = unittest.mock.Mock(side_effect=Stopped)
        monkeypatch.setattr(fine_tuning, "fine_tune", fine_tune)
        data = ("--train", tmp_path / "a.tsv", "--dev", tmp_path / "a.tsv")
        with pytest.raises(Stopped):
            output = ("--output", tmp_path / "model")
            run("finetune", *data, *output, *write_start(tmp_path), *options)
        model, train, _, _, options = fine_tune.call_args.args
        return model, train, vars(options)

    yield start
    keras.config.set_dtype_policy("float32")


def settings_of(model):
    return model.get_compile_config()["task_settings"]


def test_defaults_and_options_reach_the_training(start_of_training):
    model, train, passed = start_of_training()
    assert (len(train[0]), set(train[1])) == (10, {"0", "1"})
    # Many epochs and small batches, because there are few examples.
    assert (passed["epochs"], passed["batch_size"]) == (30, 16)
    assert model.backbone.compute_dtype == "float32"
    # 256 by default, but this size has no more positions.
    assert model.preprocessor.sequence_length == 32
    given = {
        "epochs": 5,
        "batch_size": 8,
        "learning_rate": 0.002,
        "sequence_length": 20,
        "precision": "bfloat16",
        "pooling_mode": "mean",
        "freeze": "encoder",
        "patience": 2,
        "ema_momentum": 0.9,
        "label_column": "domain",
        "gradient_accumulation_steps": 4,
    }
    model, train, passed = start_of_training(*as_options(**given))
    expected = {"epochs": 5, "batch_size": 8, "freeze": "encoder", "patience": 2}
    assert expected.items() <= passed.items()
    assert settings_of(model)["learning_rate"] == 0.002
    assert settings_of(model)["ema_momentum"] == 0.9
    assert model.optimizer.gradient_accumulation_steps == 4
    assert model.pooling_mode == "mean"
    assert model.preprocessor.sequence_length == 20
    assert model.backbone.compute_dtype == "bfloat16"
    assert (model.labels, set(train[1])) == (["a", "b"], {"a", "b"})


def test_data_that_teach_little_are_named(start_of_training, tmp_path):
    train, dev = tmp_path / "train.tsv", tmp_path / "dev.tsv"
    train.write_text("label\ttext\n0\t好\n" + "1\t好\n" * 50, "utf-8")
    dev.write_text("label\ttext\n" + "1\t好\n" * 2, "utf-8")
    files = ("--train", train, "--dev", dev)
    copies = ["2 of 2 dev examples are training", "1 training texts have.*'好': '0'"]
    of_dev = ["Only 2 dev .* by 50%", "1 of 2 classes have no dev example: 0"]
    rare = "'0' has 1 training examples, '1' has 50.*--class-weight balanced"
    remedy = ("--class-weight", "balanced", "--monitor", "macro_f1")
    for options, also in (((), [rare]), (remedy, [])):
        expected = [*copies, *also, *of_dev]
        with pytest.warns(UserWarning) as found:
            *_, settings = start_of_training(*files, *options)
        messages = [str(warning.message) for warning in found]
        assert len(messages) == len(expected)
        assert all(map(re.search, expected, messages))
    assert settings["class_weight"] == {0: 25.5, 1: 0.51}
    assert settings["maximise"] == "macro_f1"
    with warnings.catch_warnings(action="error"):
        warn_of_rare_class({"PER": 3}, None)
    for task, y in (
        ("text-classification", ["a", "b", "b"]),
        ("multi-label", [[1, 1], [0, 1]]),
        ("token-classification", [[(0, 1, "b"), (1, 2, "a")], [(0, 1, "b")]]),
    ):
        examples = Examples(["ab"] * len(y), y, {"labels": ["a", "b"]})
        assert TASKS[task].class_counts(examples) == {"a": 1, "b": 2}


def test_the_same_command_is_recognised_as_the_same_training(
    start_of_training, tmp_path
):
    edited = tmp_path / "edited.txt"
    edited.write_text("\n".join([*VOCABULARY[:5], *VOCABULARY[:4:-1]]), "utf-8")
    options = {"seed": 1}, {"seed": 1}, {"seed": 2}, {"seed": 1, "vocab": edited}
    settings = []
    for given in options:
        named = ((f"--{name}", value) for name, value in given.items())
        *_, found = start_of_training(*itertools.chain(*named))
        settings.append(found["settings"])
    assert settings[0] == settings[1] == json.loads(json.dumps(settings[0]))
    # The settings contain a digest of the new weights and the vocabulary.
    assert len({x["model"] for x in settings}) == 3
    assert {*typing.get_args(PoolingMode)} == POOLING_MODES.keys()
    assert {*typing.get_args(Freeze)} == fine_tuning.FREEZABLE.keys()


def test_without_dev_a_share_of_each_class_is_held_back():
    labels, texts = [0] * 30 + [1] * 10, [str(i) for i in range(40)]
    train, dev = split(Examples((texts, texts[::-1]), labels), seed=3)
    assert (len(train), dev.y) == (36, [0] * 3 + [1])
    for part in (train, dev):
        assert [labels[int(x)] for x in part.x[0]] == part.y
        assert [39 - int(x) for x in part.x[0]] == list(map(int, part.x[1]))
    # A class with one example, and examples without classes.
    for y in ([0] * 39 + [1], [[(0, 1, "PER")], []] * 20):
        assert len(split(Examples(texts, y), seed=3)[1]) == 4


def test_the_separator_of_the_training_is_remembered(tmp_path):
    path, read = tmp_path / "several.tsv", TASKS["multi-label"].read
    path.write_text("label\ttext\n快~好\t一\n快\t二\n", "utf-8")
    settings = {"settings": {"label_separator": "~", "text_column": "text"}}
    (tmp_path / "metrics.json").write_text(json.dumps(settings), "utf-8")
    given = ColumnOptions(label_separator="~")
    for columns in (given, read_remembered(tmp_path, ColumnOptions(), lambda x: x)):
        examples = read(path, columns)
        assert examples.arguments["labels"] == ["好", "快"]
        assert np.array(examples.y).tolist() == [[1, 1], [0, 1]]
    # The classes of a model are found without it.
    known = examples.arguments
    assert np.array(read(path, given, known).y).tolist() == [[1, 1], [0, 1]]
    with pytest.raises(AlbertError, match="Line 2 .* '快~好'. Expected some of the"):
        read(path, ColumnOptions(), known)
