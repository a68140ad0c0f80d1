"""The command `albert-tf export`."""

import os
from typing import Annotated, Literal

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
        FormatName, output_option("Format to write.", "--format")
    ] = "savedmodel",
    precision: Annotated[
        WeightPrecision, output_option("Precision of the weights.")
    ] = "float32",
    check: Annotated[
        str | None, data_option("For LiteRT and ONNX: examples for the comparison.")
    ] = None,
    label_column: options.LabelColumn = None,
    text_column: options.TextColumn = None,
    text_b_column: options.TextBColumn = None,
    overwrite: Annotated[
        bool, output_option("Replace existing files at PATH.", "--overwrite")
    ] = False,
):
    """Export a SavedModel, LiteRT or ONNX file.

    LiteRT and ONNX files are compared with the model: size, latency for one text of 32
    and of 128 tokens, largest difference of the outputs, score on --check.

    \b
    Examples:
      albert-tf export my_model serving/my_model/1
      albert-tf export my_model my.tflite --format litert --precision int8
      albert-tf export my_model my.onnx --format onnx --check test.tsv
    """
    if format_name == "savedmodel" and (check or precision != "float32"):
        name = "--check" if check else f"--precision {precision}"
        raise AlbertError(f"{name} needs --format litert or --format onnx.")
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

    found = pipeline(path=model)
    task, trained = task_named(found.task), found.model
    examples = None
    if check:
        if task.name not in TASKS:
            raise AlbertError(f"--check does not apply to {task.name}.")
        known = trained.get_config()
        columns = Columns(label_column, text_column, text_b_column)
        examples = read_remembered(model, columns, lambda x: task.read(check, x, known))
    if format_name == "savedmodel":
        saved_model(trained, path)
        texts = tuple(tf.fill([1] * x.shape.rank, "a") for x in trained.text_specs)
        answers = trained.text_answers(texts, lambda x: trained(x, training=False))
        common.console.print(
            f"Wrote {path}. Inputs of serving_default: "
            f"{', '.join(trained.text_inputs)}; "
            f"outputs: {', '.join(answers)}.",
            soft_wrap=True,
        )
        return
    is_onnx = format_name == "onnx"
    (onnx if is_onnx else litert)(trained, path, precision=precision)
    common.console.print(f"Wrote {path}. The file needs nothing else beside it.")
    exported = (OnnxModel if is_onnx else LiteRTModel)(path)
    title = f"{format_name} {precision}"
    _print_comparison(title, path, task, trained, exported, examples)


def _print_comparison(title, path, task, model, exported, examples):
    import tensorflow as tf
    from rich.table import Table

    from albert_tf.export.engines import (
        example_features,
        largest_difference,
        latencies,
    )

    sizes = (sum(x.numpy().nbytes for x in model.weights), os.path.getsize(path))
    columns = {
        "": ("Keras", title),
        "MB": tuple(f"{size / 1e6:.2f}" for size in sizes),
    }
    graph = tf.function(lambda features: model(features, training=False))
    calls = (lambda features: graph(features).numpy(), exported.call)
    longest = min(
        model.backbone.max_sequence_length, model.preprocessor.sequence_length
    )
    for length in sorted({min(length, longest) for length in (32, 128)}):
        times = latencies(calls, example_features(model, length))
        columns[f"ms, {length} tokens"] = tuple(f"{time:.2f}" for time in times)
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
