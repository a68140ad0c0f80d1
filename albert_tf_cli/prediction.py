"""The command `albert-tf predict`."""

import contextlib
import dataclasses
import functools
import io
import itertools
import os
import pathlib
import re
import sys
import warnings
from typing import Annotated, Any, Literal

import typer
from rich.text import Text

from albert_tf.data.files.compression import endings
from albert_tf.data.files.json_values import is_json
from albert_tf.data.files.text_lines import open_text
from albert_tf.data.files.writing import check_writable, write_records
from albert_tf_cli import common, options, streaming
from albert_tf_cli.evaluation import check_support, coloured_runs, read_remembered
from albert_tf_cli.options import model_option, output_option
from albert_tf_cli.tasks import Columns, task_named
from albert_tf_cli.tasks.task import as_columns
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.network_files import open_exported
from albert_tf_lite.pipelines import Pipeline

_SUFFIXES = (".csv", ".tsv", ".txt", ".json", ".jsonl", ".parquet", ".xlsx")


def predict(
    context: typer.Context,
    model: Annotated[
        str,
        typer.Argument(
            help="Directory written by `finetune`, a .onnx or .tflite file written by "
            "`export`, or any checkpoint with a head (of several, CHECKPOINT:HEAD)."
        ),
    ],
    texts: Annotated[
        list[str] | None,
        typer.Argument(
            help="Texts, or one file: a .txt with a text per line, or any that "
            "`finetune` reads. Default, or for -: the lines of standard input."
        ),
    ] = None,
    task_name: Annotated[
        str | None,
        model_option(
            "Task, one of those of `finetune`, fill-mask, sentence-order or "
            "zero-shot-classification. Default: the task of the model.",
            "--task",
        ),
    ] = None,
    candidate_labels: Annotated[
        str | None, model_option("Classes of zero-shot-classification: 体育,财经.")
    ] = None,
    engine: Annotated[
        Literal["onnx", "litert", "ray"] | None,
        model_option(
            "onnx, litert: compute in int8, often faster. ray: compute on the Ray "
            "cluster in RAY_ADDRESS, which shares the file of the model."
        ),
    ] = None,
    precision: Annotated[
        Literal["float32", "int8"] | None,
        model_option(
            "Precision of a model that `finetune` wrote. Default: int8, if it gave the "
            "answers of float32 on dev, otherwise float32."
        ),
    ] = None,
    top_k: Annotated[
        int | None,
        output_option("Answers per text, the most likely first; 0 for all.", min=0),
    ] = None,
    explain: Annotated[
        bool,
        output_option(
            "Colour the characters by their contribution to the answer: blue for, "
            "orange against. With --json, print the numbers.",
            "--explain",
        ),
    ] = False,
    as_json: Annotated[
        bool, output_option("Print one JSON value per text.", "--json")
    ] = False,
    output: Annotated[
        str | None,
        output_option(
            "New file for the answers beside all columns of the input: .csv, .jsonl, "
            ".tsv or .parquet (needs pyarrow). The same command resumes after an "
            "interruption."
        ),
    ] = None,
    text_column: options.TextColumn = None,
    text_b_column: options.TextBColumn = None,
    encoding: options.Encoding = None,
    sheet: options.Sheet = None,
    batch_size: options.BatchSize = None,
    workers: options.Workers = None,
):
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
    labels = _labels(candidate_labels, task_name)
    suffix = _check_output(output, as_json)
    texts = [] if texts == ["-"] else texts
    file = _named_file(texts)
    settings: dict[str, Any] = {"batch_size": batch_size}
    settings |= {"candidate_labels": labels} if labels else {}
    settings |= {} if top_k is None else {"top_k": top_k or None}
    opened = _open(model, task_name, engine, precision, explain, settings)
    if precision is None:
        _print_precision(opened.network, model)
    if explain and not (common.console.is_terminal or as_json or output):
        common.errors.print(
            "--explain colours the texts on a terminal. Pass --json for numbers."
        )
    columns = Columns(None, text_column, text_b_column, None, encoding, sheet)
    blocks = _read(opened, model, file, texts, columns)
    if opened.network and len(blocks.sizes) > 1:
        # One thread per process, also if there is a single process.
        network = open_exported(opened.network.path, threads=1)
        answer = Pipeline(network, **settings)
        opened = dataclasses.replace(opened, answer=answer)
    elif engine != "ray":
        workers = 1
    answers = functools.partial(
        streaming.answer_blocks,
        functools.partial(_explain, opened) if explain else opened.answer,
        blocks,
        engine="ray" if engine == "ray" else "process",
        workers=workers,
    )
    if not output:
        task = opened.task
        for x, block in answers():
            for parts, found in zip(_examples(x), block, strict=True):
                _print_answer(task, parts, found, as_json, explain)
        return
    run = {"model": _digest(opened), "texts": blocks.digest}
    run |= {"task": opened.task.name, "labels": labels, "top_k": top_k}
    run |= {"engine": None if opened.network else engine, "batch_size": batch_size}
    run |= {"explain": explain, "block": streaming.BLOCK}
    with (
        common.interruptible(context),
        streaming.open_journal(output, run, blocks.sizes) as (journal, finished),
    ):
        _complete(journal, answers(finished), blocks.sizes, finished, context)
        records = functools.partial(_records, opened, blocks, journal, suffix, explain)
        write_records(output, records, suffix, file)
    count = sum(blocks.sizes)
    common.console.print(f"{count:,} answers are in {output}", soft_wrap=True)


def _named_file(texts):
    """Return the file that the only text names; raise if that file is missing."""
    if texts and len(texts) > 1 and all(map(os.path.isfile, texts)):
        raise AlbertError(f"Pass one file at a time. Received: {' '.join(texts)}")
    if not texts or len(texts) > 1:
        return None
    # Unlike pathlib, this returns False for a text that is too long for a name.
    if os.path.isfile(texts[0]) or os.path.isdir(texts[0]):
        return texts[0]
    is_pipe = os.path.exists(texts[0])
    if is_pipe or endings(texts[0])[0] in _SUFFIXES:
        raise FileNotFoundError(
            f"{texts[0]} is not a file. Expected texts, or one file of texts. Pass the "
            "output of another command as standard input."
        )
    return None


def _standard_input(encoding):
    """Return the lines of standard input, with U+FFFD for what cannot be decoded."""
    name = "Standard input"
    file = io.BufferedReader(io.BytesIO(sys.stdin.buffer.read()))
    text = open_text(name, file, encoding, "replace", newline=None)
    lines = [line.removesuffix("\n") for line in text]
    lines[:1] = [line.removeprefix("\ufeff") for line in lines[:1]]
    if wrong := [i for i, line in enumerate(lines, start=1) if "\ufffd" in line]:
        warnings.warn(
            f"{name} is not {text.encoding.upper()} in {len(wrong)} lines, first in "
            f"line {wrong[0]}. Name the right encoding with `encoding=`.",
            stacklevel=2,
        )
    if lines and is_json(lines[0]):
        raise AlbertError(f"{name} looks like JSON. Save it as a .jsonl file.")
    return lines


@dataclasses.dataclass(frozen=True)
class _Opened:
    """A pipeline, its task, and the exported file that answers without TensorFlow."""

    answer: Any
    network: Any = None
    explainer: Any = None

    @property
    def task(self):
        return task_named(self.answer.task)

    @property
    def fields(self):
        return self.task.fields(self.answer.answerer)


def _labels(candidate_labels, task_name):
    """Return the labels of zero-shot classification; raise if another task has any."""
    labels = [x.strip() for x in re.split("[,，、]", candidate_labels or "")]
    labels = [x for x in labels if x]
    if bool(labels) != (task_name == "zero-shot-classification"):
        raise AlbertError(
            "--task zero-shot-classification needs --candidate-labels, such as "
            "体育,财经, and no other task takes them."
        )
    return labels


def _check_output(output, as_json):
    """Return the suffix of a new file; raise if it cannot be written."""
    if output and pathlib.Path(output).exists():
        raise FileExistsError(f"{output} already exists. Choose another --output.")
    return check_writable(output, as_json) if output else ""


def _free_name(name, columns):
    """Return a name for a column of answers that no column of the input has."""
    numbered = (f"predicted_{name}_{i}" for i in itertools.count(2))
    names = itertools.chain([name, f"predicted_{name}"], numbered)
    return next(x for x in names if x not in columns)


def _open(model, task_name, engine, precision, explain, settings):
    """Open a model, without TensorFlow if an exported file answers."""
    is_int8 = engine in ("onnx", "litert")
    is_exported = pathlib.Path(model).suffix in common.EXPORTED
    if is_exported and (task_name or is_int8 or explain or precision):
        raise AlbertError(
            "--task, --engine onnx or litert, --explain and --precision do not apply "
            f"to an exported file. Received: {model}"
        )
    if precision and (is_int8 or explain):
        raise AlbertError(
            "--precision does not apply to --engine onnx or litert, which compute in "
            "int8, nor to --explain, which computes in float32."
        )
    if is_exported:
        common.check_files(model)
    else:
        common.check_checkpoint(model)
    network = None
    if not (is_int8 or explain):
        network = common.open_network(model, task_name, precision)
    if network:
        return _Opened(Pipeline(network, **settings), network)
    if precision == "int8":
        raise AlbertError(
            f"The int8 file of {model} is not for --task {task_name}. Leave out "
            "--precision or --task."
        )
    if engine == "ray":
        raise AlbertError(
            "--engine ray needs an exported model, and does not apply to --explain. "
            f"Run: albert-tf export {model} model.onnx"
        )
    common.import_tensorflow()
    from albert_tf import pipeline

    settings = {**settings, "engine": engine} if is_int8 else settings
    opened = _Opened(pipeline(task_name, model, **settings))
    if not explain:
        return opened
    check_support("--explain", "explain", opened.task)
    explainer = opened.task.explain(opened.answer.answerer)
    return dataclasses.replace(opened, explainer=explainer)


def _print_precision(network, model):
    """Print why a directory is answered in int8, to standard error."""
    found = network and network.settings.get("agreement")
    if found and pathlib.Path(model).suffix not in common.EXPORTED:
        common.errors.print(
            f"Answers in int8, which were those of float32 for {found['answers']:.1%} "
            f"of {found['examples']:,} dev examples. For float32: --precision float32",
            soft_wrap=True,
        )


def _read(opened, model, file, texts, columns):
    """Return the blocks of all examples of a file, or of texts."""
    task, fields = opened.task, opened.fields
    if file:

        def read(columns):
            blocks = streaming.file_blocks(task, file, columns, fields)
            return streaming.CheckedBlocks(blocks, file)

        return read_remembered(model, columns, read)
    lines, size = texts or _standard_input(columns.encoding), streaming.BLOCK
    blocks = [lines[i : i + size] for i in range(0, len(lines), size)]
    return streaming.CheckedBlocks(
        lambda: ((task.inputs(fields, x), None) for x in blocks), "The list of texts"
    )


def _examples(x):
    """Return the parts of each example as a tuple."""
    return zip(*as_columns(x), strict=True)


def _digest(opened):
    """Return the fingerprint of an exported file or of a model."""
    if opened.network:
        return opened.network.digest
    from albert_tf.training.digests import model_digest

    return model_digest(opened.answer.model)


def _complete(journal, answers, sizes, finished, context):
    """Add the answers of the blocks that are not finished to a journal."""
    done, total = sum(sizes[:finished]), sum(sizes)
    with (
        common.progress_bar("Texts", context, "texts") as progress,
        contextlib.closing(answers),
    ):
        progress(done, total)
        for _, block in answers:
            streaming.append(journal, block)
            done += len(block)
            progress(done, total)


def _records(opened, blocks, journal, suffix, explain):
    """Yield the record of each example with its answer."""
    task, fields = opened.task, opened.fields
    columns = blocks.names or dict.fromkeys(fields)
    answered = zip(blocks(), streaming.read_journal(journal), strict=True)
    for (x, records), answers in answered:
        examples = (dict(zip(fields, part, strict=False)) for part in _examples(x))
        for record, answer in zip(records or examples, answers, strict=True):
            if suffix == ".jsonl":
                cells = answer if isinstance(answer, dict) else {"answer": answer}
            else:
                cells = task.columns(answer["answer"] if explain else answer)
            yield record | {_free_name(k, columns): x for k, x in cells.items()}


def _print_answer(task, parts, answer, as_json, explain):
    if as_json:
        common.print_json(answer)
        return
    values = task.columns(answer["answer"] if explain else answer).values()
    cells = [f"{x:.4f}" if isinstance(x, float) else x for x in values]
    if explain:
        # rich would turn the tabs into spaces.
        labels = "\t".join([*map(str, cells), ""])
        print(common.escaped(labels), end="", flush=True)
        values = answer["explanation"]["characters"]
        common.console.print(_coloured(parts, values), soft_wrap=True)
    else:
        *texts, last = parts
        texts += [last] if isinstance(last, str) else last
        if len(texts) > 1:
            texts = [text.replace("\t", " ") for text in texts]
        # One line per text.
        texts = [re.sub("[\r\n]", " ", text) for text in texts]
        common.print_line("\t".join([*map(str, cells), *texts]))


def _explain(opened, x):
    """Return the answers for inputs, each with its explanation."""
    rows = []
    for answer, parts in zip(opened.answer(x), _examples(x), strict=True):
        values = opened.explainer(parts if isinstance(x, tuple) else parts[0])
        explanation = {
            "label": values.label,
            "probability": values.output,
            "baseline": values.baseline,
            "characters": [x.tolist() for x in values.values],
        }
        rows.append({"answer": answer, "explanation": explanation})
    return rows


def _coloured(texts, attributions):
    """Return texts for a terminal, coloured on a common scale."""
    strongest = max((abs(x) for values in attributions for x in values), default=0.0)
    coloured = []
    for text, values in zip(texts, attributions, strict=True):
        part = Text()
        for piece, colour in coloured_runs(text, values, strongest):
            part.append(common.escaped(piece), colour and f"black on {colour}")
        coloured.append(part)
    return Text("\t").join(coloured)
