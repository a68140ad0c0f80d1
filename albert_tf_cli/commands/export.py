"""The command `albert-tf export`."""

import dataclasses
import os
import pathlib
import re
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from albert_tf_cli.shared.column_options import columns_of
from albert_tf_cli.shared.console import console, print_summary
from albert_tf_cli.shared.early_checks import (
    check_checkpoint,
    check_files,
    read_metrics,
)
from albert_tf_cli.shared.importing import import_tensorflow
from albert_tf_cli.shared.options import (
    Encoding,
    LabelColumn,
    LabelSeparator,
    Model,
    Sheet,
    TextBColumn,
    TextColumn,
    data_option,
    output_option,
    takes_options,
)
from albert_tf_cli.tasks import Examples, Task, task_named
from albert_tf_cli.tasks.reading import checked_reader, read_remembered
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.network_files import NETWORK, int8_file, preset_digest

if TYPE_CHECKING:
    from albert_tf.models import AlbertTask

# Texts of several lengths, with digits, full-width letters and emoji.
TEXTS = [
    "房间很干净，服务员也热情。",
    "太差了！",
    "iPhone 13 Pro 售价￥8999元，比ＡＢＣ便宜😀",
    "今天天气不错，我们去公园走走，然后一起吃饭。" * 4,
]

# Examples per call that scores a file.
BATCH_SIZE = 32

FormatName = Literal["savedmodel", "litert", "onnx", "transformers.js"]
# Formats without --check and --precision.
_DIRECTORIES = ("savedmodel", "transformers.js")
_FORMATS: dict[str, FormatName] = {".tflite": "litert", ".onnx": "onnx"}
WeightPrecision = Literal["float32", "float16", "int8"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """The options of `albert-tf export`."""

    model: Model
    path: Annotated[
        str,
        typer.Argument(
            help="Output path: the directory .../NAME/1 for TensorFlow Serving, a "
            "file such as model.tflite or model.onnx, or a directory for "
            "transformers.js."
        ),
    ]
    format_name: Annotated[
        FormatName | None,
        output_option(
            "Format to write. Default: by the suffix of PATH, .onnx or .tflite, or a "
            "SavedModel.",
            "--format",
        ),
    ] = None
    precision: Annotated[
        WeightPrecision, output_option("Precision of the weights.")
    ] = "float32"
    lengths: Annotated[
        str | None,
        output_option(
            "For LiteRT: the numbers of tokens that the file has a network for, such "
            "as 32,128. Longer texts are truncated. Default: eleven, 16 to 512."
        ),
    ] = None
    check: Annotated[
        str | None, data_option("For LiteRT and ONNX: examples for the comparison.")
    ] = None
    label_column: LabelColumn = None
    text_column: TextColumn = None
    text_b_column: TextBColumn = None
    label_separator: LabelSeparator = None
    encoding: Encoding = None
    sheet: Sheet = None
    overwrite: Annotated[
        bool, output_option("Replace existing files at PATH.", "--overwrite")
    ] = False


@takes_options
def export(context: typer.Context, options: ExportOptions) -> None:
    """Export a SavedModel, a LiteRT or ONNX file, or a model for transformers.js.

    LiteRT and ONNX files are compared with the model: size, largest difference of the
    outputs, score on --check. A model for transformers.js, in Node and browsers, has
    the network in float32 and in int8.

    \b
    Examples:
      albert-tf export my_model serving/my_model/1
      albert-tf export my_model my.tflite --precision int8
      albert-tf export my_model phone.tflite --precision int8 --lengths 32,64
      albert-tf export my_model my.onnx --check test.tsv
      albert-tf export my_model web_model --format transformers.js
    """
    format_name = _choose_format(options)
    lengths = _parse_lengths(options.lengths)
    check_checkpoint(options.model)
    check_files(options.check)
    if os.path.lexists(options.path) and not options.overwrite:
        raise FileExistsError(
            f"{options.path} already exists. Choose another path (for TensorFlow "
            "Serving, the next version number), or pass --overwrite to replace it."
        )
    import_tensorflow()
    from albert_tf import pipeline

    answer = pipeline(path=options.model)
    task, model = task_named(answer.task), answer.model
    # Before the export, which takes longer.
    examples = _read_examples(options, task, model)
    if format_name == "savedmodel":
        _export_saved_model(options, model)
    elif format_name == "transformers.js":
        _export_transformers_js(model, options.path)
    else:
        _export_file(options, format_name, task, model, examples, lengths)


def _read_examples(
    options: ExportOptions, task: Task, model: "AlbertTask"
) -> Examples | None:
    """Return the examples of --check, `None` without it."""
    file = options.check
    if not file:
        return None
    if not task.read:
        raise AlbertError(f"--check does not apply to {task.name}.")
    arguments = model.get_config()
    read = checked_reader(task)
    return read_remembered(
        options.model,
        columns_of(options),
        lambda columns: read(file, columns, arguments),
    )


def _export_saved_model(options: ExportOptions, model: "AlbertTask") -> None:
    """Write a SavedModel and print its inputs and outputs."""
    import tensorflow as tf

    from albert_tf.export import saved_model

    # Facts of a training of other weights do not count.
    cards = read_metrics(options.model).get("card", {})
    saved_model(model, options.path, card=cards.get(preset_digest(options.model)))
    texts = tuple(tf.fill([1] * x.shape.rank, "a") for x in model.text_specs)
    answers = model.serve(texts, lambda x: model(x, training=False))
    console.print(
        f"Wrote {options.path}. Inputs of serving_default: "
        f"{', '.join(model.text_inputs)}; outputs: {', '.join(answers)}.",
        soft_wrap=True,
    )


def _export_transformers_js(model: "AlbertTask", path: str) -> None:
    """Write a model for transformers.js and compare both networks with the model."""
    from albert_tf.export import transformers_js
    from albert_tf.export.transformers_js import NETWORKS, WebNetwork

    transformers_js(model, path)
    summary = {"wrote": f"{path} (transformers.js); {path}/README.md shows its use"}
    for precision, name in NETWORKS.items():
        compared = _compare(model, WebNetwork(model, os.path.join(path, name)))
        for key, value in compared.items():
            summary[f"{key}, {precision}"] = value
    print_summary(summary)


def _export_file(
    options: ExportOptions,
    format_name: FormatName,
    task: Task,
    model: "AlbertTask",
    examples: Examples | None,
    lengths: list[int] | None,
) -> None:
    """Write a LiteRT or ONNX file and compare it with the model."""
    from albert_tf.export.engines import ENGINES

    path, precision = options.path, options.precision
    write, open_file = ENGINES[format_name]
    arguments: dict[str, Any] = {}
    if lengths:
        arguments["lengths"] = lengths
    if _answers_for(options.model, path):
        arguments["preset"] = options.model
    write(model, path, precision=precision, **arguments)
    exported = open_file(path)
    summary = {
        "wrote": f"{path} ({format_name} {precision}), which needs no other file",
        **_compare(model, exported, longest=max(lengths) if lengths else None),
    }
    if examples is not None:
        score = _score(task, model, exported, examples)
        original = _score(task, model, model, examples)
        summary[model.monitor] = f"{score:.4f}, of the model {original:.4f}"
    print_summary(summary)


def _parse_lengths(text: str | None) -> list[int] | None:
    """Return the numbers of --lengths."""
    if text is None:
        return None
    parts = [part.strip() for part in re.split("[,，]", text)]
    if not all(part.isdecimal() for part in parts):
        raise AlbertError(
            f"--lengths has {text!r}. Expected numbers of tokens, such as 32,128."
        )
    return [int(part) for part in parts]


def _answers_for(model: str, path: str) -> bool:
    """Return whether a file has the name and the folder to answer for a model."""
    file = pathlib.Path(path).resolve()
    names = (NETWORK, int8_file(NETWORK).name)
    return file.parent == pathlib.Path(model).resolve() and file.name in names


def _compare(model, exported, longest=None):
    """Return the size of a file and its difference from the model as a summary.

    `longest` is the most tokens of the file, if that is fewer than those of the model.
    """
    from albert_tf.export.engines import largest_difference

    size = sum(x.numpy().nbytes for x in model.weights)
    summary = {
        "size": f"{os.path.getsize(exported.path) / 1e6:.2f} MB (weights of the model: "
        f"{size / 1e6:.2f} MB)",
    }
    # Its outputs are at the masks of a text only.
    if model.name_of_task == "fill-mask":
        return summary
    difference = largest_difference(model, exported, _compared_examples(model, longest))
    summary["difference"] = f"{difference:.1e} at most, of any output"
    return summary


def _compared_examples(model, longest):
    """Return texts, pairs or choices, as the model takes them."""
    texts = TEXTS
    if longest is not None:
        # Of a pair both fit: a character is a token at most, and 3 are special.
        texts = [text[: (longest - 3) // 2] for text in TEXTS]
    count = len(model.text_inputs)
    if count == 1:
        return texts
    pairs = (texts, texts[::-1])
    if count == 2:
        return pairs
    choices = [texts[:2] for _ in texts]
    return (*pairs, choices)


def _score(task, model, answerer, examples):
    """Return the score by which epochs are chosen, for a model or its file."""
    predicted = task.predict(answerer, examples.x, BATCH_SIZE)
    return task.report(model, examples, predicted)[model.monitor]


def _choose_format(options: ExportOptions) -> FormatName:
    """Return the format to write; raise if an option does not fit."""
    path, name = options.path, options.format_name
    suffix = os.path.splitext(path)[1].lower()
    by_suffix = _FORMATS.get(suffix)
    if name is None and suffix and not by_suffix:
        raise AlbertError(
            f"{path} has the suffix of no format. Expected .onnx, .tflite, or a "
            "directory without a suffix for a SavedModel. Otherwise, pass --format."
        )
    if name and by_suffix not in (None, name):
        raise AlbertError(f"--format {name} does not write {suffix} files.")
    chosen = name or by_suffix or "savedmodel"
    if chosen in _DIRECTORIES and options.check:
        raise AlbertError("--check needs --format litert or --format onnx.")
    if chosen != "litert" and options.lengths is not None:
        raise AlbertError("--lengths needs --format litert.")
    if chosen in _DIRECTORIES and options.precision != "float32":
        raise AlbertError(
            f"--precision {options.precision} needs --format litert or --format onnx."
        )
    return chosen
