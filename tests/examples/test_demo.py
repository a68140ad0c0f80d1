"""The steps of the demo fit together. `make demo` runs them, in a minute."""

import pathlib
import runpy
import sys

import typer

import albert_tf_cli

ROOT = pathlib.Path(__file__).parents[2]


def parsed(command):
    """Parse a command as the command line does; return its name and options."""
    name, *arguments = command[1:]
    command = typer.main.get_command(albert_tf_cli.app).commands[name]
    return name, command.make_context(name, arguments).params


def test_a_step_takes_what_the_one_before_wrote(tmp_path, monkeypatch):
    script = runpy.run_path(str(ROOT / "examples" / "demo.py"), run_name="demo")
    values, steps = script["main"].__globals__, []

    def record(title, *command, **options):
        steps.append([str(part) for part in command])
        return ""

    monkeypatch.setitem(values, "OUTPUT", tmp_path / "output")
    monkeypatch.setitem(values, "run", record)
    monkeypatch.delenv("TEXT", raising=False)
    # The script changes the directory.
    monkeypatch.chdir(tmp_path)
    script["main"]()
    *commands, serve = steps
    assert all(pathlib.Path(command[0]).exists() for command in commands)
    names, options = zip(*map(parsed, commands), strict=True)
    assert names == ("inspect", "finetune", "evaluate", "export")
    inspect, finetune, evaluate, export = options
    assert finetune["checkpoint"] == inspect["checkpoint"]
    assert evaluate["model"] == export["model"] == finetune["output"]
    assert evaluate["file"] == finetune["test"]
    sentences = list(script["SENTENCES"])
    script_and_model = ["examples/serve.py", export["path"]]
    assert serve == [sys.executable, *script_and_model, *sentences]
    # TensorFlow Serving requires a number.
    assert pathlib.Path(export["path"]).name.isdigit()
    named = [x for command in steps for x in command if x.startswith("examples/")]
    assert len(named) >= 7 and all((ROOT / part).exists() for part in named)
    known = (ROOT / "examples/reviews/train.tsv").read_text("utf-8")
    assert not [sentence for sentence in sentences if sentence in known]

    # A sentence of the user is answered by the last model.
    steps.clear()
    pathlib.Path(export["path"]).mkdir(parents=True)
    monkeypatch.setenv("TEXT", "a 'quoted' text; $HOME")
    script["main"]()
    assert [x[1:] for x in steps] == [[*script_and_model, "a 'quoted' text; $HOME"]]
