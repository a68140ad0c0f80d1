"""`albert-tf evaluate | predict`: what one does with a fine-tuned model."""

import contextlib
import json
import pathlib
import re
import sys
from typing import Annotated

import typer

from albert_tf_cli.common import (
    LabelColumn,
    TextAColumn,
    TextBColumn,
    app,
    check_checkpoint,
    check_files,
    choices,
    console,
    errors,
    import_readers,
    import_tensorflow,
)
from albert_tf_cli.error_report import check_report, write_report
from albert_tf_cli.explain import attributions_json, coloured, explainer
from albert_tf_cli.exported_file import check_exported, is_exported, load_exported
from albert_tf_cli.fine_tuned import check_model, load, load_for
from albert_tf_cli.task_table import TASKS
from albert_tf_cli.task_table.row import Columns
from albert_tf_cli.text_files import is_file, lines_of, refuse_missing_file
from albert_tf_lite.errors import AlbertError

Model = Annotated[str, typer.Argument(help="A directory that `finetune` has written.")]
AnyTask = choices("AnyTask", *TASKS)
Engine = choices("Engine", "onnx", "litert")
PredictedBatchSize = Annotated[
    int | None,
    typer.Option(
        min=1, help="Examples a step; by default more of them, the shorter they are."
    ),
]


@app.command()
def evaluate(
    model: Model,
    file: Annotated[str, typer.Argument(help="Labelled examples, as for `finetune`.")],
    batch_size: PredictedBatchSize = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    label_column: LabelColumn = None,
    text_column: TextAColumn = None,
    text_b_column: TextBColumn = None,
    report_directory: Annotated[
        str | None,
        typer.Option(
            "--report",
            help="Directory to write report.html and report.json to: scores, "
            "confusion matrix and the worst mistakes.",
        ),
    ] = None,
    train: Annotated[
        str | None,
        typer.Option(
            help="With --report: the training examples, to list those whose label "
            "looks wrong."
        ),
    ] = None,
):
    """Score a model on labelled examples, by the scores of its task.

    Example: albert-tf evaluate my_model test.tsv
    Example: albert-tf evaluate my_model test.tsv --report my_report --train train.tsv
    """
    if train and not report_directory:
        raise AlbertError("--train needs --report DIRECTORY.")
    check_model(model)
    check_files(file, train)
    import_tensorflow()
    row, task = load(model)
    if row.report is None:
        raise AlbertError(
            f"{model} is a model for {row.name}, which has no scores here."
        )
    columns = Columns(label_column, text_column, text_b_column)
    config = task.get_config()
    if report_directory:
        check_report(row, report_directory, train)
    examples = read_examples(row, model, file, columns, config)
    report = row.report(task, examples, batch_size)
    if report_directory:
        known = train and row.read(train, columns, config)
        title = f"{model} on {file}"
        told = write_report(
            row, task, examples, report, batch_size, report_directory, title, known
        )
        # To standard error, for --json.
        errors.print(told, soft_wrap=True)
    if as_json:
        print(json.dumps(report.values, ensure_ascii=False, indent=2))
        return
    for part in report.shown:
        console.print(part, soft_wrap=isinstance(part, str))


@app.command()
def predict(
    model: Annotated[
        str,
        typer.Argument(
            help="A directory that `finetune` has written, or a .onnx or .tflite file "
            "of `export`; with --task also a checkpoint of any form, or the name of a "
            "release."
        ),
    ],
    texts: Annotated[
        list[str] | None,
        typer.Argument(
            help="Texts; or one .csv, .tsv, .jsonl or .txt file of them; without any, "
            "the lines of standard input."
        ),
    ] = None,
    batch_size: PredictedBatchSize = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON value a text.")
    ] = False,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Colour the characters that speak for the answer blue, those against "
            "it orange; with --json, their numbers.",
        ),
    ] = False,
    task_name: Annotated[
        AnyTask | None,
        typer.Option("--task", help="What to predict; by default what was learned."),
    ] = None,
    top_k: Annotated[
        int | None,
        typer.Option(
            min=0, help="Answers a text, the likeliest first; 0 for all classes."
        ),
    ] = None,
    engine: Annotated[
        Engine | None,
        typer.Option(
            help="Compute in 8 bits by ONNX Runtime or LiteRT: faster, for many texts."
        ),
    ] = None,
    candidate_labels: Annotated[
        str | None,
        typer.Option(
            help="The classes of zero-shot-classification, with commas between them."
        ),
    ] = None,
    text_column: TextAColumn = None,
    text_b_column: TextBColumn = None,
    output: Annotated[
        str | None,
        typer.Option(help="File to write to; what is there is not replaced."),
    ] = None,
):
    """Predict: prints the answer and the text, separated by tabs.

    The answer of a classifier is label and probability. For a model of pairs, a text is
    the two with a tab between them.

    Example: albert-tf predict my_model 很好 太差了
    Example: albert-tf predict my_model 很好 --top-k 0
    Example: albert-tf predict my_model reviews.csv --output found.tsv
    Example: cat reviews.txt | albert-tf predict my_model
    Example: albert-tf predict my_model.onnx 很好
    Example: albert-tf predict albert_tiny_zh --task fill-mask 今天[MASK]气很好
    Example: albert-tf predict my_nli_model --task zero-shot-classification
    --candidate-labels 体育,财经 球队昨晚赢了
    """
    classes = [x.strip() for x in re.split("[,，、]", candidate_labels or "")]
    classes = [x for x in classes if x]
    if bool(classes) != (task_name == "zero-shot-classification"):
        raise AlbertError(
            "--task zero-shot-classification and --candidate-labels go together. "
            "Example: --candidate-labels 体育,财经"
        )
    if is_exported(model):
        check_exported(model, task_name or engine or explain)
    else:
        (check_checkpoint if task_name else check_model)(model)
    if output and pathlib.Path(output).exists():
        raise FileExistsError(f"--output {output} is there. Give another name.")
    if texts and len(texts) == 1:
        refuse_missing_file(texts[0])
    row, task = _load(model, task_name)
    from albert_tf.files import write_text

    explained = explainer(row, task) if explain else None
    answer_texts = _answering(row, task, engine and engine.value)
    options = {} if top_k is None else {"top_k": top_k or None}
    if options and not row.takes_top_k:
        raise AlbertError(f"--top-k: a model for {row.name} has one answer a text.")
    if classes:
        options["candidate_labels"] = classes
    if not texts:
        # As bytes: one line that is not UTF-8 should not end the rest.
        lines = sys.stdin.buffer.read().split(b"\n")
        texts = [line.removesuffix(b"\r").decode("utf-8", "replace") for line in lines]
        texts = texts[:-1] if texts[-1] == "" else texts
    elif len(texts) == 1 and is_file(texts[0]):
        columns = _columns(model, None, text_column, text_b_column)
        texts = lines_of(texts[0], row.reads_pairs(task), columns)
    answers = answer_texts(row.inputs(task, texts), batch_size=batch_size, **options)
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
            # Not all by rich, which makes spaces of tabs.
            print(*cells, "", sep="\t", end="", flush=True)
            console.print(coloured(found), soft_wrap=True)
        elif not output:
            print(lines[-1])
    if output:
        write_text(output, "".join(f"{line}\n" for line in lines))
        console.print(f"{len(lines):,} answers are in {output}", soft_wrap=True)


def _load(model, task_name):
    """The row of the task, and the model of a directory, a file or a checkpoint."""
    if is_exported(model):
        import_readers()
        return load_exported(model)
    import_tensorflow()
    return load_for(task_name.value, model) if task_name else load(model)


def _answering(row, model, engine):
    """Return the function of texts that returns their answers."""
    if not hasattr(model, "predict_dicts"):
        # An exported file.
        return model.answers
    if not engine:
        return model.predict_dicts
    from albert_tf.export import exported

    if not getattr(model, "exported_settings", lambda: None)():
        raise AlbertError(f"--engine: a model for {row.name} runs on TensorFlow only.")
    return exported(model, engine).answers


def _columns(model, *given):
    """The columns that were named, or else those that the model was trained with."""
    file = pathlib.Path(model, "metrics.json")
    if any(given) or not file.exists():
        return Columns(*given)
    settings = json.loads(file.read_text("utf-8")).get("settings", {})
    return Columns(*(settings.get(f"{name}_column") for name in Columns._fields))


def read_examples(row, model, file, columns, config):
    """Examples by the columns that were named or are remembered, or else by others."""
    remembered = _columns(model, *columns)
    if remembered != columns:
        with contextlib.suppress(ValueError):
            return row.read(file, remembered, config)
    return row.read(file, columns, config)
