"""The command `albert-tf predict`."""

import contextlib
import dataclasses
import functools
import pathlib
import re
from collections.abc import Callable, Iterator
from typing import Any

import typer

from albert_tf.data.files.writing import check_writable, write_records
from albert_tf_cli.commands.predict_options import PredictOptions
from albert_tf_cli.shared.column_options import columns_of
from albert_tf_cli.shared.console import console, errors
from albert_tf_cli.shared.early_checks import check_checkpoint, check_files
from albert_tf_cli.shared.exported_files import EXPORTED, open_network
from albert_tf_cli.shared.importing import import_tensorflow
from albert_tf_cli.shared.input_texts import named_file, read_standard_input
from albert_tf_cli.shared.journal import append, open_journal, read_journal
from albert_tf_cli.shared.label_map import (
    check_new_names,
    parse_label_map,
    rename_answer,
)
from albert_tf_cli.shared.options import (
    takes_options,
)
from albert_tf_cli.shared.progress import interruptible, progress_bar
from albert_tf_cli.tasks import Task, task_named
from albert_tf_cli.tasks.answer_output import (
    answer_cells,
    explained,
    free_name,
    print_answer,
)
from albert_tf_cli.tasks.blocks import (
    CheckedBlocks,
    answer_blocks,
    file_blocks,
    text_blocks,
)
from albert_tf_cli.tasks.reading import check_support, read_remembered
from albert_tf_cli.tasks.task import as_columns
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.exported_model import ExportedModel
from albert_tf_lite.network_files import open_exported
from albert_tf_lite.pipelines import Pipeline


@takes_options
def predict(context: typer.Context, options: PredictOptions) -> None:
    """Predict and print the answers.

    Each line has the answer and the text, separated by tabs. The answer of a classifier
    is a label and its probability. Separate the two texts of a pair by a tab.

    \b
    Examples:
      albert-tf predict my_model 很好 太差了
      albert-tf predict my_model 很好 --top-k 0
      albert-tf predict my_model reviews.csv --output found.csv
      albert-tf predict my_model reviews.jsonl.gz --output found.parquet
      cat reviews.txt | albert-tf predict my_model
      albert-tf predict my_model.onnx 很好
      albert-tf predict albert_tiny_zh --task fill-mask 今天[MASK]气很好
      albert-tf predict my_nli_model --task zero-shot-classification \\
          --candidate-labels 体育,财经 球队昨晚赢了
    """
    labels = _labels(options)
    suffix = _check_output(options)
    texts = [] if options.texts == ["-"] else options.texts
    file = named_file(texts)
    opened = _open(options, _pipeline_arguments(options, labels))
    names = _label_names(options, opened)
    if options.precision is None:
        _print_precision(opened.network, options.model)
    is_shown = console.is_terminal or options.as_json or options.output
    if options.explain and not is_shown:
        errors.print(
            "--explain colours the texts on a terminal. Pass --json for numbers."
        )
    blocks = _read(options, opened, file, texts)
    answers = _answers(options, opened, blocks, labels, names)
    if not options.output:
        _print_answers(options, opened.task, answers())
        return
    run = _identity(options, opened, blocks, labels)
    with (
        interruptible(context),
        open_journal(options.output, run, blocks.sizes) as (journal, finished),
    ):
        _complete(journal, answers(finished), blocks.sizes, finished, context)
        records = functools.partial(
            _records, opened, blocks, journal, suffix, options.explain
        )
        write_records(options.output, records, suffix, file)
    count = sum(blocks.sizes)
    console.print(f"{count:,} answers are in {options.output}", soft_wrap=True)


# === The options ===


def _labels(options: PredictOptions) -> list[str]:
    """Return the labels of zero-shot classification; raise if another task has any."""
    parts = re.split("[,，、]", options.candidate_labels or "")
    labels = [part.strip() for part in parts if part.strip()]
    if bool(labels) != (options.task_name == "zero-shot-classification"):
        raise AlbertError(
            "--task zero-shot-classification needs --candidate-labels, such as "
            "体育,财经, and no other task takes them."
        )
    return labels


def _check_output(options: PredictOptions) -> str:
    """Return the suffix of a new file; raise if it cannot be written."""
    output = options.output
    if not output:
        return ""
    if pathlib.Path(output).exists():
        raise FileExistsError(f"{output} already exists. Choose another --output.")
    return check_writable(output, options.as_json)


def _pipeline_arguments(options: PredictOptions, labels: list[str]) -> dict[str, Any]:
    """Return the arguments of the pipeline."""
    arguments: dict[str, Any] = {"batch_size": options.batch_size}
    if labels:
        arguments["candidate_labels"] = labels
    if options.top_k is not None:
        # 0 is all answers.
        arguments["top_k"] = options.top_k or None
    if options.abstain is not None:
        arguments["abstain"] = options.abstain
    return arguments


def _computes_in_int8(options: PredictOptions) -> bool:
    return options.engine in ("onnx", "litert")


# === The model ===


@dataclasses.dataclass(frozen=True)
class _Opened:
    """A model that answers.

    Attributes:
        answer: the pipeline.
        network: the exported file that answers without TensorFlow, if one does.
        explain: optional function of an example, which returns `Attributions`.
    """

    answer: Any
    network: ExportedModel | None = None
    explain: Callable[[Any], Any] | None = None

    @property
    def task(self) -> Task:
        """The task of the command line."""
        return task_named(self.answer.task)

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the parts of an example."""
        return self.task.fields(self.answer.answerer)

    @property
    def digest(self) -> str:
        """The fingerprint of the exported file, or of the weights."""
        if self.network:
            return self.network.digest
        from albert_tf.training.digests import model_digest

        return model_digest(self.answer.model)


def _open(options: PredictOptions, arguments: dict[str, Any]) -> _Opened:
    """Open a model, without TensorFlow if an exported file answers."""
    _check_model(options)
    model, task_name, explain = options.model, options.task_name, options.explain
    is_int8 = _computes_in_int8(options)
    network = None
    if not (is_int8 or explain):
        network = open_network(model, task_name, options.precision)
    if network:
        return _Opened(Pipeline(network, **arguments), network)
    if options.precision == "int8":
        raise AlbertError(
            f"The int8 file of {model} is not for --task {task_name}. Leave out "
            "--precision or --task."
        )
    if options.engine == "ray":
        raise AlbertError(
            "--engine ray needs an exported model, and does not apply to --explain. "
            f"Run: albert-tf export {model} model.onnx"
        )
    import_tensorflow()
    from albert_tf import pipeline

    if is_int8:
        arguments = {**arguments, "engine": options.engine}
    # The command has a progress bar of its own for files.
    opened = _Opened(pipeline(task_name, model, verbose=0, **arguments))
    if not explain:
        return opened
    check_support("--explain", "explain", opened.task)
    explainer = opened.task.explain(opened.answer.answerer)
    return dataclasses.replace(opened, explain=explainer)


def _label_names(options: PredictOptions, opened: _Opened) -> dict[str, str]:
    """Return the names that --label-map gives to the labels of the model."""
    label_map = parse_label_map(options.label_map)
    if not label_map:
        return {}
    check_support("--label-map", "takes_label_map", opened.task)
    answerer = opened.answer.answerer
    if opened.network:
        classes = opened.network.settings["labels"]
    else:
        classes = getattr(answerer, "class_names", answerer.labels)
    check_new_names(label_map, classes)
    return {name: label for label, name in label_map.items()}


def _check_model(options: PredictOptions) -> None:
    """Raise if the model does not exist, or an option does not apply to it."""
    model = options.model
    is_int8 = _computes_in_int8(options)
    is_exported = pathlib.Path(model).suffix in EXPORTED
    others = (options.task_name, is_int8, options.explain, options.precision)
    if is_exported and any(others):
        raise AlbertError(
            "--task, --engine onnx or litert, --explain and --precision do not apply "
            f"to an exported file. Received: {model}"
        )
    if options.precision and (is_int8 or options.explain):
        raise AlbertError(
            "--precision does not apply to --engine onnx or litert, which compute in "
            "int8, nor to --explain, which computes in float32."
        )
    if is_exported:
        check_files(model)
    else:
        check_checkpoint(model)


def _print_precision(network: ExportedModel | None, model: str) -> None:
    """Print why a directory is answered in int8, to standard error."""
    if network is None or pathlib.Path(model).suffix in EXPORTED:
        return
    if agreement := network.settings.get("agreement"):
        errors.print(
            f"Answers in int8, which were those of float32 for "
            f"{agreement['answers']:.1%} of {agreement['examples']:,} dev examples. "
            "For float32: --precision float32",
            soft_wrap=True,
        )


# === Examples and answers ===


def _read(
    options: PredictOptions,
    opened: _Opened,
    file: str | None,
    texts: list[str] | None,
) -> CheckedBlocks:
    """Return the blocks of all examples of a file, or of texts."""
    task, fields = opened.task, opened.fields
    if not file:
        lines = texts or read_standard_input(options.encoding)
        return CheckedBlocks(text_blocks(task, lines, fields), "The list of texts")

    def read(columns):
        return CheckedBlocks(file_blocks(task, file, columns, fields), file)

    return read_remembered(options.model, columns_of(options), read)


def _answers(
    options: PredictOptions,
    opened: _Opened,
    blocks: CheckedBlocks,
    labels: list[str],
    names: dict[str, str],
) -> Callable[..., Any]:
    """Return the function that answers the blocks after those that are finished."""
    answer, workers = opened.answer, options.workers
    is_ray = options.engine == "ray"
    if opened.network and len(blocks.sizes) > 1:
        # One thread per process, also if there is a single process.
        network = open_exported(opened.network.path, threads=1)
        answer = Pipeline(network, **_pipeline_arguments(options, labels))
    elif not is_ray:
        workers = 1
    if opened.explain:
        answer = functools.partial(explained, answer, opened.explain)
    if names:
        answer = functools.partial(_renamed, answer, names)
    return functools.partial(
        answer_blocks,
        answer,
        blocks,
        engine="ray" if is_ray else "process",
        workers=workers,
    )


def _renamed(answer: Callable[[Any], list], names: dict[str, str], x: Any) -> list:
    """Return the answers for examples with other names of the labels."""
    return rename_answer(answer(x), names)


def _print_answers(options, task, answers):
    """Print the answers of blocks, a line per example."""
    for x, block in answers:
        for parts, answer in zip(_examples(x), block, strict=True):
            print_answer(task, parts, answer, options.as_json, options.explain)


def _examples(x: Any) -> Iterator[tuple]:
    """Return the parts of each example as a tuple."""
    return zip(*as_columns(x), strict=True)


def _identity(
    options: PredictOptions,
    opened: _Opened,
    blocks: CheckedBlocks,
    labels: list[str],
) -> dict[str, Any]:
    """Return what determines the answers, which a resumed run must have again."""
    return {
        "model": opened.digest,
        "texts": blocks.digest,
        "task": opened.task.name,
        "labels": labels,
        "top_k": options.top_k,
        "abstain": options.abstain,
        "label_map": options.label_map,
        # Any engine gives the answers of a file.
        "engine": None if opened.network else options.engine,
        "batch_size": options.batch_size,
        "explain": options.explain,
        "block": max(blocks.sizes, default=0),
    }


def _complete(journal, answers, sizes, finished, context):
    """Add the answers of the blocks that are not finished to a journal."""
    done, total = sum(sizes[:finished]), sum(sizes)
    with (
        progress_bar("Texts", context, "texts") as progress,
        contextlib.closing(answers),
    ):
        progress(done, total)
        for _, block in answers:
            append(journal, block)
            done += len(block)
            progress(done, total)


def _records(opened, blocks, journal, suffix, explain):
    """Yield the record of each example with its answer."""
    task, fields = opened.task, opened.fields
    columns = blocks.names or dict.fromkeys(fields)
    for (x, records), answers in zip(blocks(), read_journal(journal), strict=True):
        if records is None:
            records = [dict(zip(fields, parts, strict=False)) for parts in _examples(x)]
        for record, answer in zip(records, answers, strict=True):
            if suffix != ".jsonl":
                cells = answer_cells(task, answer, explain)
            elif isinstance(answer, dict):
                cells = answer
            else:
                cells = {"answer": answer}
            named = {free_name(name, columns): cell for name, cell in cells.items()}
            yield record | named
