"""`albert-tf export`: a fine-tuned model as a file that others run."""

import dataclasses
import os
import pathlib
from collections.abc import Callable
from typing import Annotated, Literal

import typer

from albert_tf_cli.common import (
    LabelColumn,
    TextAColumn,
    TextBColumn,
    check_files,
    console,
    import_tensorflow,
)
from albert_tf_cli.exported_task import ExportedTask
from albert_tf_cli.fine_tuned import check_model, load
from albert_tf_cli.task_table.row import Columns
from albert_tf_cli.tasks import read_examples
from albert_tf_lite.errors import AlbertError

# Texts of several lengths, with digits, full-width letters and emoji.
TEXTS = [
    "房间很干净，服务员也热情。",
    "太差了！",
    "iPhone 13 Pro 售价￥8999元，比ＡＢＣ便宜😀",
    "今天天气不错，我们去公园走走，然后一起吃饭。" * 4,
]


@dataclasses.dataclass(frozen=True)
class Format:
    """A form of files.

    Attributes:
        precisions: what its weights may be in, the first by default.
        write: function of a task, a path and a precision.
        open: function of a path, which gives the model in it.
    """

    precisions: tuple[str, ...]
    write: Callable
    open: Callable


def _formats():
    from albert_tf import export
    from albert_tf.export.engines import ServedModel

    def saved_model(task, path, precision):
        export.saved_model(task, path)

    def litert(task, path, precision):
        export.litert(task, path, precision=precision)

    def onnx(task, path, precision):
        export.onnx(task, path, precision=precision)

    return {
        "savedmodel": Format(("float32",), saved_model, ServedModel),
        "litert": Format(("float32", "float16", "int8"), litert, export.LiteRTModel),
        "onnx": Format(("float32", "int8"), onnx, export.OnnxModel),
    }


FormatName = Literal["savedmodel", "litert", "onnx"]
Precision = Literal["float32", "float16", "int8"]


def export(
    model: Annotated[str, typer.Argument(help="Directory written by `finetune`.")],
    path: Annotated[
        str,
        typer.Argument(
            help="Output path: the directory .../NAME/1 for TensorFlow Serving, or a "
            "file such as model.tflite or model.onnx."
        ),
    ],
    format_name: Annotated[
        FormatName | None,
        typer.Option(
            "--format",
            help="Format to write and to compare with the model. Default: a "
            "SavedModel, without comparison.",
        ),
    ] = None,
    precision: Annotated[
        Precision | None,
        typer.Option(help="Precision of the weights. Default: float32."),
    ] = None,
    check: Annotated[
        str | None,
        typer.Option(help="With --format: labelled examples for the comparison."),
    ] = None,
    label_column: LabelColumn = None,
    text_column: TextAColumn = None,
    text_b_column: TextBColumn = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace existing files at PATH.")
    ] = False,
):
    """Export a model for TensorFlow Serving, LiteRT or ONNX Runtime.

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
    check_model(model)
    check_files(check)
    there = os.listdir(path) if os.path.isdir(path) else os.path.lexists(path)
    if there and not overwrite:
        raise FileExistsError(
            f"{path} already exists. Choose another path (for TensorFlow Serving, the "
            "next version number), or pass --overwrite to replace it."
        )
    import_tensorflow()
    name = format_name or "savedmodel"
    form = _formats()[name]
    precision = precision or form.precisions[0]
    if precision not in form.precisions:
        raise AlbertError(
            f"--precision {precision}: {name} has {', '.join(form.precisions)}."
        )
    row, task = load(model)
    examples = None
    if check:
        if row.report is None or task.exported_settings() is None:
            raise AlbertError(f"--check: there is no score of {row.name} here.")
        columns = Columns(label_column, text_column, text_b_column)
        examples = read_examples(row, model, check, columns, task.get_config())
    form.write(task, path, precision)
    if name == "savedmodel":
        console.print(
            f"Wrote {path}. Inputs of serving_default: {', '.join(task.text_inputs)}; "
            f"outputs: {', '.join(_answer_names(task))}.",
            soft_wrap=True,
        )
    else:
        console.print(f"Wrote {path}. The file needs nothing else beside it.")
    if format_name:
        exported = form.open(path)
        _print_comparison(f"{name} {precision}", path, row, task, exported, examples)


def _answer_names(task):
    import tensorflow as tf

    texts = (tf.fill([1] * spec.shape.rank, "a") for spec in task.text_specs)
    return task.text_answers(tuple(texts), lambda inputs: task(inputs, training=False))


def _print_comparison(name, path, row, task, exported, examples):
    from rich.table import Table

    from albert_tf.export.engines import (
        example_features,
        keras_call,
        largest_difference,
        latencies,
    )

    table = Table("")
    table.columns[0].no_wrap = True
    table.add_column("MB")
    rows = [
        ["Keras", f"{sum(x.numpy().nbytes for x in task.weights) / 1e6:.2f}"],
        [name, f"{_size(pathlib.Path(path)) / 1e6:.2f}"],
    ]
    calls = (keras_call(task), exported.call)
    most = min(task.backbone.max_sequence_length, task.preprocessor.sequence_length)
    for length in sorted({min(length, most) for length in (32, 128)}):
        table.add_column(f"ms, {length} tokens")
        times = latencies(calls, example_features(task, length))
        for cells, taken in zip(rows, times, strict=True):
            cells.append(f"{taken:.2f}")
    if task.exported_settings() is not None:
        table.add_column("difference")
        texts = (TEXTS, TEXTS[::-1]) if "text_b" in task.text_inputs else TEXTS
        difference = largest_difference(task, exported, texts)
        rows[0].append("")
        rows[1].append(f"{difference:.1e}")
    if examples:
        table.add_column(row.monitor)
        for cells, scored in zip(
            rows, (task, ExportedTask(task, exported)), strict=True
        ):
            values = row.report(scored, examples, 32).values
            cells.append(f"{values[row.monitor]:.4f}")
    for cells in rows:
        table.add_row(*cells)
    console.print(table)


def _size(path):
    """Return the size of a file or of all files in a directory, in bytes."""
    files = [path] if path.is_file() else path.rglob("*")
    return sum(file.stat().st_size for file in files if file.is_file())
