"""new_task.md adds a task that trains, saves, serves and is a command."""

import pathlib
import re
import shutil

import pytest
from processes import run_python

ROOT = pathlib.Path(__file__).parents[1]
SCRIPT = """
import pathlib, sys

import albert_tf
import numpy as np
import tensorflow as tf
from typer.testing import CliRunner

import albert_tf_cli
from albert_tf.models import AlbertStarRating

micro, folder = sys.argv[1], pathlib.Path(sys.argv[2])
texts, stars = ["太差了", "还可以", "很好吃", "不好"] * 2, [1, 3, 5, 1] * 2


def command(*arguments):
    result = CliRunner().invoke(albert_tf_cli.app, list(map(str, arguments)))
    assert result.exit_code == 0, result.output
    return result.output.splitlines()


# fit, save and load
task = AlbertStarRating.from_checkpoint(micro)
task.compile(learning_rate=1e-3)
history = task.fit(texts, stars, epochs=10, batch_size=4, verbose=0).history
assert history["loss"][-1] < history["loss"][0]
expected = task.predict(texts, verbose=0).tolist()
task.save_to_preset(str(folder / "preset"))
loaded = AlbertStarRating.from_preset(str(folder / "preset"))
assert loaded.predict(texts, verbose=0).tolist() == expected
try:
    task.fit(texts, [0] * 8, verbose=0)
except albert_tf.AlbertError as error:
    assert "from 1 to 5" in str(error)

# Pipeline and SavedModel
answers = albert_tf.pipeline("star-rating", folder / "preset")(texts)
assert answers == [{"stars": n} for n in expected]
path = albert_tf.export.saved_model(task, folder / "1")
serve = tf.saved_model.load(str(path)).signatures["serving_default"]
assert serve(text=tf.constant(texts))["stars"].numpy().tolist() == expected

# Command line
lines = [f"{n}\\t{text}" for text, n in zip(texts, stars)]
data = folder / "reviews.tsv"
data.write_text("\\n".join(["label\\ttext", *lines]), "utf-8")
model = folder / "model"
training = ["--train", data, "--dev", data, "--checkpoint", micro, "--output", model]
command("finetune", "--task", "star-rating", *training, "--epochs", 1)
assert command("evaluate", model, data)[0].startswith("accuracy ")
(line,) = command("predict", model, "很好吃")
stars, text = line.split("\\t")
assert stars in "12345" and text == "很好吃"
"""


@pytest.mark.nightly
def test_the_task_of_the_page_does_what_every_task_does(tmp_path):
    page = (ROOT / "docs/contributing/new_task.md").read_text("utf-8")
    model, line, command = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(model.splitlines()) <= 100
    packages = tmp_path / "packages"
    for name in ("albert_tf", "albert_tf_cli", "albert_tf_lite", "zh"):
        shutil.copytree(ROOT / name, packages / name)
    folder = packages / "albert_tf" / "models"
    (folder / "albert_star_rating.py").write_text(model, "utf-8")
    with (folder / "__init__.py").open("a", encoding="utf-8") as file:
        file.write(line)
    commands = packages / "albert_tf_cli" / "tasks"
    (commands / "star_rating.py").write_text(command, "utf-8")
    table = (commands / "__init__.py").read_text("utf-8")
    line = "from albert_tf_cli.tasks import star_rating\n"
    (commands / "__init__.py").write_text(table + line, "utf-8")
    micro = ROOT / "examples" / "albert_micro_zh"
    run_python(SCRIPT, micro, tmp_path, cwd=tmp_path, PYTHONPATH=str(packages))
