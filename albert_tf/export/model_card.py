"""Write the model card of a SavedModel."""

from __future__ import annotations

import pathlib
import sys
from typing import Any

import keras
import tensorflow as tf

from albert_tf.files import write_json, write_text
from albert_tf.models.task import AlbertTask

_CARD = """\
# {name}

A SavedModel that takes strings, written by `albert_tf.export.saved_model`.

| | |
|---|---|
{facts}

{signatures}

Names of inputs and outputs are those of docs/serving.md of albert-tf. The vocabulary is
in the graph, so the folder can be moved. Loading needs `tensorflow` and
`tensorflow_text`, but not `albert_tf`:

```python
import tensorflow as tf
import tensorflow_text  # Registers the operations of the tokenizer.

ask = tf.saved_model.load(".").signatures["serving_default"]
ask({example})
```
"""


def write_card(
    task: AlbertTask,
    functions: dict[str, Any],
    labels: Any,
    directory: str,
) -> None:
    """Write `README.md`, and `labels.json` for a task with labels.

    Args:
        task: a task on texts.
        functions: the signatures, `tf.function`s with an input signature, by name.
        labels: optional list of strings that replaces the labels of the task.
        directory: path of the SavedModel.
    """
    labels = labels_of(task) if labels is None else [str(label) for label in labels]
    if labels is not None:
        write_json(pathlib.Path(directory, "labels.json"), labels)
    facts = "\n".join(f"| {key} | {value} |" for key, value in _facts(task, labels))
    tables = [_signature(name, x) for name, x in functions.items()]
    example = ", ".join(
        f"{spec.name}=tf.constant({[['很好']] if spec.shape.rank else ['很好']!r})"
        for spec in functions["serving_default"].input_signature
    )
    card = _CARD.format(
        name=type(task).__name__,
        facts=facts,
        signatures="\n\n".join(tables),
        example=example,
    )
    write_text(pathlib.Path(directory, "README.md"), card)


def labels_of(task: AlbertTask) -> list[str] | None:
    """Return the class names or tags of a task, in the order of its outputs."""
    for attribute in ("class_names", "tags"):
        if hasattr(task, attribute):
            return list(getattr(task, attribute))
    return None


def _facts(task, labels):
    backbone, preprocessor = task.backbone, task.preprocessor
    layers, hidden = backbone.num_layers, backbone.hidden_dim
    # Not imported, because the package imports this module.
    version = sys.modules["albert_tf"].__version__
    return [
        ("task", type(task).__name__),
        ("encoder", f"{layers} layers, {hidden} wide, {task.count_params():,} weights"),
        ("vocabulary", f"{preprocessor.tokenizer.vocabulary_size():,} tokens"),
        ("maximum number of tokens per text", preprocessor.sequence_length),
        *([("labels", ", ".join(labels))] if labels else []),
        ("written by", f"albert-tf {version}, Keras {keras.__version__}"),
        ("TensorFlow", tf.__version__),
    ]


def _signature(name, function):
    concrete = function.get_concrete_function()
    given = {spec.name: spec for spec in function.input_signature}
    rows = [("in", key, spec) for key, spec in given.items()]
    rows += [("out", *item) for item in concrete.structured_outputs.items()]
    lines = [f"| {way} | `{key}` | {_form(spec)} |" for way, key, spec in rows]
    head = [f"Signature `{name}`:", "", "| | name | type and shape |", "|---|---|---|"]
    return "\n".join([*head, *lines])


def _form(spec):
    if spec.shape.rank is None:
        return f"{spec.dtype.name} [batch] or [batch, 1]"
    sizes = ["batch", *("any" if size is None else size for size in spec.shape[1:])]
    return f"{spec.dtype.name} [{', '.join(map(str, sizes))}]"
