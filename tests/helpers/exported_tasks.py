"""Each task exported once for all tests of a file."""

import dataclasses
import functools
import pathlib
from typing import Any

import tensorflow as tf
from task_cases import CASES, Case, tensor

import albert_tf

NAMES = [name for name, case in CASES.items() if case.takes_texts]


@dataclasses.dataclass(frozen=True)
class Exported:
    """A task, and what was written of it."""

    case: Case
    task: Any
    path: pathlib.Path

    @functools.cached_property
    def served(self):
        return tf.saved_model.load(str(self.path))

    @property
    def inputs(self):
        """The texts of the case, by the names of the inputs."""
        x = self.case.x if isinstance(self.case.x, tuple) else (self.case.x,)
        return dict(zip(self.task.text_inputs, map(tensor, x), strict=True))

    def ask(self, **texts):
        answers = self.served.signatures["serving_default"](
            **{name: tf.constant(text) for name, text in texts.items()}
        )
        return {name: value.numpy() for name, value in answers.items()}


def exporter(tmp_path_factory):
    """A function of the name of a case that gives it as `Exported`."""

    @functools.cache
    def export(name):
        task = CASES[name].build()
        folder = tmp_path_factory.mktemp("serving") / name.replace(" ", "_")
        path = albert_tf.export.saved_model(task, folder, version="next")
        return Exported(CASES[name], task, path)

    return export
