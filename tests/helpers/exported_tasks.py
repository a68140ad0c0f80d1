"""Each task exported once for all tests of a file."""

import functools
import types

import tensorflow as tf
from task_cases import CASES, tensor

import albert_tf

NAMES = [name for name, case in CASES.items() if case.takes_texts]


def exporter(tmp_path_factory):
    """A function of the name of a case, which returns the task and its export."""

    @functools.cache
    def export(name):
        case, task = CASES[name], CASES[name].build()
        folder = tmp_path_factory.mktemp("serving") / name.replace(" ", "_")
        path = albert_tf.export.saved_model(task, folder, version="next")
        served = tf.saved_model.load(str(path))
        x = case.x if isinstance(case.x, tuple) else (case.x,)

        def ask(**texts):
            texts = {name: tf.constant(text) for name, text in texts.items()}
            answers = served.signatures["serving_default"](**texts)
            return {name: value.numpy() for name, value in answers.items()}

        return types.SimpleNamespace(
            task=task,
            path=path,
            served=served,
            ask=ask,
            # The texts of the case, by the names of the inputs.
            inputs=dict(zip(task.text_inputs, map(tensor, x), strict=True)),
        )

    return export
