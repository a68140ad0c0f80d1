"""The command `albert-tf export`."""

import os
import pathlib
from typing import Annotated, Any, Literal

import typer

from albert_tf_cli import common, options
from albert_tf_cli.evaluation import checked_reader, read_remembered
from albert_tf_cli.options import data_option, output_option
from albert_tf_cli.tasks import Columns, task_named
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.network_files import NETWORK, int8_file, preset_digest

# Texts of several lengths, with digits, full-width letters and emoji.
TEXTS = [
    "房间很干净，服务员也热情。",
    "太差了！",
    "iPhone 13 Pro 售价￥8999元，比ＡＢＣ便宜😀",
    "今天天气不错，我们去公园走走，然后一起吃饭。" * 4,
]

FormatName = Literal["savedmodel", "litert", "onnx", "transformers.js"]
# Formats without --check and --precision.
_DIRECTORIES = ("savedmodel", "transformers.js")
_FORMATS: dict[str, FormatName] = {".tflite": "litert", ".onnx": "onnx"}
WeightPrecision = Literal["float32", "float16", "int8"]


def export(
    model: options.Model,
    path: Annotated[
        str,
        typer.Argument(
            help="Output path: the directory .../NAME/1 for TensorFlow Serving, a "
            "file such as model.tflite or model.onnx, or a directory for "
            "transformers.js."
        ),
    ],
    format_name: Annotated[
        FormatName | None,
        output_option(
            "Format to write. Default: by the suffix of PATH, .onnx or .tflite, or a "
            "SavedModel.",
            "--format",
        ),
    ] = None,
    precision: Annotated[
        WeightPrecision, output_option("Precision of the weights.")
    ] = "float32",
    check: Annotated[
        str | None, data_option("For LiteRT and ONNX: examples for the comparison.")
    ] = None,
    label_column: options.LabelColumn = None,
    text_column: options.TextColumn = None,
    text_b_column: options.TextBColumn = None,
    label_separator: options.LabelSeparator = None,
    encoding: options.Encoding = None,
    sheet: options.Sheet = None,
    overwrite: Annotated[
        bool, output_option("Replace existing files at PATH.", "--overwrite")
    ] = False,
):
    """Export a SavedModel, a LiteRT or ONNX file, or a model for transformers.js.

    LiteRT and ONNX files are compared with the model: size, largest difference of the
    outputs, score on --check. A model for transformers.js, in Node and browsers, has
    the network in float32 and in int8.

    \b
    Examples:
      albert-tf export my_model serving/my_model/1
      albert-tf export my_model my.tflite --precision int8
      albert-tf export my_model my.onnx --check test.tsv
      albert-tf export my_model web_model --format transformers.js
    """
    format_name = _choose_format(path, format_name)
    if format_name in _DIRECTORIES and (check or precision != "float32"):
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
    from albert_tf import pipeline

    answer = pipeline(path=model)
    task, trained = task_named(answer.task), answer.model
    columns = Columns(
        *(label_column, text_column, text_b_column),
        *(label_separator, encoding, sheet),
    )
    examples = _read_examples(model, task, trained, check, columns)
    if format_name == "savedmodel":
        _export_saved_model(trained, path, model)
        return
    if format_name == "transformers.js":
        _export_transformers_js(trained, path)
        return
    from albert_tf.export.engines import ENGINES

    write, open_file = ENGINES[format_name]
    write(trained, path, precision=precision, **_preset(model, path))
    exported = open_file(path)
    summary = {
        "wrote": f"{path} ({format_name} {precision}), which needs no other file",
        **_compare(trained, exported),
    }
    if examples:
        summary |= _compare_scores(task, trained, exported, examples)
    common.print_summary(summary)


def _preset(model, path):
    """Return the argument by which a file beside a model answers for it."""
    file = pathlib.Path(path).resolve()
    names = (NETWORK, int8_file(NETWORK).name)
    is_beside = file.parent == pathlib.Path(model).resolve() and file.name in names
    return {"preset": model} if is_beside else {}


def _read_examples(model, task, trained, file, columns):
    """Return the examples of a file for the comparison, `None` without one."""
    if not file:
        return None
    if not task.read:
        raise AlbertError(f"--check does not apply to {task.name}.")
    arguments, read = trained.get_config(), checked_reader(task)
    return read_remembered(model, columns, lambda x: read(file, x, arguments))


def _export_saved_model(trained, path, model):
    """Write a SavedModel and print its inputs and outputs."""
    import tensorflow as tf

    from albert_tf.export import saved_model

    # Facts of a training of other weights do not count.
    cards = common.read_metrics(model).get("card", {})
    saved_model(trained, path, card=cards.get(preset_digest(model)))
    texts = tuple(tf.fill([1] * x.shape.rank, "a") for x in trained.text_specs)
    answers = trained.serve(texts, lambda x: trained(x, training=False))
    common.console.print(
        f"Wrote {path}. Inputs of serving_default: {', '.join(trained.text_inputs)}; "
        f"outputs: {', '.join(answers)}.",
        soft_wrap=True,
    )


def _export_transformers_js(trained, path):
    """Write a model for transformers.js and compare both networks with the model."""
    from albert_tf.export import transformers_js
    from albert_tf.export.transformers_js import NETWORKS, WebNetwork

    transformers_js(trained, path)
    summary = {"wrote": f"{path} (transformers.js); {path}/README.md shows its use"}
    for precision, name in NETWORKS.items():
        found = _compare(trained, WebNetwork(trained, os.path.join(path, name)))
        summary |= {f"{key}, {precision}": value for key, value in found.items()}
    common.print_summary(summary)


def _compare(trained, exported):
    """Return the size of a file and its difference from the model as a summary."""
    from albert_tf.export.engines import largest_difference

    size = sum(x.numpy().nbytes for x in trained.weights)
    summary = {
        "size": f"{os.path.getsize(exported.path) / 1e6:.2f} MB (weights of the model: "
        f"{size / 1e6:.2f} MB)",
    }
    # Its outputs are at the masks of a text only.
    if trained.name_of_task == "fill-mask":
        return summary
    # Choices are the third part of an example.
    parts: Any = (TEXTS, TEXTS[::-1], [TEXTS[:2]] * len(TEXTS))
    parts = parts[: len(trained.text_inputs)]
    difference = largest_difference(
        trained, exported, parts if len(parts) > 1 else TEXTS
    )
    return {**summary, "difference": f"{difference:.1e} at most, of any output"}


def _compare_scores(task, trained, exported, examples):
    """Return the score of a file and of its model as a summary."""
    of_file, of_model = (
        task.report(trained, examples, task.predict(one, examples.x, 32))[
            trained.monitor
        ]
        for one in (exported, trained)
    )
    return {trained.monitor: f"{of_file:.4f}, of the model {of_model:.4f}"}


def _choose_format(path, name):
    """Return the format to write; raise if the suffix of the path is of another."""
    suffix = os.path.splitext(path)[1].lower()
    by_suffix = _FORMATS.get(suffix)
    if name is None and suffix and not by_suffix:
        raise AlbertError(
            f"{path} has the suffix of no format. Expected .onnx, .tflite, or a "
            "directory without a suffix for a SavedModel. Otherwise, pass --format."
        )
    if name and by_suffix not in (None, name):
        raise AlbertError(f"--format {name} does not write {suffix} files.")
    return name or by_suffix or "savedmodel"
