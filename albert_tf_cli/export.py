"""The command `albert-tf export`."""

import os
import pathlib
from typing import Annotated, Any, Literal

import typer

from albert_tf_cli import common, options
from albert_tf_cli.evaluate import read_remembered
from albert_tf_cli.options import data_option, output_option
from albert_tf_cli.tasks import TASKS, Columns, task_named
from albert_tf_lite.answers import cosines_of
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
    model: options.Model,
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
    label_column: options.LabelColumn = None,
    text_column: options.TextColumn = None,
    text_b_column: options.TextBColumn = None,
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
    common.check_checkpoint(model)
    common.check_files(check)
    if os.path.lexists(path) and not overwrite:
        raise FileExistsError(
            f"{path} already exists. Choose another path (for TensorFlow Serving, the "
            "next version number), or pass --overwrite to replace it."
        )
    common.import_tensorflow()
    import tensorflow as tf

    from albert_tf import pipeline
    from albert_tf.export import LiteRTModel, OnnxModel, litert, onnx, saved_model
    from albert_tf.export.engines import ServedModel

    found = pipeline(path=model)
    task, trained = task_named(found.task), found.model
    examples = None
    if check:
        if task.name not in TASKS or trained.exported_settings() is None:
            raise AlbertError(f"--check does not apply to {task.name}.")
        known = trained.get_config()
        columns = Columns(label_column, text_column, text_b_column)
        examples = read_remembered(model, columns, lambda x: task.read(check, x, known))
    opens: Any = {"litert": LiteRTModel, "onnx": OnnxModel}.get(format_name or "")
    if opens:
        write = litert if format_name == "litert" else onnx
        write(trained, path, precision=precision)
        common.console.print(f"Wrote {path}. The file needs nothing else beside it.")
    else:
        saved_model(trained, path)
        texts = tuple(tf.fill([1] * x.shape.rank, "a") for x in trained.text_specs)
        answers = trained.text_answers(texts, lambda x: trained(x, training=False))
        common.console.print(
            f"Wrote {path}. Inputs of serving_default: "
            f"{', '.join(trained.text_inputs)}; "
            f"outputs: {', '.join(answers)}.",
            soft_wrap=True,
        )
    if format_name:
        title = f"{format_name} {precision}"
        exported = (opens or ServedModel)(path)
        _print_comparison(title, path, task, trained, exported, examples)


def _print_comparison(title, path, task, model, exported, examples):
    from rich.table import Table

    from albert_tf.export.engines import (
        example_features,
        keras_call,
        largest_difference,
        latencies,
    )

    files = [pathlib.Path(path), *pathlib.Path(path).rglob("*")]
    sizes = (
        sum(x.numpy().nbytes for x in model.weights),
        sum(file.stat().st_size for file in files if file.is_file()),
    )
    columns = {
        "": ("Keras", title),
        "MB": tuple(f"{size / 1e6:.2f}" for size in sizes),
    }
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
        predictions = (
            task.predict(model, examples.x, 32),
            _predictions(task, exported, examples.x),
        )
        reports = (task.report(model, examples, found) for found in predictions)
        columns[model.monitor] = tuple(f"{x[model.monitor]:.4f}" for x in reports)
    table = Table(*columns)
    table.columns[0].no_wrap = True
    for row in zip(*columns.values(), strict=True):
        table.add_row(*row)
    common.console.print(table)


def _predictions(task, exported, x):
    """Return the answers of an exported file as `predict` of its task does."""
    if task.name == "text-embedding":
        return cosines_of(*(exported.predict(part)["embedding"] for part in x))
    answers = exported.predict(x)
    return answers.get("spans", answers.get("score", answers))
