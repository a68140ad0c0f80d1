"""The demo: that its steps fit together. `make demo` runs them, for a minute."""

import importlib.util
import pathlib
import shlex
import shutil
import subprocess
import sys

import pytest
import typer

import albert_tf_cli
from albert_tf.data.tables import read_labelled_texts
from albert_tf.tokenizers import WordPieceTokenizer

ROOT = pathlib.Path(__file__).parents[2]
CHECKPOINT = ROOT / "examples" / "albert_micro_zh"


@pytest.fixture
def demo(tmp_path, monkeypatch):
    """The module `examples/demo.py`, which writes elsewhere."""
    spec = importlib.util.spec_from_file_location("demo", ROOT / "examples" / "demo.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "OUTPUT", tmp_path / "output")
    monkeypatch.delenv("TEXT", raising=False)
    # It changes the directory, which is to be undone.
    monkeypatch.chdir(tmp_path)
    return module


@pytest.fixture
def steps(demo, monkeypatch):
    """The steps it would run: titles, and commands as lists of strings."""

    def run():
        recorded = []

        def record(title, *command, **options):
            recorded.append((title, [str(part) for part in command]))
            return ""

        monkeypatch.setattr(demo, "run", record)
        demo.main()
        return recorded

    return run


def parsed(command):
    """The name of the command, and its options as the command line reads them."""
    group = typer.main.get_command(albert_tf_cli.app)
    name, *arguments = command[1:]
    context = group.commands[name].make_context(name, arguments)
    return name, context.params


# === Its steps ===


def test_the_command_line_understands_every_step(steps):
    *commands, serve = [command for _, command in steps()]
    assert all(pathlib.Path(command[0]).exists() for command in commands)
    names = [parsed(command)[0] for command in commands]
    assert names == ["inspect", "finetune", "evaluate", "export"]
    assert serve[:2] == [sys.executable, "examples/serve.py"]


def test_a_step_takes_what_the_one_before_wrote(steps, demo):
    *commands, serve = [command for _, command in steps()]
    inspect, finetune, evaluate, export = (parsed(command)[1] for command in commands)
    assert finetune["checkpoint"] == inspect["checkpoint"]
    assert evaluate["model"] == export["model"] == finetune["output"]
    assert evaluate["file"] == finetune["test"]
    assert serve[2] == export["path"]
    for path in (finetune["output"], export["path"]):
        assert pathlib.Path(path).is_relative_to(demo.OUTPUT)
    # TensorFlow Serving wants a number.
    assert pathlib.Path(export["path"]).name.isdigit()


def test_every_file_it_names_exists(steps):
    commands = [command for _, command in steps()]
    named = [part for command in commands for part in command if "examples/" in part]
    assert len(named) >= 7
    assert [part for part in named if not (ROOT / part).exists()] == []
    assert pathlib.Path.cwd() == ROOT


def test_the_title_tells_how_many_reviews_there_are(steps):
    title, command = steps()[1]
    data = read_labelled_texts(ROOT / parsed(command)[1]["train"])
    assert f"{len(data.labels):,} reviews" in title


def test_the_sentences_are_not_in_the_data(demo):
    files = (ROOT / "examples" / "reviews").glob("*.tsv")
    data = "".join(file.read_text("utf-8") for file in files)
    assert [sentence for sentence in demo.SENTENCES if sentence in data] == []


# === A sentence of one's own ===


def test_without_a_sentence_it_starts_over_and_asks_its_own(steps, demo):
    old = demo.OUTPUT / "serving" / "1"
    old.mkdir(parents=True)
    recorded = steps()
    assert len(recorded) == 5
    assert recorded[-1][1][3:] == list(demo.SENTENCES)
    assert not old.exists()


@pytest.mark.parametrize("text", ["a 'quoted' text; $HOME", "-h"])
def test_a_sentence_is_asked_of_the_model_that_is_there(steps, demo, monkeypatch, text):
    (demo.OUTPUT / "serving" / "1").mkdir(parents=True)
    monkeypatch.setenv("TEXT", text)
    ((_, command),) = steps()
    assert command[1:] == ["examples/serve.py", str(demo.OUTPUT / "serving/1"), text]
    assert (demo.OUTPUT / "serving" / "1").exists()


def test_a_sentence_without_a_model_makes_one_first(steps, monkeypatch):
    monkeypatch.setenv("TEXT", "房间很干净")
    recorded = steps()
    assert len(recorded) == 5
    assert recorded[-1][1][3:] == ["房间很干净"]


@pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")
def test_make_hands_the_sentence_on(tmp_path):
    script = "import os; print(os.environ['TEXT'])"
    command = f"@{shlex.quote(sys.executable)} -c {shlex.quote(script)}"
    makefile = tmp_path / "Makefile"
    makefile.write_text(f"include {ROOT / 'Makefile'}\nshow:\n\t{command}\n")
    text = '房间 "很" 干净，it\'s'
    result = subprocess.run(
        ["make", "--silent", "-f", makefile, "show", f"TEXT={text}"],
        cwd=ROOT,
        capture_output=True,
    )
    assert result.stdout.decode() == f"{text}\n", result.stderr.decode()


# === How it runs them ===


NOISE = "import sys; print('answer', *sys.argv[1:]); sys.exit('noise')"
QUIET = "import sys; print('answer', *sys.argv[1:]); print('noise', file=sys.stderr)"


def test_a_step_shows_a_command_one_can_copy(demo, capfd):
    demo.run("1. A step", sys.executable, "-c", QUIET, "两 个")
    printed = capfd.readouterr().out
    title, shown = printed.strip().split("\n")[:2]
    assert "1. A step" in title
    command = shlex.split(shown.removeprefix("$ "))
    assert command[1:] == ["-c", QUIET, "两 个"]
    assert printed.endswith("answer 两 个\n")


def test_the_answers_are_a_table_of_right_and_wrong(demo, capfd):
    demo.show(
        "好评\t0.9\t很好\n差评\t0.6\t不错\n好评\t0.7\t我的\t话\n",
        {"很好": "好评", "不错": "好评", "我的\t话": None},
    )
    rows = [line for line in capfd.readouterr().out.splitlines() if "0." in line]
    assert ["right" in row for row in rows] == [True, False, False]
    assert ["wrong: 好评" in row for row in rows] == [False, True, False]


def test_a_step_that_fails_ends_the_demo_and_says_why(demo, capfd):
    with pytest.raises(SystemExit) as exit:
        demo.run("1. A step", sys.executable, "-c", NOISE, stderr=subprocess.PIPE)
    # `sys.exit` prints this and makes the exit status 1.
    assert exit.value.code.endswith("Step failed: 1. A step")
    assert "noise" in capfd.readouterr().err + exit.value.code


# === Its checkpoint ===


def test_its_vocabulary_knows_the_characters_of_the_reviews():
    tokenizer = WordPieceTokenizer(str(CHECKPOINT / "vocab.txt"))
    texts = read_labelled_texts(ROOT / "examples" / "reviews" / "test.tsv").x
    ids = tokenizer(texts).flat_values.numpy()
    unknown = tokenizer.get_vocabulary().index("[UNK]")
    assert (ids == unknown).mean() < 0.01
