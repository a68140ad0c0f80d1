"""What the command line says of itself and of mistakes."""

import subprocess
import sys

import pytest

import albert_tf_cli
from albert_tf_cli.common import OPTIONS, in_options
from albert_tf_cli.task_table.row import Examples, split


def test_arguments_are_named_as_options():
    message = "Put it there or give it with `vocabulary=`, not `dtype=`."
    assert in_options(message) == "Put it there or give it with --vocab, not `dtype=`."


@pytest.mark.parametrize("option", OPTIONS.values())
def test_every_option_of_the_table_is_one(option):
    import typer

    commands = typer.main.get_command(albert_tf_cli.app).commands.values()
    assert any(option in x.opts for y in commands for x in y.params)


WRONG = {
    "file": ("finetune", "--train", "no.tsv", "--output", "o", "--checkpoint", "."),
    "start": ("finetune", "--train", "{train}", "--output", "o", "--checkpoint", "no"),
    "label": ("finetune", "--train", "{empty}", "--output", "o", "--checkpoint", "."),
    "checkpoint": ("inspect", "no"),
    "model": ("predict", "no", "很好"),
    "not done": ("evaluate", "{cut_off}", "{train}"),
    "source": ("convert", "no", "o", "--to", "keras"),
    "release": ("download", "albert_tiny_zhh"),
    "records": ("pretrain", "--data", "no", "--output", "o", "--config", "tiny"),
}


@pytest.mark.parametrize("command", WRONG.values(), ids=WRONG)
def test_mistakes_are_told_before_tensorflow_is_imported(command, tmp_path):
    files = {
        "train": "1\t很好\n0\t差\n1\t好\n0\t坏\n",
        "empty": "label\ttext\n\t好\n1\t差\n2\t坏\n",
    }
    for name, content in files.items():
        (tmp_path / f"{name}.tsv").write_text(content, "utf-8")
    (tmp_path / "cut_off" / ".training").mkdir(parents=True)
    paths = {name: str(tmp_path / f"{name}.tsv") for name in files}
    paths["cut_off"] = str(tmp_path / "cut_off")
    code = (
        "import sys, albert_tf_cli\n"
        "try: albert_tf_cli.main()\n"
        "finally: print('tensorflow' in sys.modules)"
    )
    arguments = [part.format(**paths) for part in command]
    result = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 1 and result.stderr.startswith("Error: ")
    assert result.stdout.splitlines()[-1] == "False", result.stdout
    assert len(result.stderr.splitlines()) == 1 and not (tmp_path / "o").exists()


def test_a_share_of_each_class_is_held_back():
    labels = [0] * 30 + [1] * 10
    texts = [str(i) for i in range(40)]
    whole = Examples((texts, texts[::-1]), labels, count=40)
    train, dev = split(whole, 0.2, seed=3)
    assert (train.count, dev.count) == (32, 8) and dev.y == [0] * 6 + [1] * 2
    for part in (train, dev):
        assert [labels[int(x)] for x in part.x[0]] == part.y
        assert [39 - int(x) for x in part.x[0]] == list(map(int, part.x[1]))
    assert sorted(train.x[0] + dev.x[0]) == sorted(texts)
    # Where a class has one example, and where examples have no classes.
    few = Examples(texts, [0] * 39 + [1], count=40)
    spans = Examples(texts, [[]] * 40, count=40)
    assert [split(x, 0.2, seed=3)[1].count for x in (few, spans)] == [8, 8]
    with pytest.raises(ValueError, match="give --dev"):
        split(Examples(["a"], [0], count=1), 0.2, seed=3)
