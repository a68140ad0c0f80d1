"""The steps of the demo fit together. `make demo` runs them, in a minute."""

import pathlib
import runpy
import sys
import types

import pytest
import typer

import albert_tf_cli
from albert_tf.data import read_labelled_texts

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture
def demo(tmp_path, monkeypatch):
    """The script, which writes elsewhere, and a function that records its steps."""
    script = runpy.run_path(str(ROOT / "examples" / "demo.py"), run_name="demo")
    values = script["main"].__globals__
    monkeypatch.setitem(values, "OUTPUT", tmp_path / "output")
    monkeypatch.delenv("TEXT", raising=False)
    # The script changes the directory.
    monkeypatch.chdir(tmp_path)

    def steps():
        recorded = []

        def record(title, *command, **options):
            recorded.append((title, [str(part) for part in command]))
            return ""

        with monkeypatch.context() as patch:
            patch.setitem(values, "run", record)
            script["main"]()
        return recorded

    return types.SimpleNamespace(steps=steps, **values)


def parsed(command):
    """Parse a command as the command line does; return its name and options."""
    group = typer.main.get_command(albert_tf_cli.app)
    name, *arguments = command[1:]
    return name, group.commands[name].make_context(name, arguments).params


def test_a_step_takes_what_the_one_before_wrote(demo):
    steps = demo.steps()
    *commands, serve = [command for _, command in steps]
    assert all(pathlib.Path(command[0]).exists() for command in commands)
    names, options = zip(*map(parsed, commands), strict=True)
    assert names == ("inspect", "finetune", "evaluate", "export")
    inspect, finetune, evaluate, export = options
    assert finetune["checkpoint"] == inspect["checkpoint"]
    assert evaluate["model"] == export["model"] == finetune["output"]
    assert evaluate["file"] == finetune["test"]
    assert serve[:3] == [sys.executable, "examples/serve.py", export["path"]]
    # TensorFlow Serving requires a number.
    assert pathlib.Path(export["path"]).name.isdigit()
    named = [x for _, command in steps for x in command if x.startswith("examples/")]
    assert len(named) >= 7 and all((ROOT / part).exists() for part in named)
    train = read_labelled_texts(ROOT / finetune["train"])
    assert f"{len(train.labels):,} reviews" in steps[1][0]
    known = "".join((ROOT / "examples/reviews/train.tsv").read_text("utf-8"))
    assert not [sentence for sentence in demo.SENTENCES if sentence in known]


def test_a_sentence_of_the_user_is_answered_by_the_last_model(demo, monkeypatch):
    last = demo.OUTPUT / "serving" / "1"
    last.mkdir(parents=True)
    text = "a 'quoted' text; $HOME"
    monkeypatch.setenv("TEXT", text)
    ((_, command),) = demo.steps()
    assert command[1:] == ["examples/serve.py", str(last), text]
    # Without a model, or without a sentence, the demo starts over.
    monkeypatch.delenv("TEXT")
    assert demo.steps()[-1][1][3:] == list(demo.SENTENCES)
    assert not last.exists()
    monkeypatch.setenv("TEXT", text)
    assert len(demo.steps()) == 5
