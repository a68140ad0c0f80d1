"""The command `albert-tf evaluate`, and its error report."""

import contextlib
import functools
import html
import itertools
import pathlib
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table

from albert_tf.extras import import_extra
from albert_tf_cli import common, options
from albert_tf_cli.options import directory_option
from albert_tf_cli.tasks import TASKS, Columns, Task, task_named
from albert_tf_lite.changes import unchanged
from albert_tf_lite.errors import AlbertError

# Number of mistakes with colours. Each takes as long as 100 predictions.
EXPLAINED = 20

# The most rows of the scores of classes, on a terminal and in a page. All are in JSON.
PRINTED_ROWS, WRITTEN_ROWS = 40, 200
# The most pairs of confused classes on a terminal.
PRINTED_PAIRS = 20
# The most characters of a cell in a page.
CELL_LENGTH = 2000
# Rows of scikit-learn below those of the classes.
_AVERAGES = {"micro avg", "macro avg", "weighted avg", "samples avg"}

# Blue supports the prediction and orange opposes it. People who cannot tell red from
# green can tell these apart.
SUPPORTS, OPPOSES = (66, 133, 244), (245, 150, 40)
# Characters below this share of the strongest one have no colour.
LEAST_SHARE = 0.05

_STYLE = """
body { font-family: "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", sans-serif;
  margin: 2em; color: #222; }
table { border-collapse: collapse; margin: 1em 0; }
th, td { border: 1px solid #ccc; padding: 0.25em 0.6em; text-align: left;
  vertical-align: top; white-space: pre-wrap; overflow-wrap: anywhere; }
th { background: #f3f3f3; }
"""

_NOTE = (
    "Sorted by loss. Examples are counted from 1, without the header of the file. Blue "
    "characters support the prediction, orange ones oppose it."
)


def evaluate(
    model: options.Model,
    file: Annotated[str, typer.Argument(help="Labelled examples, as for `finetune`.")],
    label_column: options.LabelColumn = None,
    text_column: options.TextColumn = None,
    text_b_column: options.TextBColumn = None,
    label_separator: options.LabelSeparator = None,
    encoding: options.Encoding = None,
    sheet: options.Sheet = None,
    skip_invalid: options.SkipInvalid = False,
    report_directory: Annotated[
        str | None,
        directory_option(
            "Directory for report.html and report.json: scores, confusion matrix and "
            "the worst mistakes.",
            "--report",
        ),
    ] = None,
    as_json: options.Json = False,
    batch_size: options.BatchSize = None,
):
    """Evaluate a model on labelled examples.

    \b
    Examples:
      albert-tf evaluate my_model test.tsv
      albert-tf evaluate my_model test.tsv --report my_report
    """
    common.check_checkpoint(model)
    common.check_files(file)
    trained = None if report_directory else common.open_network(model)
    if trained:
        task, arguments = task_named(trained.task), trained.settings
    else:
        common.import_tensorflow()
        from albert_tf import pipeline

        answer = pipeline(path=model)
        task, trained = task_named(answer.task), answer.model
        arguments = trained.get_config()
    if not task.read:
        raise AlbertError(
            f"{model} is a model for {task.name}, which cannot be evaluated."
        )
    columns = Columns(
        *(label_column, text_column, text_b_column),
        *(label_separator, encoding, sheet),
    )
    if report_directory:
        check_support("--report", "mistakes", task)
    read = checked_reader(task, skip_invalid)
    examples = read_remembered(model, columns, lambda x: read(file, x, arguments))
    predicted = task.predict(trained, examples.x, batch_size)
    values = task.report(trained, examples, predicted)
    if report_directory:
        rows = task.mistakes(trained, examples, predicted)
        colours = _attributions(task, trained, rows[:EXPLAINED])
        write_report(report_directory, f"{model} on {file}", values, rows, colours)
        page = pathlib.Path(report_directory) / "report.html"
        # To standard error, because --json prints to standard output.
        common.errors.print(f"Wrote {page} ({len(rows)} mistakes).", soft_wrap=True)
    if as_json:
        common.print_json(values, indent=2)
    else:
        _print_report(values)


def _print_report(values):
    """Print values one per line, and the dicts in them as the rows of a table."""
    first, *rows = _score_rows(values)
    if first[""]:
        rows.insert(0, first)
    else:
        for name, value in list(first.items())[1:]:
            line = f"{name.replace('_', ' ')} {_number(value)}"
            common.console.print(line, soft_wrap=True)
    for _, group in itertools.groupby(rows, list):
        shown, note = _worst_classes(list(group), PRINTED_ROWS)
        common.console.print(_terminal_table(shown))
        if note:
            common.console.print(f"{note} --json has all.", soft_wrap=True)
    rows = _confusion_rows(values)
    if rows and _fits(matrix := _terminal_table(rows)):
        common.console.print(matrix)
    elif pairs := values.get("confused_pairs"):
        common.console.print("The most confused pairs of classes:")
        common.console.print(_terminal_table(pairs[:PRINTED_PAIRS]))


def _terminal_table(rows):
    table = Table(*rows[0])
    for row in rows:
        table.add_row(*map(_number, row.values()))
    return table


def _fits(table):
    """Return whether no cell of a table is cut at the width of the terminal."""
    console = common.console
    unlimited = console.options.update(max_width=10**6)
    return console.measure(table, options=unlimited).maximum <= console.width


def _worst_classes(rows, most):
    """Return at most so many classes, those of the lowest F1, and a note about them.

    The order of the rows stays. Classes without an example come last, because nothing
    is known about them. Averages are kept.
    """
    classes = [row for row in rows if row[""] not in _AVERAGES]
    if len(classes) <= most:
        return rows, ""

    def rank(row):
        count = row.get("support", row.get("count", 1))
        return not count, row.get("f1-score", row.get("f1", 0)), -count

    worst = {id(row) for row in sorted(classes, key=rank)[:most]}
    kept = [row for row in rows if id(row) in worst or row[""] in _AVERAGES]
    return kept, f"These are the {most} of {len(classes):,} classes of the lowest F1."


def read_remembered(
    model: str, columns: Columns, read: Callable[[Columns], Any]
) -> Any:
    """Return what `read` returns for columns, or for those of the training.

    If the file lacks a column of the training, columns are found by default.
    """
    from albert_tf.data.files.tables import MissingColumnError

    if settings := common.read_metrics(model).get("settings"):
        separator = columns.label_separator or settings.get("label_separator")
        columns = columns._replace(label_separator=separator)
        if not any(columns[:3]):
            names = {x: settings.get(f"{x}_column") for x in Columns._fields[:3]}
            with contextlib.suppress(MissingColumnError):
                return read(columns._replace(**names))
    return read(columns)


def checked_reader(task: Task, skip_invalid: bool = False) -> Callable[..., Any]:
    """Return the method `read` of a task, with the option --skip-invalid.

    Readers read a file several times, for its encoding first. It raises if the file
    changes meanwhile.
    """
    from albert_tf.data.files.table_formats import check_sheets

    for package in task.requires:
        import_extra(package)

    def read(path: str, columns: Columns, *arguments: Any, **options: Any) -> Any:
        for name, column in zip(Columns._fields[:3], columns, strict=False):
            if column:
                option = f"--{name.replace('_', '-')}-column"
                check_support(option, "takes_columns", task)
        if columns.label_separator:
            check_support("--label-separator", "splits_labels", task)
        # Not a pipe, such as <(zcat train.tsv.gz), which can be read once. RACE has
        # directories.
        if not pathlib.Path(path).is_dir():
            common.check_files(path)
        if columns.sheet is not None:
            check_sheets(path)
        with unchanged(path):
            return task.read(path, columns, *arguments, **options)

    if skip_invalid:
        check_support("--skip-invalid", "skips_invalid", task)
        return functools.partial(read, skip_invalid=True)
    return read


def check_support(option_name: str, method: str, task: Task) -> None:
    """Raise if a task lacks an optional method, which an option needs."""
    if getattr(task, method) is None:
        names = [name for name, other in TASKS.items() if getattr(other, method)]
        raise AlbertError(
            f"{option_name} does not apply to {task.name}, only to {', '.join(names)}."
        )


def _attributions(task, model, rows):
    """Return the attributions to the predicted class, by column of each row."""
    if not task.explain or not rows:
        return []
    explain, attributions = task.explain(model), []
    for row in rows:
        columns = [name for name in ("text", "text_b") if name in row]
        texts = tuple(row[name] for name in columns)
        values = explain(texts, row.get("predicted")).values
        attributions.append(dict(zip(columns, values, strict=True)))
    return attributions


def write_report(
    directory: str,
    title: str,
    scores: dict[str, Any],
    mistakes: list[dict],
    attributions: list[dict] | tuple = (),
) -> None:
    """Write `report.html`, which needs no other file, and `report.json`.

    An older report in the directory is replaced; other files stay. `attributions` of
    the first mistakes are dicts by column, with a float for each character.
    """
    from albert_tf.files import complete_directory, write_json, write_text

    tables, notes = [], []
    for _, rows in itertools.groupby(_score_rows(scores), list):
        shown, note = _worst_classes(list(rows), WRITTEN_ROWS)
        tables.append(_table(shown))
        notes += [f"{note} report.json has all."] if note else []
    sections = [("Scores", " ".join(notes), "".join(tables))]
    if matrix := _confusion_rows(scores):
        note = "A row is a true class, a column a predicted class."
        sections.append(("Confusion matrix", note, _table(matrix)))
    elif pairs := scores.get("confused_pairs"):
        sections.append(("The most confused pairs of classes", "", _table(pairs)))
    sections.append(("The worst mistakes", _NOTE, _table(mistakes, attributions)))
    heading = html.escape(title)
    body = "\n".join(
        f"<h2>{html.escape(name)}</h2>\n<p>{html.escape(note)}</p>\n{table}"
        for name, note, table in sections
    )
    page = (
        f'<!DOCTYPE html>\n<html><head><meta charset="utf-8"><title>{heading}</title>'
        f"<style>{_STYLE}</style></head>\n<body>\n<h1>{heading}</h1>\n{body}\n"
        "</body></html>"
    )
    fields = {"title": title, "scores": scores, "lists": {"mistakes": mistakes}}
    with complete_directory(directory) as folder:
        write_text(folder / "report.html", page)
        write_json(folder / "report.json", fields)


def _score_rows(scores: Mapping[str, Any], name: str = "") -> Iterator[dict[str, Any]]:
    """Yield the single values of a dict, then those of the dicts in it, as rows."""
    values = {k: v for k, v in scores.items() if not isinstance(v, dict | list)}
    if values:
        yield {"": name, **values}
    for key, value in scores.items():
        if isinstance(value, dict):
            yield from _score_rows(value, key)


def _confusion_rows(scores: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of the confusion matrix, if the scores have one."""
    matrix = scores.get("confusion_matrix", [])
    # The scores of the classes come first.
    labels = list(scores)[: len(matrix)]
    return [
        {"truth \\ predicted": label, **dict(zip(labels, counts, strict=True))}
        for label, counts in zip(labels, matrix, strict=True)
    ]


def _number(value: Any) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def _table(rows, attributions=()):
    if not rows:
        return "none"
    lines = ["".join(f"<th>{html.escape(name)}</th>" for name in rows[0])]
    for row, colours in itertools.zip_longest(rows, attributions, fillvalue={}):
        cells = (_cell(row.get(name, ""), colours.get(name)) for name in rows[0])
        lines.append("".join(f"<td>{cell}</td>" for cell in cells))
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def _cell(value, colours):
    """Return the start of a value as HTML, in colours if it has some."""
    text = _number(value)
    more = "…" if len(text) > CELL_LENGTH else ""
    text = text[:CELL_LENGTH]
    if colours is None:
        return html.escape(text) + more
    return coloured_html(text, colours[:CELL_LENGTH]) + more


def coloured_html(text: str, values: Any, strongest: float | None = None) -> str:
    """Return a text as HTML in the colours of `coloured_runs`."""
    return "".join(
        f'<span style="background:{colour or "#ffffff"};color:#000">'
        f"{html.escape(piece)}</span>"
        for piece, colour in coloured_runs(text, values, strongest)
    )


def coloured_runs(
    text: str, values: Any, strongest: float | None = None
) -> list[tuple[str, str | None]]:
    """Split a text into pieces of one colour, such as `"#4285f4"`, or `None`.

    `values` [characters] are positive where a character supports the prediction. The
    absolute value `strongest`, by default the largest, has the full colour.
    """
    values = np.asarray(values, "float64")
    strongest = strongest or np.abs(values).max(initial=0.0) or 1.0
    shares = np.clip(values / strongest, -1, 1)
    colours = [_colour(x) if abs(x) >= LEAST_SHARE else None for x in shares]
    runs = itertools.groupby(zip(text, colours, strict=True), lambda pair: pair[1])
    return [("".join(x for x, _ in pairs), colour) for colour, pairs in runs]


def _colour(share):
    """Return the colour of a share from -1 to 1, white at 0."""
    full = SUPPORTS if share > 0 else OPPOSES
    return "#" + bytes(round(255 + (c - 255) * abs(share)) for c in full).hex()
