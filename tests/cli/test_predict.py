"""`albert-tf predict | evaluate --report`: lines, files, engines and explanations."""

import json
import pathlib
import re
import sys
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from command_line import open_once, refused, run, write_start
from lite_tasks import needs_onnx
from rich.console import Console
from small_classifier import LABELS, TEXTS, small_classifier

import albert_tf
from albert_tf.data.files.tables import read_table
from albert_tf.tools import IntegratedGradients
from albert_tf_cli.shared.exported_files import open_network
from albert_tf_cli.tasks import answer_output
from albert_tf_lite import network_files
from albert_tf_lite.errors import AlbertError

MICRO = pathlib.Path(__file__).parents[2] / "examples" / "albert_micro_zh"
NAMES = ["好评", "[b]<b>差", "中"]

pytestmark = pytest.mark.filterwarnings("ignore:.* texts are longer than")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A classifier of three classes, one of pairs, and data."""
    folder = tmp_path_factory.mktemp("predict")
    small_classifier(labels=NAMES).save_to_preset(folder / "single")
    small_classifier(2, pairs=True).save_to_preset(folder / "pairs")
    rows = [
        f"{NAMES[x]}\t{text or '空'}\n" for x, text in zip(LABELS, TEXTS, strict=True)
    ]
    (folder / "test.tsv").write_text("label\ttext\n" + "".join(rows * 3))
    with open_once(folder):
        yield folder


# === What is read, and what is printed beside it ===

LINES = {
    "很好".encode(): "很好",
    b"": "",
    b"  ": "  ",
    b"\xff\xfe broken \xe5\xbe": "\ufffd\ufffd broken \ufffd",
    "房间\u2028很\x85干净\x0c😀👍🏽".encode(): "房间\u2028很\x85干净\x0c😀👍🏽",
    "有\t制表符".encode(): "有\t制表符",
    "[red]括号[/red]".encode(): "[red]括号[/red]",
    b"carriage return\r": "carriage return",
    "好".encode() * 10_000: "好" * 10_000,
    b"--help": "--help",
}


def test_each_line_is_answered_beside_its_own_text(folder):
    model = small_classifier(labels=NAMES)
    texts = list(LINES.values())
    outputs = model.predict(texts, verbose=0)
    probabilities = np.exp(outputs) / np.exp(outputs).sum(axis=1, keepdims=True)
    expected = [
        f"{NAMES[row.argmax()]}\t{row.max():.4f}\t{text}\n"
        for text, row in zip(texts, probabilities, strict=True)
    ]
    options = ("predict", folder / "single", "--batch-size", 3)
    assert run(*options, input=b"\n".join(LINES)).stdout == "".join(expected)
    assert run(*options, "--", texts[0], texts[-1]).stdout == expected[0] + expected[-1]
    assert run(*options, input=b"").stdout == ""
    # Standard input is decoded as files are.
    for encoding in ("gb18030", "utf-16"):
        data = "好\r很好\r想吃鸡蛋，你来吗\r".encode(encoding)
        message = f"Standard input is {encoding}, not UTF-8"
        with pytest.warns(UserWarning, match=message):
            rows = run(*options, input=data).stdout.splitlines()
        assert [x.split("\t")[2] for x in rows] == ["好", "很好", "想吃鸡蛋，你来吗"]
    assert "Standard input looks like JSON" in refused(*options, input=b'{"text": "a"}')


def test_top_k_and_json(folder):
    predict = ("predict", folder / "single", "太差了")
    label, score, text = run(*predict).stdout.rstrip("\n").split("\t")
    *cells, last = run(*predict, "--top-k", 0).stdout.rstrip("\n").split("\t")
    assert [*cells[:2], last] == [label, score, text] and set(cells[::2]) == set(NAMES)
    answer = json.loads(run(*predict, "--top-k", 1, "--json").stdout)
    assert answer["label"] == label and f"{answer['score']:.4f}" == score


def test_an_answer_below_a_score_has_no_label(folder):
    predict = ("predict", folder / "single", "太差了")
    _, score, text = run(*predict).stdout.rstrip("\n").split("\t")
    above = f"{float(score) + 0.01:.4f}"
    assert run(*predict, "--abstain", above).stdout == f"\t{score}\t{text}\n"
    answer = json.loads(run(*predict, "--abstain", above, "--json").stdout)
    assert answer["label"] == "" and f"{answer['score']:.4f}" == score


def test_a_file_is_answered_as_its_texts(folder, tmp_path):
    texts = ["很好", "太差了", "一般, 般"]
    predict = ("predict", folder / "single")
    expected = run(*predict, *texts).stdout
    (tmp_path / "a.txt").write_text("\n".join(texts) + "\n", "utf-8")
    # With a header, with ids, or in a workbook, a file of texts is a table.
    (tmp_path / "b.txt").write_text("\n".join(["文本", *texts]), "utf-8")
    (tmp_path / "c.txt").write_text("1\t很好\n2\t太差了\n3\t一般, 般\n", "utf-8")
    table = pd.DataFrame({"编号": range(len(texts)), "内容": texts})
    table.to_csv(tmp_path / "a.csv", index=False)
    table.to_excel(tmp_path / "a.xlsx", index=False)
    title = "某年评论汇总\n"
    numbered = (tmp_path / "c.txt").read_text("utf-8")
    (tmp_path / "d.txt").write_text(f"{title}编号\t内容\n{numbered}", "utf-8")
    with pd.ExcelWriter(tmp_path / "b.xlsx") as book:
        table.iloc[:1].to_excel(book, sheet_name="旧", index=False)
        table.to_excel(book, sheet_name="新", index=False, startrow=2)
        book.sheets["新"]["A1"] = title
    answered = run(*predict, tmp_path / "b.xlsx", "--sheet", "新").stdout
    assert answered == expected
    for name in ("a.csv", "a.xlsx", "a.txt", "b.txt", "c.txt", "d.txt"):
        assert run(*predict, tmp_path / name).stdout == expected
    # Pairs have two columns.
    (tmp_path / "b.csv").write_text("text_a,text_b\n你好,你还好吗\n,\n", "utf-8")
    pairs = run("predict", folder / "pairs", tmp_path / "b.csv").stdout
    assert pairs == run("predict", folder / "pairs", "你好\t你还好吗", "\t").stdout
    assert pairs.splitlines()[0].endswith("\t你好\t你还好吗")


def test_an_output_has_a_record_per_text_with_all_columns(folder, tmp_path):
    table = 'id,text,label,score\n007,"两\t行，\n很""好""",好,0.5\n008,,,\n'
    (tmp_path / "a.csv").write_text(table, "utf-8")
    predict = ("predict", folder / "single", tmp_path / "a.csv")
    lines = run(*predict).stdout.splitlines()
    assert len(lines) == 2 and lines[0].endswith('\t两\t行， 很"好"')
    for name, *options in (("a.jsonl",), ("a", "--json"), ("found.csv",), ("a.tsv",)):
        output = tmp_path / name
        printed = run(*predict, "--output", output, *options).stdout
        assert "2 answers are in" in printed
        if name == "a":
            output = output.rename(tmp_path / "b.jsonl")
        first, second = read_table(output).records()
        gap = "\t \n" if name != "a.tsv" else "   "
        text = f'两{gap[0]}行，{gap[2]}很"好"'
        assert [*first.values()][:3] == ["007", text, "好"]
        assert [*second.values()][:3] == ["008", "", ""]
        label, score, *_ = lines[0].split("\t")
        assert first["predicted_label"] == label and first["score"] == "0.5"
        score = pytest.approx(float(score), abs=1e-4)
        assert float(first["predicted_score"]) == score
    # An earlier answer survives a later one.
    again = ("predict", folder / "single", tmp_path / "found.csv")
    run(*again, "--output", tmp_path / "again.csv")
    later = read_table(tmp_path / "again.csv").records()[0]
    assert {*later} - {*first} == {"predicted_label_2", "predicted_score_2"}
    for name, message in (
        ("found.csv", "found.csv already exists"),
        ("a.xlsx", "no known format"),
        ("a.parquet", "pip install pyarrow"),
    ):
        with mock.patch.dict(sys.modules, {"pyarrow": None}):
            assert message in refused(*predict, "--output", tmp_path / name)


def test_standard_input_by_its_name_and_a_home_in_quotes(folder, monkeypatch):
    monkeypatch.setenv("HOME", str(folder))
    expected = run("predict", folder / "single", "很好").stdout
    assert run("predict", "~/single", "-", input="很好\n".encode()).stdout == expected
    run("predict", "~/single", "很好", "--output=~/home.tsv")
    command = ("predict", "~/single", "~/test.tsv", "--output", "~/home.tsv")
    assert "home.tsv already exists" in refused(*command)


# === Checkpoints, engines and exported files ===


def test_fill_mask_and_sentence_order_of_a_checkpoint(tmp_path):
    text, pair = "[MASK]天[MASK]好", "他打开了门。\t然后走了进去。"
    pipeline = albert_tf.pipeline("sentence-order", MICRO)
    expected = pipeline(tuple(pair.split("\t")))
    predict = ("predict", MICRO, "--task", "sentence-order", pair)
    row = run(*predict).stdout
    assert row == f"{expected['label']}\t{expected['score']:.4f}\t{pair}\n"
    predict = ("predict", MICRO, "--task", "fill-mask", text)
    answer = albert_tf.pipeline("fill-mask", MICRO)(text)
    assert json.loads(run(*predict, "--json").stdout) == answer
    cells = [[f"{x['token_str']}/{x['score']:.4f}" for x in row] for row in answer]
    assert run(*predict).stdout == "\t".join([*map(" ".join, cells), text]) + "\n"
    pipeline.model.save_to_preset(str(tmp_path))
    error = refused("evaluate", tmp_path, __file__)
    assert "is a model for sentence-order, which cannot be evaluated" in error


def test_classes_in_words(tmp_path):
    model = small_classifier(2, labels=["蕴含", "矛盾"], pairs=True)
    model.save_to_preset(str(tmp_path))
    pipeline = albert_tf.pipeline("zero-shot-classification", model)
    best = pipeline("很好吃", candidate_labels=["好吃", "中文"])
    zero_shot = ("predict", tmp_path, "--task", "zero-shot-classification", "很好吃")
    row = run(*zero_shot, "--candidate-labels", "好吃，,中文").stdout
    assert row == f"{best['labels'][0]}\t{best['scores'][0]:.4f}\t很好吃\n"
    assert "zero-shot-classification needs --candidate-labels" in refused(*zero_shot)


@needs_onnx
def test_an_engine_and_an_exported_file(folder, tmp_path):
    model = small_classifier(labels=NAMES)
    texts = ["很好吃", "", "😀好", "好" * 300]
    file = tmp_path / "model.onnx"
    albert_tf.export.onnx(model, file)
    whole = albert_tf.pipeline("text-classification", model)
    for command, expected in (
        ((folder / "single", "--engine", "onnx"), whole(texts, engine="onnx")),
        ((file,), albert_tf.export.OnnxModel(file).answers(texts)),
    ):
        printed = run("predict", *command, "--json", *texts).stdout
        answers = [json.loads(line) for line in printed.splitlines()]
        assert answers == expected
        assert [x["label"] for x in answers] == [x["label"] for x in whole(texts)]
    assert len(run("predict", file, texts[0], "--top-k", 0).stdout.split("\t")) == 7


# === Explanations and reports ===


def test_explain_colours_the_text(folder, monkeypatch):
    predict = ("predict", folder / "single", "很好吃")
    plain = run(*predict).stdout
    assert run(*predict, "--explain").stdout == plain
    values = json.loads(run(*predict, "--explain", "--json").stdout)
    found = IntegratedGradients(small_classifier(labels=NAMES))("很好吃")
    assert values["answer"]["label"] == values["explanation"]["label"] == found.label
    (characters,) = values["explanation"]["characters"]
    assert characters == pytest.approx(found.values[0].tolist(), abs=1e-5)
    colours = {"color_system": "truecolor", "highlight": False, "markup": False}
    monkeypatch.setattr(
        answer_output, "console", Console(force_terminal=True, **colours)
    )
    coloured = run(*predict, "--explain").stdout
    assert "\x1b[30;48;2;" in coloured
    assert re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", coloured).endswith(plain)


@pytest.mark.filterwarnings("ignore:Only 3 dev examples")
def test_invalid_labels_are_skipped_with_a_count(folder, tmp_path):
    (tmp_path / "a.tsv").write_text("label\ttext\n好评\t好\n\t差\n中\t坏\n无\t不\n")
    evaluate = ("evaluate", folder / "single", tmp_path / "a.tsv", "--json")
    with pytest.warns(UserWarning, match="2 labels are invalid: Line 3 .* Skipped"):
        result = run(*evaluate, "--skip-invalid")
    assert json.loads(result.stdout)["macro avg"]["support"] == 2
    train = ("--train", tmp_path / "a.tsv", "--dev", tmp_path / "a.tsv")
    options = (*write_start(tmp_path), "--output", tmp_path / "out", "--skip-invalid")
    with pytest.warns(UserWarning, match="Line 3 of .*a.tsv has the label ''. Skip"):
        result = run("finetune", *train, *options, "--epochs", 1)
    assert "train 3, dev 3 examples" in result.stdout


@pytest.mark.slow
@needs_onnx
def test_a_failed_export_after_a_training_is_said(folder, tmp_path, monkeypatch):
    output, file = tmp_path / "out", tmp_path / "out" / "model.onnx"
    train = ("finetune", "--train", folder / "test.tsv", *write_start(tmp_path))
    train = (*train, "--output", output, "--epochs", 1)
    failing = mock.Mock(side_effect=RuntimeError("This layer has no such operation."))
    with mock.patch("albert_tf.export.onnx", failing):
        result = run(*train, code=1)
    message = str(result.exception)
    assert isinstance(result.exception, AlbertError)
    assert f"{output} is complete, but model.onnx" in message
    assert "no such operation" in message
    # The training is kept, and the command in the message writes the file.
    names = {path.name for path in output.iterdir()}
    assert {"task.weights.h5", "metrics.json", "README.md"} <= names
    assert not names & {"model.onnx", ".training"}
    command = message.split("run: albert-tf ")[1].split()
    run(*command)
    assert open_network(str(output)).path == str(file)


@pytest.mark.slow
@needs_onnx
def test_finetune_keeps_int8_where_it_agrees_and_predict_says_so(
    folder, tmp_path, monkeypatch
):
    lines = (folder / "test.tsv").read_text("utf-8").splitlines(keepends=True)
    header, *rows = lines
    (tmp_path / "dev.tsv").write_text("".join([header] + 10 * rows), "utf-8")
    files = ("--train", folder / "test.tsv", "--dev", tmp_path / "dev.tsv")
    train = ("finetune", *files, *write_start(tmp_path), "--output", tmp_path / "out")
    train = (*train, "--epochs", 1)
    int8, predict = (
        tmp_path / "out/model.int8.onnx",
        ("predict", tmp_path / "out", "好", "--json"),
    )
    monkeypatch.setattr(network_files, "LEAST_AGREEMENT", 0.0)
    assert "of 210 dev examples: predict uses int8" in run(*train).stdout
    found, plain = run(*predict), run(*predict, "--precision", "float32")
    assert "of 210 dev examples. For float32: --precision float32" in found.stderr
    assert not plain.stderr and plain.stdout != found.stdout
    assert run("predict", int8, "好", "--json").stdout == found.stdout
    assert run(*predict, "--precision", "int8").stdout == found.stdout
    for options in (("--engine", "onnx"), ("--explain",)):
        refusal = refused(*predict, "--precision", "int8", *options)
        assert "--precision does not apply to" in refusal
    monkeypatch.setattr(network_files, "LEAST_AGREEMENT", 1.1)
    assert "predict uses float32, because" in run(*train, "--overwrite").stdout
    assert not int8.exists() and not run(*predict).stderr


def test_a_report_of_a_classifier(folder, tmp_path, monkeypatch):
    report = tmp_path / "report"
    evaluate = ("evaluate", folder / "single", folder / "test.tsv", "--json")
    result = run(*evaluate, "--report", report)
    assert "report.html" in result.stderr
    values = json.loads((report / "report.json").read_text("utf-8"))
    scores = values["scores"]
    assert scores == json.loads(result.stdout)
    assert scores["macro_f1"] == pytest.approx(scores["macro avg"]["f1-score"])
    everything, *_, most = scores["coverage"]
    assert everything["accuracy"] == scores["accuracy"] and most["abstain"] == 0.95
    assert sum(row["count"] for row in scores["reliability"]) == 3 * len(TEXTS)
    assert 0 < scores["ece"] < 1 and 0 < scores["brier"] < 2
    (mistakes,) = values["lists"].values()
    # As many as the matrix has beside its diagonal.
    matrix = np.array(scores["confusion_matrix"])
    assert len(mistakes) == matrix.sum() - matrix.trace() > 0
    lines = (folder / "test.tsv").read_text().split("\n")
    for row in mistakes:
        assert lines[row["example"]] == f"{row['label']}\t{row['text']}"
        assert row["predicted"] != row["label"] and row["of_label"] < row["probability"]
    page = (report / "report.html").read_text("utf-8")
    assert "<span style=" in page and "<b>" not in page
    assert page.count("<rect ") == len(scores["reliability"])
    assert {path.name for path in report.iterdir()} == {"report.html", "report.json"}
