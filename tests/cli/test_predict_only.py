"""`predict --task`: of checkpoints, and of tasks that are only to predict."""

import json
import pathlib
import subprocess
import sys

import pytest
from lite_tasks import needs_onnx
from small_classifier import small_classifier
from typer.testing import CliRunner

import albert_tf
import albert_tf_cli

MICRO = pathlib.Path(__file__).parents[2] / "examples" / "albert_micro_zh"


def run(*arguments):
    return CliRunner().invoke(albert_tf_cli.app, list(map(str, arguments)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "lines", "examples"),
    [
        ("fill-mask", ["今天[MASK]气很好", "[MASK]天[MASK]好"], None),
        (
            "sentence-order",
            ["他打开了门。\t然后走了进去。"],
            [("他打开了门。", "然后走了进去。")],
        ),
    ],
)
def test_json_is_what_the_pipeline_gives(task, lines, examples):
    printed = run("predict", MICRO, "--task", task, "--json", *lines).stdout
    expected = albert_tf.pipeline(task, MICRO)(examples or lines)
    assert [json.loads(line) for line in printed.splitlines()] == expected


@pytest.mark.slow
def test_cells():
    text = "[MASK]天[MASK]好"
    (line,) = run("predict", MICRO, "--task", "fill-mask", text).stdout.splitlines()
    first, second, shown = line.split("\t")
    expected = albert_tf.pipeline("fill-mask", MICRO)(text)
    for cell, answers in zip((first, second), expected, strict=True):
        assert cell.split(" ") == [
            f"{x['token_str']}/{x['score']:.4f}" for x in answers
        ]
    assert shown == text
    line = run("predict", MICRO, "--task", "sentence-order", "你好。\t再见。").stdout
    assert line.split("\t")[0] in ("in_order", "swapped")


def test_classes_in_words(tmp_path):
    """Of a model of pairs, which here reads single texts, in a file too."""
    model = small_classifier(2, labels=["蕴含", "矛盾"], pairs=True)
    model.save_to_preset(str(tmp_path / "nli"))
    texts, classes = ["很好吃", "", "😀好"], ["好吃", "你", "中文"]
    expected = albert_tf.pipeline("zero-shot-classification", model)(
        texts, candidate_labels=classes
    )
    (tmp_path / "texts.csv").write_text('text\n很好吃\n""\n😀好\n', "utf-8")
    zero_shot = tmp_path / "nli", "--task", "zero-shot-classification"
    named = "--candidate-labels", "好吃， 你,,中文"
    for given in (texts, [tmp_path / "texts.csv"]):
        printed = run("predict", *zero_shot, *named, "--json", *given).stdout
        found = [json.loads(line) for line in printed.splitlines()]
        assert [x["sequence"] for x in found] == texts
        for one, other in zip(found, expected, strict=True):
            assert one["labels"] == other["labels"]
            assert one["scores"] == pytest.approx(other["scores"], abs=1e-5)
    best, score, _ = run("predict", *zero_shot, *named, "很好吃").stdout.split("\t")
    assert (best, score) == (found[0]["labels"][0], f"{found[0]['scores'][0]:.4f}")
    for options in (
        zero_shot,
        (*zero_shot, named[0], " ,"),
        (tmp_path / "nli", *named),
    ):
        error = run("predict", *options, "很好吃").exception
        assert "zero-shot-classification and --candidate-labels go" in str(error)


def test_there_is_nothing_to_train_or_score(tmp_path):
    model = albert_tf.pipeline("fill-mask", MICRO).model
    model.save_to_preset(str(tmp_path))
    assert run("predict", tmp_path, "今天[MASK]气很好").exit_code == 0
    result = run("evaluate", tmp_path, __file__)
    assert "is a model for fill-mask, which has no scores" in str(result.exception)
    result = run("finetune", "--task", "fill-mask")
    assert result.exit_code == 2 and "fill-mask" in result.output


@needs_onnx
def test_an_engine(tmp_path):
    model = small_classifier(2, labels=["坏", "好"])
    model.save_to_preset(str(tmp_path / "model"))
    texts = ["很好吃", "", "😀好"]
    options = ("--engine", "onnx", "--json")
    printed = run("predict", tmp_path / "model", *texts, *options).stdout
    expected = albert_tf.pipeline("text-classification", model, engine="onnx")(texts)
    assert [json.loads(line) for line in printed.splitlines()] == expected
    refused = run("predict", MICRO, "--task", "fill-mask", "[MASK]", *options)
    assert "fill-mask runs on TensorFlow only" in str(refused.exception)


@needs_onnx
def test_an_exported_file_answers_without_tensorflow(tmp_path):
    model = small_classifier(2, labels=["坏", "好"], pairs=True)
    file = tmp_path / "model.onnx"
    albert_tf.export.onnx(model, file)
    first, second = ["很好吃", "", "😀好"], ["好", "不好", "很" * 200]
    (tmp_path / "texts.csv").write_text(
        "text_a,text_b\n" + "".join(map("{},{}\n".format, first, second)), "utf-8"
    )
    program = """
import sys, albert_tf_cli
sys.argv[0] = "albert-tf"
try:
    albert_tf_cli.main()
finally:
    assert not {"tensorflow", "keras"} & set(sys.modules)
"""
    command = [sys.executable, "-c", program, "predict", str(file), "--json"]
    done = subprocess.run(
        [*command, str(tmp_path / "texts.csv")],
        capture_output=True,
        text=True,
        cwd=pathlib.Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr
    assert "Warning: 1 of 3 texts are longer" in done.stderr
    opened = albert_tf.export.OnnxModel(file)
    with pytest.warns(UserWarning, match="longer"):
        expected = opened.answers((first, second))
    assert [json.loads(line) for line in done.stdout.splitlines()] == expected


@needs_onnx
def test_what_an_exported_file_does_not_take(tmp_path):
    file = tmp_path / "model.onnx"
    assert "model.onnx is no file" in str(run("predict", file, "好").exception)
    file.write_bytes(b"cut")
    assert "was not written by albert_tf" in str(run("predict", file, "好").exception)
    for option in (["--explain"], ["--engine", "onnx"], ["--task", "fill-mask"]):
        refused = run("predict", file, "好", *option)
        assert "not for an exported file" in str(refused.exception)
    albert_tf.export.onnx(small_classifier(2), file)
    with pytest.warns(UserWarning, match="longer"):
        line = run("predict", file, "好" * 300, "--top-k", "0").stdout
    assert len(line.split("\t")) == 5
