"""Opening what `finetune` has written."""

import pathlib

from albert_tf_cli.common import state_folder
from albert_tf_cli.task_table import TASKS, task_of
from albert_tf_lite.errors import AlbertError


def check_model(model):
    """Refuse what `finetune` has not written, before TensorFlow is imported."""
    folder = pathlib.Path(model)
    if state_folder(folder).exists() and not (folder / "task.json").exists():
        raise FileNotFoundError(
            f"{model} holds a training that is not done. Start the same `albert-tf "
            "finetune` again: it resumes."
        )
    for name in ("config.json", "task.json"):
        _require(folder / name)


def _require(file):
    if not file.exists():
        model = file.parent
        raise FileNotFoundError(
            f"{model} is not a model that `albert-tf finetune` has written: it has no "
            f"{file.name}. A model in another form becomes one by `albert-tf convert "
            f"{model} DIRECTORY --to keras`."
        )


def load(model):
    """The row of the task of a directory, and the model in it."""
    from albert_tf.checkpoints.config import read_config

    folder = pathlib.Path(model)
    read_config(folder / "config.json")
    row = _row(folder / "task.json", read_config(folder / "task.json"))
    # Without it KerasHub would give the head random weights. An embedder has no head.
    if row.model_class().heads:
        _require(folder / "task.weights.h5")
    return row, row.model_class().from_preset(model)


def _row(file, config):
    row = task_of(config.get("class_name"), config.get("config") or {})
    if row is None:
        raise AlbertError(
            f"{file} is of the class {config.get('class_name')!r}. Expected a model of "
            f"one of these tasks: {', '.join(TASKS)}"
        )
    return row


def load_for(name, path):
    """The row of a task, and the model for it of a checkpoint of any form."""
    from albert_tf import pipeline

    found = pipeline(name, path)
    return TASKS[found.task], found.model
