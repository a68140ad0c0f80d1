"""The command `albert-tf predict`."""

import json
import os
import pathlib
import re
import sys
from typing import Annotated, Any, Literal

import typer
from rich.text import Text

from albert_tf_cli import common, options
from albert_tf_cli.evaluate import check_support, coloured_runs, read_remembered
from albert_tf_cli.options import model_option, output_option
from albert_tf_cli.tasks import Columns, task_named
from albert_tf_lite.errors import AlbertError

Engine = Literal["onnx", "litert"]


def predict(
    model: Annotated[
        str,
        typer.Argument(
            help="Directory written by `finetune`, a .onnx or .tflite file written by "
            "`export`, or any checkpoint with a head."
        ),
    ],
    texts: Annotated[
        list[str] | None,
        typer.Argument(
            help="Texts, or one .csv, .tsv, .jsonl or .txt file. Default, or for -: "
            "the lines of standard input."
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
        Engine | None,
        model_option("Compute in int8 with ONNX Runtime or LiteRT. Often faster."),
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
            ".tsv or .parquet (needs pyarrow)."
        ),
    ] = None,
    text_column: options.TextColumn = None,
    text_b_column: options.TextBColumn = None,
    batch_size: options.BatchSize = None,
):
    """Predict and print the answers.

    Each line has the answer and the text, separated by tabs. The answer of a classifier
    is a label and its probability. Separate the two texts of a pair by a tab.

    \b
    Examples:
      albert-tf predict my_model 很好 太差了
      albert-tf predict my_model 很好 --top-k 0
      albert-tf predict my_model reviews.csv --output found.csv
      cat reviews.txt | albert-tf predict my_model
      albert-tf predict my_model.onnx 很好
      albert-tf predict albert_tiny_zh --task fill-mask 今天[MASK]气很好
      albert-tf predict my_nli_model --task zero-shot-classification \\
          --candidate-labels 体育,财经 球队昨晚赢了
    """
    from albert_tf.data.tables import check_writable, write_records

    labels = [x.strip() for x in re.split("[,，、]", candidate_labels or "")]
    labels = [x for x in labels if x]
    if bool(labels) != (task_name == "zero-shot-classification"):
        raise AlbertError(
            "--task zero-shot-classification needs --candidate-labels, such as "
            "体育,财经, and no other task takes them."
        )
    if output and pathlib.Path(output).exists():
        raise FileExistsError(f"{output} already exists. Choose another --output.")
    suffix = check_writable(output, as_json) if output else ""
    texts = [] if texts == ["-"] else texts
    file = _file_of(texts)
    settings: dict[str, Any] = {"candidate_labels": labels} if labels else {}
    if top_k is not None:
        settings["top_k"] = top_k or None
    answer: Any
    is_exported = pathlib.Path(model).suffix in common.EXPORTED
    if is_exported and (task_name or engine or explain):
        raise AlbertError(
            "--task, --engine and --explain do not apply to an exported file. "
            f"Received: {model}"
        )
    if is_exported:
        common.check_files(model)
    else:
        common.check_checkpoint(model)
    network = None if engine or explain else common.open_network(model, task_name)
    if network:
        from albert_tf_lite.pipeline import Pipeline

        answer = Pipeline(network, **settings)
    else:
        common.import_tensorflow()
        from albert_tf import pipeline

        settings |= {"engine": engine} if engine else {}
        answer = pipeline(task_name, model, **settings)
    loaded, task = answer.answerer, task_named(answer.task)
    explainer = None
    if explain:
        check_support("--explain", "explain", task)
        if not (common.console.is_terminal or as_json or output):
            common.errors.print(
                "--explain colours the texts on a terminal. Pass --json for numbers."
            )
        explainer = task.explain(loaded)
    fields, table = task.fields(loaded), None
    if file:
        columns = Columns(None, text_column, text_b_column)
        is_pair = fields == ("text", "text_pair")
        texts, table = read_remembered(
            model, columns, lambda columns: read_file(file, is_pair, columns)
        )
    elif not texts:
        texts = _standard_input()
    x = task.inputs(loaded, texts)
    records = table.records() if table and output else []
    if output and not table:
        parts = x if isinstance(x, tuple) else (x,)
        records = [dict(zip(fields, x, strict=True)) for x in zip(*parts, strict=True)]
    for i, found in enumerate(answer(x, batch_size=batch_size, **settings)):
        values = None
        if explainer:
            one = tuple(part[i] for part in x) if isinstance(x, tuple) else x[i]
            values = explainer(one)
        named: dict[str, Any] = task.columns(found)
        cells = [f"{x:.4f}" if isinstance(x, float) else x for x in named.values()]
        if values:
            explanation = {
                "label": values.label,
                "probability": values.output,
                "baseline": values.baseline,
                "characters": [x.tolist() for x in values.values],
            }
            found = {"answer": found, "explanation": explanation}
        if output:
            if suffix == ".jsonl":
                named = found if isinstance(found, dict) else {"answer": found}
            records[i] |= {
                f"predicted_{name}" if name in records[i] else name: value
                for name, value in named.items()
            }
        elif as_json:
            print(json.dumps(found, ensure_ascii=False))
        elif values:
            # rich would turn the tabs into spaces.
            print(*cells, "", sep="\t", end="", flush=True)
            common.console.print(_coloured(values), soft_wrap=True)
        else:
            # One line per text.
            print(*cells, re.sub(r"[\r\n]", " ", texts[i]), sep="\t")
    if output:
        write_records(output, records, suffix)
        common.console.print(f"{len(texts):,} answers are in {output}", soft_wrap=True)


# === Texts ===


def _file_of(texts):
    """Return the file that the only text names; raise if that file is missing."""
    if texts and len(texts) > 1 and all(map(os.path.isfile, texts)):
        raise AlbertError(f"Pass one file at a time. Received: {' '.join(texts)}")
    if not texts or len(texts) > 1:
        return None
    # Unlike pathlib, this returns False for a text that is too long for a name.
    if os.path.isfile(texts[0]):
        return texts[0]
    if pathlib.Path(texts[0]).suffix in (".csv", ".tsv", ".jsonl", ".txt"):
        raise FileNotFoundError(
            f"{texts[0]} is not a file. Expected texts, or one file of texts."
        )
    return None


def read_file(path: str, pairs: bool, columns: Columns) -> tuple[list[str], Any]:
    """Read the texts of a file, and return its `Table` if it is one, else `None`.

    A tab joins the two texts of a pair, in which tabs become spaces.
    """
    from albert_tf.data.reading import read_lines
    from albert_tf.data.tables import Table

    if pathlib.Path(path).suffix == ".txt" and columns.text is None:
        lines = read_lines(path)
        return lines[:-1] if lines[-1] == "" else lines, None
    table = Table(path, text=columns.text, text_b=columns.text_b)
    x = table.texts(pairs)
    if pairs:
        parts = ([cell.replace("\t", " ") for cell in part] for part in x)
        x = list(map("\t".join, zip(*parts, strict=True)))
    return x, table


def _standard_input():
    # Invalid UTF-8 in one line must not stop the others.
    lines = sys.stdin.buffer.read().split(b"\n")
    texts = [line.removesuffix(b"\r").decode("utf-8", "replace") for line in lines]
    return texts[:-1] if texts[-1] == "" else texts


# === Explanations ===


def _coloured(found):
    """Return the texts of `Attributions` for a terminal, on a common scale."""
    strongest = max((abs(x) for values in found.values for x in values), default=0.0)
    shown = []
    for text, values in zip(found.texts, found.values, strict=True):
        part = Text()
        for piece, colour in coloured_runs(text, values, strongest):
            part.append(piece, colour and f"black on {colour}")
        shown.append(part)
    return Text("\t").join(shown)
