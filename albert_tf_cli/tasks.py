"""The commands `albert-tf evaluate` and `albert-tf predict`."""

import contextlib
import json
import pathlib
import re
import sys
from typing import Annotated, Literal

import typer

from albert_tf_cli.common import (
    Json,
    LabelColumn,
    TextAColumn,
    TextBColumn,
    check_checkpoint,
    check_files,
    console,
    errors,
    import_tensorflow,
)
from albert_tf_cli.error_report import check_report, read_unlabelled, write_report
from albert_tf_cli.explain import attributions_json, coloured, explainer
from albert_tf_cli.exported_file import check_exported, is_exported, load_exported
from albert_tf_cli.fine_tuned import check_model, load, load_for
from albert_tf_cli.task_table import TASKS
from albert_tf_cli.task_table.row import Columns
from albert_tf_cli.text_files import is_file, lines_of, refuse_missing_file
from albert_tf_lite.errors import AlbertError

Model = Annotated[str, typer.Argument(help="Directory written by `finetune`.")]
AnyTask = Literal[*TASKS]
Engine = Literal["onnx", "litert"]
PredictedBatchSize = Annotated[
    int | None,
    typer.Option(min=1, help="Examples per step. Default: more for shorter texts."),
]


def evaluate(
    model: Model,
    file: Annotated[str, typer.Argument(help="Labelled examples, as for `finetune`.")],
    batch_size: PredictedBatchSize = None,
    as_json: Json = False,
    label_column: LabelColumn = None,
    text_column: TextAColumn = None,
    text_b_column: TextBColumn = None,
    report_directory: Annotated[
        str | None,
        typer.Option(
            "--report",
            help="Directory to write report.html to: scores, confusion matrix, the "
            "worst mistakes; with report.json and a .tsv of each list.",
        ),
    ] = None,
    train: Annotated[
        str | None,
        typer.Option(
            help="With --report: the examples trained on, to list those whose label "
            "looks wrong."
        ),
    ] = None,
    unlabelled: Annotated[
        str | None,
        typer.Option(
            help="With --report: texts, one a line, to list those to label next."
        ),
    ] = None,
):
    """Evaluate a model on labelled examples.

    \b
    Examples:
      albert-tf evaluate my_model test.tsv
      albert-tf evaluate my_model test.tsv --report my_report --train train.tsv
    """
    if (train or unlabelled) and not report_directory:
        raise AlbertError("--train and --unlabelled need --report DIRECTORY.")
    check_model(model)
    check_files(file, train, unlabelled)
    import_tensorflow()
    row, task = load(model)
    if row.report is None:
        raise AlbertError(
            f"{model} is a model for {row.name}, which cannot be evaluated."
        )
    columns = Columns(label_column, text_column, text_b_column)
    config = task.get_config()
    if report_directory:
        check_report(row, report_directory, train, unlabelled)
    examples = read_examples(row, model, file, columns, config)
    report = row.report(task, examples, batch_size)
    if report_directory:
        others = {
            "train": train and row.read(train, columns, config),
            "unlabelled": unlabelled and read_unlabelled(row, task, unlabelled),
        }
        title = f"{model} on {file}"
        told = write_report(
            *(row, task, examples, report, batch_size, report_directory, title),
            **others,
        )
        # To standard error, for --json.
        errors.print(told, soft_wrap=True)
    if as_json:
        print(json.dumps(report.values, ensure_ascii=False, indent=2))
        return
    for part in report.shown:
        console.print(part, soft_wrap=isinstance(part, str))


def predict(
    model: Annotated[
        str,
        typer.Argument(
            help="Directory written by `finetune`, or a .onnx or .tflite file written "
            "by `export`. With --task, also a checkpoint or the name of a release."
        ),
    ],
    texts: Annotated[
        list[str] | None,
        typer.Argument(
            help="Texts, or one .csv, .tsv, .jsonl or .txt file. Default: the lines of "
            "standard input."
        ),
    ] = None,
    batch_size: PredictedBatchSize = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON value per text.")
    ] = False,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Colour the characters by their contribution to the answer: blue for, "
            "orange against. With --json, print the numbers.",
        ),
    ] = False,
    task_name: Annotated[
        AnyTask | None,
        typer.Option(
            "--task",
            metavar="TASK",
            help="Task, one of those of `finetune`, fill-mask, sentence-order or "
            "zero-shot-classification. Default: the task of the model.",
        ),
    ] = None,
    top_k: Annotated[
        int | None,
        typer.Option(
            min=0, help="Answers per text, the most likely first; 0 for all classes."
        ),
    ] = None,
    engine: Annotated[
        Engine | None,
        typer.Option(
            help="Compute in int8 with ONNX Runtime or LiteRT. Faster for many texts."
        ),
    ] = None,
    candidate_labels: Annotated[
        str | None,
        typer.Option(help="Classes of zero-shot-classification, separated by commas."),
    ] = None,
    text_column: TextAColumn = None,
    text_b_column: TextBColumn = None,
    output: Annotated[
        str | None,
        typer.Option(help="Output file; an existing file is not replaced."),
    ] = None,
):
    """Predict and print the answers.

    Each line has the answer and the text, separated by tabs. The answer of a classifier
    is a label and its probability. Separate the two texts of a pair by a tab.

    \b
    Examples:
      albert-tf predict my_model 很好 太差了
      albert-tf predict my_model 很好 --top-k 0
      albert-tf predict my_model reviews.csv --output found.tsv
      cat reviews.txt | albert-tf predict my_model
      albert-tf predict my_model.onnx 很好
      albert-tf predict albert_tiny_zh --task fill-mask 今天[MASK]气很好
      albert-tf predict my_nli_model --task zero-shot-classification \\
          --candidate-labels 体育,财经 球队昨晚赢了
    """
    classes = [x.strip() for x in re.split("[,，、]", candidate_labels or "")]
    classes = [x for x in classes if x]
    if bool(classes) != (task_name == "zero-shot-classification"):
        raise AlbertError(
            "--task zero-shot-classification needs --candidate-labels, and no other "
            "task takes them. Example: --candidate-labels 体育,财经"
        )
    if is_exported(model):
        check_exported(model, task_name or engine or explain)
    else:
        (check_checkpoint if task_name else check_model)(model)
    if output and pathlib.Path(output).exists():
        raise FileExistsError(f"{output} already exists. Choose another --output.")
    if texts and len(texts) == 1:
        refuse_missing_file(texts[0])
    row, task = _load(model, task_name)
    from albert_tf.files import write_text

    explained = explainer(row, task) if explain else None
    options = {} if top_k is None else {"top_k": top_k or None}
    if options and not row.takes("top_k"):
        raise AlbertError(
            f"--top-k does not apply to {row.name}, which has one answer per text."
        )
    if engine and not row.takes("engine"):
        raise AlbertError(
            f"--engine does not apply to {row.name}, which runs on TensorFlow only."
        )
    if engine:
        options["engine"] = engine
    if classes:
        options["candidate_labels"] = classes
    if not texts:
        # Invalid UTF-8 in one line must not stop the others.
        lines = sys.stdin.buffer.read().split(b"\n")
        texts = [line.removesuffix(b"\r").decode("utf-8", "replace") for line in lines]
        texts = texts[:-1] if texts[-1] == "" else texts
    elif len(texts) == 1 and is_file(texts[0]):
        columns = _columns(model, None, text_column, text_b_column)
        texts = lines_of(texts[0], row.reads_pairs(task), columns)
    answers = row.answers(task, row.inputs(task, texts), batch_size, **options)
    lines = []
    for answer, text in zip(answers, texts, strict=True):
        found = explained and explained(text)
        if as_json:
            if found:
                answer = {"answer": answer, "explanation": attributions_json(found)}
            lines.append(json.dumps(answer, ensure_ascii=False))
        else:
            cells = row.ranked_cells(answer)
            lines.append("\t".join([*cells, text]))
        if found and not (as_json or output):
            # rich would turn the tabs into spaces.
            print(*cells, "", sep="\t", end="", flush=True)
            console.print(coloured(found), soft_wrap=True)
        elif not output:
            print(lines[-1])
    if output:
        write_text(output, "".join(f"{line}\n" for line in lines))
        console.print(f"{len(lines):,} answers are in {output}", soft_wrap=True)


def _load(model, task_name):
    """Load a directory, a file or a checkpoint; return the task's row and the model."""
    if is_exported(model):
        return load_exported(model)
    import_tensorflow()
    return load_for(task_name, model) if task_name else load(model)


def _columns(model, *given):
    """Return the named columns, or those that the model was trained with."""
    file = pathlib.Path(model, "metrics.json")
    if any(given) or not file.exists():
        return Columns(*given)
    settings = json.loads(file.read_text("utf-8")).get("settings", {})
    return Columns(*(settings.get(f"{name}_column") for name in Columns._fields))


def read_examples(row, model, file, columns, config):
    """Read examples by the named or remembered columns, else by the default ones."""
    remembered = _columns(model, *columns)
    if remembered != columns:
        with contextlib.suppress(ValueError):
            return row.read(file, remembered, config)
    return row.read(file, columns, config)
