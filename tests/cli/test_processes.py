"""Help, and the command line as a shell starts it."""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest
import typer
from command_line import run
from lite_tasks import needs_onnx
from small_classifier import small_classifier

import albert_tf
import albert_tf_cli
from albert_tf_cli import fine_tuning

ROOT = pathlib.Path(__file__).resolve().parents[2]
ALBERT_TF = pathlib.Path(sys.executable).with_name("albert-tf")
COMMANDS = typer.main.get_command(albert_tf_cli.app).commands


def start(*command, cwd, **environment):
    """Start a process without the settings of these tests."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("TF_CPP")}
    return subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        encoding=environment.get("PYTHONIOENCODING", "utf-8"),
        cwd=cwd,
        env={**kept, "PYTHONPATH": str(ROOT), **environment},
    )


# `-X importtime` misses what is imported while native output is hidden.
WATCHED = """
import sys, albert_tf_cli
sys.argv[0] = "albert-tf"
try:
    albert_tf_cli.main()
finally:
    print(*{"tensorflow", "keras"} & {*sys.modules}, file=sys.stderr)
"""


def start_watched(*command, cwd):
    """Start a command that may not import TensorFlow; return the process."""
    done = start(sys.executable, "-c", WATCHED, *command, cwd=cwd)
    assert done.stderr.endswith("\n") and done.stderr.split("\n")[-2] == ""
    return done


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_help_in_groups_with_examples(command):
    lines = run(command, "--help").stdout.splitlines()
    assert {"  Example:", "  Examples:"} & {*lines}
    assert {"Output:", "Data:", "Model:", "Arguments:"} & {*lines}
    for parameter in COMMANDS[command].params:
        assert parameter.help or parameter.name == "help"


def test_options_that_do_not_identify_a_training_exist():
    names = {x.name for x in COMMANDS["finetune"].params}
    assert names.issuperset(fine_tuning.NOT_IDENTIFYING)


def test_help_and_mistakes_come_without_tensorflow(tmp_path):
    assert run("--version").stdout == f"albert-tf {albert_tf.__version__}\n"
    done = start_watched("--help", cwd=tmp_path)
    assert done.returncode == 0 and all(name in done.stdout for name in COMMANDS)
    done = start_watched("predict", "nowhere", "很好", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Error: There is no checkpoint at nowhere")


@pytest.mark.slow
def test_predict_prints_nothing_of_tensorflow(tmp_path):
    small_classifier(2, labels=["坏", "好"]).save_to_preset(tmp_path / "model")
    texts = ["很好吃", "好" * 200]
    done = start(ALBERT_TF, "predict", tmp_path / "model", *texts, cwd=tmp_path)
    assert done.returncode == 0
    assert [x.split("\t")[2] for x in done.stdout.splitlines()] == texts
    (warning,) = done.stderr.splitlines()
    assert warning.startswith("Warning: 1 of 2 texts are longer than sequence_length=")


@pytest.mark.slow
@needs_onnx
def test_a_terminal_without_some_characters(tmp_path):
    file = tmp_path / "model.onnx"
    albert_tf.export.onnx(small_classifier(2, labels=["坏", "😀"]), file)
    (tmp_path / "a.txt").write_text("好🙄\n很好\n", "utf-8")
    for options in ((), ("--json",)):
        done = start(
            *(ALBERT_TF, "predict", file, "a.txt", *options),
            cwd=tmp_path,
            PYTHONIOENCODING="gbk",
        )
        assert done.returncode == 0 and done.stdout.count("\n") == 2
        assert ("Standard output is gbk" in done.stderr) == (not options)
        if options:
            labels = {json.loads(x)["label"] for x in done.stdout.splitlines()}
            assert labels <= {"坏", "😀"}
        else:
            assert re.fullmatch(
                "(坏|[?])\t0[.]\\d+\t好[?]", done.stdout.splitlines()[0]
            )


def test_names_are_completed(tmp_path):
    def complete(*words):
        typed = {"COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
        asked = {"_ALBERT_TF_COMPLETE": "complete_bash", **typed}
        return start(ALBERT_TF, cwd=tmp_path, **asked).stdout.split()

    assert complete("albert-tf", "pre") == ["pretrain-data", "pretrain", "predict"]
    releases = complete("albert-tf", "inspect", "albert_t")
    assert "albert_tiny_zh" in releases and all(x[:8] == "albert_t" for x in releases)
    assert complete("albert-tf", "finetune", "--checkpoint", "zzz") == []


@pytest.mark.slow
@needs_onnx
def test_an_exported_file_answers_without_tensorflow(tmp_path):
    file = tmp_path / "model.onnx"
    model = small_classifier(2, labels=["坏", "好"], pairs=True)
    model.save_to_preset(tmp_path)
    albert_tf.export.onnx(model, file, preset=tmp_path)
    first, second = ["很好吃", "", "😀好"], ["好", "不好", "很"]
    rows = "".join(map("{},{}\n".format, first, second))
    (tmp_path / "texts.csv").write_text(f"text_a,text_b\n{rows}", "utf-8")
    expected = albert_tf.export.OnnxModel(file).answers((first, second))
    for path in (file, tmp_path):
        done = start_watched("predict", path, "texts.csv", "--json", cwd=tmp_path)
        assert [json.loads(line) for line in done.stdout.splitlines()] == expected
