"""Help in two languages, and the command line as a shell starts it."""

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
from processes import PATH
from rich.cells import cell_len
from small_classifier import small_classifier
from typer.testing import CliRunner

import albert_tf
import albert_tf_cli
from albert_tf_cli.commands import finetune_options
from albert_tf_cli.shared import chinese_help

ALBERT_TF = pathlib.Path(sys.executable).with_name("albert-tf")
COMMANDS = typer.main.get_command(albert_tf_cli.app).commands


# === In this process ===

LOCALE = dict.fromkeys(("LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG"))


def help_page(*command, **environment):
    environment = {**LOCALE, "COLUMNS": "80", **environment}
    return CliRunner(env=environment).invoke(albert_tf_cli.app, command).output


def without_spaces(text):
    return "".join(text.split())


def test_chinese_help_has_no_english_and_its_table_no_unused_text(monkeypatch):
    texts, wanted = chinese_help.texts(), set()

    class Watched(dict):
        def get(self, key, default=None):
            wanted.add(key)
            return super().get(key, default)

    monkeypatch.setattr(chinese_help, "texts", lambda: Watched(texts))
    pages = [help_page("--help", LANG="zh_CN.UTF-8")]
    pages += [help_page(name, "--help", LANG="zh_CN.UTF-8") for name in COMMANDS]
    # Every text of the parsers is in the table, and every text of the table in use.
    assert wanted == texts.keys()
    held = [x.help for command in COMMANDS.values() for x in command.params]
    assert {x for x in held if x} <= wanted
    shown = without_spaces("".join(pages))
    assert [x for x in texts.values() if without_spaces(x) not in shown] == []
    for page in pages:
        page = re.sub(r"(?m)^  示例：\n(    .*\n)+", "", page)
        assert not re.search(r"[A-Za-z]+ [a-z]+ [a-z]+", page)
        # No line is too long, or begins with the end of a sentence.
        assert max(map(cell_len, page.splitlines())) <= 80
        assert not re.search("(?m)^ *[，。；：、）]", page)


@pytest.mark.parametrize(
    ("environment", "is_chinese"),
    [
        ({}, False),
        ({"LANG": "C"}, False),
        ({"LANG": "zh"}, True),
        ({"LANG": "zh_TW.UTF-8"}, True),
        ({"LC_ALL": "en_US.UTF-8", "LANG": "zh_CN.UTF-8"}, False),
        ({"LC_MESSAGES": "zh_CN.UTF-8", "LANG": "en_US.UTF-8"}, True),
        ({"LANGUAGE": "fr:zh_CN:en", "LANG": "en_US.UTF-8"}, True),
        ({"LANGUAGE": "en:zh_CN", "LANG": "zh_CN.UTF-8"}, False),
        ({"LANGUAGE": "zh_CN", "LC_ALL": "C.UTF-8"}, False),
    ],
)
def test_the_language_of_help_is_that_of_the_environment(environment, is_chinese):
    page = help_page("inspect", "--help", **environment)
    assert page.startswith("用法：" if is_chinese else "Usage: ")
    assert bool(re.search("[\u4e00-\u9fff]", page)) == is_chinese
    # Errors are in English.
    assert help_page("inspect", **environment).startswith("Usage: ")


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_help_in_groups_with_examples(command):
    lines = run(command, "--help").stdout.splitlines()
    assert {"  Example:", "  Examples:"} & {*lines}
    assert {"Output:", "Data:", "Model:", "Arguments:"} & {*lines}
    for parameter in COMMANDS[command].params:
        assert parameter.help or parameter.name == "help"


def test_an_option_identifies_a_training_or_not():
    identifying, others = finetune_options.IDENTIFYING, finetune_options.OTHERS
    names = [x.name for x in COMMANDS["finetune"].params if x.name != "help"]
    assert sorted([*identifying, *others]) == sorted(names)


# === As a shell starts it ===


def start(*command, cwd, **environment):
    """Start a process without the settings of these tests."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("TF_CPP")}
    return subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        encoding=environment.get("PYTHONIOENCODING", "utf-8"),
        cwd=cwd,
        env={**kept, "PYTHONPATH": PATH, **environment},
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
    # A slow machine says every 30 seconds that it is at work.
    lines = re.sub("(?m)^predict: running for .*\n", "", done.stderr).splitlines()
    message = "Warning: 1 of 2 texts are longer than sequence_length="
    assert [x.partition("29 ")[0] for x in lines] == [message]


@pytest.mark.slow
@needs_onnx
def test_a_terminal_without_some_characters(tmp_path):
    file = tmp_path / "model.onnx"
    albert_tf.export.onnx(small_classifier(2, labels=["坏", "😀"]), file)
    (tmp_path / "a.txt").write_text("好🙄\n很好\n", "utf-8")
    for options in ((), ("--json",)):
        command = (ALBERT_TF, "predict", file, "a.txt", *options)
        done = start(*command, cwd=tmp_path, PYTHONIOENCODING="gbk")
        assert done.returncode == 0 and done.stdout.count("\n") == 2
        assert ("Standard output is gbk" in done.stderr) == (not options)
        rows = done.stdout.splitlines()
        if options:
            assert {json.loads(x)["label"] for x in rows} <= {"坏", "😀"}
        else:
            assert re.fullmatch("(坏|[?])\t0[.]\\d+\t好[?]", rows[0])


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
