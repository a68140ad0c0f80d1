"""The command `albert-tf export`."""

import os
import pathlib
from typing import Annotated, Any, Literal

import typer

from albert_tf_cli.common import (
    check_checkpoint,
    check_files,
    console,
    import_tensorflow,
)
from albert_tf_cli.evaluate import remembered_columns
from albert_tf_cli.options import (
    LabelColumn,
    Model,
    TextBColumn,
    TextColumn,
    data_option,
    output_option,
)
from albert_tf_cli.tasks import TASKS, Columns, load_task
from albert_tf_lite.errors import AlbertError

# Texts of several lengths, with digits, full-width letters and emoji.
TEXTS = [
    "房间很干净，服务员也热情。",
    "太差了！",
    "iPhone 13 Pro 售价￥8999元，比ＡＢＣ便宜😀",
    "今天天气不错，我们去公园走走，然后一起吃饭。" * 4,
]

FormatName = Literal["savedmodel", "litert", "onnx"]
WeightPrecision = Literal["float32", "float16", "int8"]


def export(
    model: Model,
    path: Annotated[
        str,
        typer.Argument(
            help="Output path: the directory .../NAME/1 for TensorFlow Serving, or a "
            "file such as model.tflite or model.onnx."
        ),
    ],
    format_name: Annotated[
        FormatName | None,
        output_option(
            "Format to write and to compare with the model. Default: a SavedModel, "
            "without comparison.",
            "--format",
        ),
    ] = None,
    precision: Annotated[
        WeightPrecision, output_option("Precision of the weights.")
    ] = "float32",
    check: Annotated[
        str | None, data_option("With --format: examples for the comparison.")
    ] = None,
    label_column: LabelColumn = None,
    text_column: TextColumn = None,
    text_b_column: TextBColumn = None,
    overwrite: Annotated[
        bool, output_option("Replace existing files at PATH.", "--overwrite")
    ] = False,
):
    """Export a SavedModel, LiteRT or ONNX file.

    With --format, the command compares the file with the model: size, latency for one
    text of 32 and of 128 tokens, largest difference of the outputs, score on --check.

    \b
    Examples:
      albert-tf export my_model serving/my_model/1
      albert-tf export my_model my.tflite --format litert --precision int8
      albert-tf export my_model my.onnx --format onnx --check test.tsv
    """
    if check and not format_name:
        raise AlbertError("--check needs --format.")
    if precision != "float32" and format_name not in ("litert", "onnx"):
        raise AlbertError(
            f"--precision {precision} needs --format litert or --format onnx."
        )
    check_checkpoint(model)
    check_files(check)
    existing = os.listdir(path) if os.path.isdir(path) else os.path.lexists(path)
    if existing and not overwrite:
        raise FileExistsError(
            f"{path} already exists. Choose another path (for TensorFlow Serving, the "
            "next version number), or pass --overwrite to replace it."
        )
    import_tensorflow()
    from albert_tf.export import LiteRTModel, OnnxModel, litert, onnx, saved_model
    from albert_tf.export.engines import ServedModel

    task, trained = load_task(model)
    examples = None
    if check:
        if task.name not in TASKS or trained.exported_settings() is None:
            raise AlbertError(f"--check does not apply to {task.name}.")
        columns = Columns(label_column, text_column, text_b_column)
        columns = remembered_columns(model, columns)
        examples = task.read(check, columns, trained.get_config())
    open_file: Any
    formats: dict[str, tuple[Any, Any]] = {
        "litert": (litert, LiteRTModel),
        "onnx": (onnx, OnnxModel),
    }
    if format_name in formats:
        write, open_file = formats[format_name]
        write(trained, path, precision=precision)
        console.print(f"Wrote {path}. The file needs nothing else beside it.")
    else:
        open_file = ServedModel
        saved_model(trained, path)
        console.print(
            f"Wrote {path}. Inputs of serving_default: "
            f"{', '.join(trained.text_inputs)}; "
            f"outputs: {', '.join(_answer_names(trained))}.",
            soft_wrap=True,
        )
    if format_name:
        title = f"{format_name} {precision}"
        _print_comparison(title, path, task, trained, open_file(path), examples)


def _answer_names(model):
    import tensorflow as tf

    texts = (tf.fill([1] * spec.shape.rank, "a") for spec in model.text_specs)
    return model.text_answers(
        tuple(texts), lambda inputs: model(inputs, training=False)
    )


def _print_comparison(title, path, task, model, exported, examples):
    from rich.table import Table

    from albert_tf.export.engines import (
        example_features,
        keras_call,
        largest_difference,
        latencies,
    )

    size = sum(x.numpy().nbytes for x in model.weights)
    columns = {"": ("Keras", title), "MB": (_megabytes(size), _megabytes(_size(path)))}
    calls = (keras_call(model), exported.call)
    longest = min(
        model.backbone.max_sequence_length, model.preprocessor.sequence_length
    )
    for length in sorted({min(length, longest) for length in (32, 128)}):
        times = latencies(calls, example_features(model, length))
        columns[f"ms, {length} tokens"] = tuple(f"{time:.2f}" for time in times)
    if model.exported_settings() is not None:
        texts = (TEXTS, TEXTS[::-1]) if "text_b" in model.text_inputs else TEXTS
        difference = largest_difference(model, exported, texts)
        columns["difference"] = ("", f"{difference:.1e}")
    if examples:
        reports = (
            task.report(scored, examples, 32).values
            for scored in (model, ExportedTask(model, exported))
        )
        columns[model.monitor] = tuple(f"{x[model.monitor]:.4f}" for x in reports)
    table = Table(*columns)
    table.columns[0].no_wrap = True
    for row in zip(*columns.values(), strict=True):
        table.add_row(*row)
    console.print(table)


def _megabytes(count):
    return f"{count / 1e6:.2f}"


def _size(path):
    """Return the size of a file or of all files in a directory, in bytes."""
    path = pathlib.Path(path)
    files = [path] if path.is_file() else path.rglob("*")
    return sum(file.stat().st_size for file in files if file.is_file())


class ExportedTask:
    """The task of an exported file, which predicts with the file."""

    def __init__(self, task: Any, exported: Any):
        self._task = task
        self._exported = exported

    def __getattr__(self, name):
        return getattr(self._task, name)

    def predict(self, x, batch_size=None, **kwargs):
        answers = self._exported.predict(x)
        if "spans" in answers:
            return [[span[:3] for span in spans] for spans in answers["spans"]]
        for name in ("score", "embedding"):
            if name in answers:
                return answers[name]
        return _outputs(self._task, answers["probabilities"])

    def encode_text(self, texts, batch_size=None, **kwargs):
        return self.predict(texts)


def _outputs(classifier, probabilities):
    """Return the outputs of a classifier with these probabilities."""
    import keras
    import numpy as np

    if classifier.activation is not keras.activations.linear:
        return probabilities
    smallest = np.finfo("float32").tiny
    outputs = np.log(np.maximum(probabilities, smallest))
    if classifier.multi_label:
        outputs -= np.log(np.maximum(1 - probabilities, smallest))
    return outputs
