"""Base class of the tasks of the command line."""

import dataclasses
import itertools
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import albert_tf
from albert_tf_cli.shared.column_options import ColumnOptions
from albert_tf_cli.tasks.pages import Page
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.exported_model import ExportedModel

if TYPE_CHECKING:
    from albert_tf.data.files.tables import Table
    from albert_tf.models import AlbertTask

    Model = AlbertTask | ExportedModel

# The examples of a model: a list, or the tuple of the lists of their parts.
Inputs = list | tuple[list, ...]
# A function of examples that returns a value for each.
Predictor = Callable[[Inputs], Any]
# What a pipeline answers for an example.
Answer = dict[str, Any] | list

# Keys of an answer that `predict` prints, in this order.
_PRINTED = ("label", "answer", "score")


@dataclasses.dataclass(frozen=True)
class Examples:
    """Labelled examples of a file.

    Attributes:
        x, y: the examples and their labels, as `fit` of the model takes them.
        arguments: dict, arguments of the model that the examples determine, such as
            `num_classes` and `labels`.
    """

    x: Any
    y: Any
    arguments: dict = dataclasses.field(default_factory=dict)

    def __len__(self):
        return len(self.y)

    def select(self, indices: Sequence[int]) -> "Examples":
        """Return the examples of these positions."""
        columns = [[part[i] for i in indices] for part in as_columns(self.x)]
        y = [self.y[i] for i in indices]
        return dataclasses.replace(self, x=as_inputs(columns), y=y)


@dataclasses.dataclass(frozen=True)
class OwnLabels:
    """What a model says of examples without labels.

    Attributes:
        sure: the examples of which it is sure, with its labels.
        reference: optional `Examples`, others with its probabilities [examples,
            classes], to which a model that learned `sure` is calibrated.
    """

    sure: Examples
    reference: Examples | None


# The tasks by name. A class enters itself if it defines `name`.
TASKS: dict[str, "Task"] = {}


class Task:
    """A task of the command line; this class serves tasks that only predict.

    A subclass for a task that reads files defines `read` and `scores` or `report`, and
    overrides the rest where the task differs. Methods import what they need when they
    are called, so that `--help` does not import TensorFlow. `predicted` is what
    `predict` returned for the examples.

    Attributes:
        name: string, the value of `--task`.
        requires: tuple of strings, the optional packages of its scores.
        page: optional `Page`, what `demo` shows.
        read: optional method of a path, `ColumnOptions` and the arguments of a model,
            or `None` before there is one, that returns the `Examples` of a file.
        scores: optional method of examples and predicted, a dict of the scores that
            Keras does not compute.
        mistakes: optional method of model, examples and predicted: wrong predictions,
            the worst first, as dicts by column. `explain` colours `text` and `text_b`.
        explain: optional method of the model that returns a function of a text (or a
            tuple of two) and a class (or `None`), which returns `Attributions`.
        splits_labels: optional `True` if `read` uses the separator of `ColumnOptions`.
        takes_label_map: optional `True` if `read` uses the names of labels of
            `ColumnOptions`, and answers have labels.
        takes_columns: optional `True` if `read` uses the columns of `ColumnOptions`.
        skips_invalid: optional `True` if `read` takes `skip_invalid=True`, to leave
            out examples with an invalid label.
    """

    name = ""
    requires: tuple[str, ...] = ()
    page: Page | None = None
    read: Any = None
    scores: Any = None
    mistakes: Any = None
    explain: Any = None
    splits_labels: Any = None
    takes_label_map: Any = None
    takes_columns: Any = None
    skips_invalid: Any = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.name:
            TASKS[cls.name] = cls()

    def __init__(self, name: str | None = None):
        self.name = name or self.name

    def class_texts(self, examples: Examples) -> Iterable[tuple[str, str]]:
        """Return each class of each example, and the text or the part that has it."""
        return ()

    def class_counts(self, examples: Examples) -> dict[str, int]:
        """Return the number of examples of each class; empty without classes."""
        counts = Counter(label for label, _ in self.class_texts(examples))
        return {label: counts[label] for label in examples.arguments.get("labels", ())}

    def class_examples(self, examples: Examples) -> dict[str, str]:
        """Return the first text, or part of a text, of each class."""
        first = dict.fromkeys(examples.arguments.get("labels", ()), "")
        for label, text in self.class_texts(examples):
            first[label] = first[label] or text
        return first

    def tune(self, model: "AlbertTask", dev: Examples, batch_size: int | None) -> None:
        """Set attributes of the model that are chosen on dev, such as thresholds."""

    def calibrate(
        self,
        model: "AlbertTask",
        dev: Examples,
        batch_size: int | None,
        training_loss: float | None,
    ) -> None:
        """Set the temperature of the model on dev, if its logits have one."""
        from albert_tf.tools import tune_temperature

        if hasattr(model, "temperature") and model.outputs_are == "logits":
            tune_temperature(model, dev.x, dev.y, batch_size, training_loss)

    def predict(self, model: "Model", x: Inputs, batch_size: int | None) -> Any:
        """Return the predictions that `scores`, `report` and `mistakes` compare."""
        if isinstance(model, ExportedModel):
            return model.outputs(x, batch_size)
        return model.predict(x, batch_size=batch_size, verbose=0)

    def evaluate(
        self, model: "Model", examples: Examples, batch_size: int | None
    ) -> dict[str, float]:
        """Return the `scores` of a model."""
        if self.scores is None:
            return {}
        return self.scores(examples, self.predict(model, examples.x, batch_size))

    def report(
        self, model: "Model", examples: Examples, predicted: Any
    ) -> dict[str, Any]:
        """Return what `evaluate` prints: scores, and dicts of scores as rows."""
        return self.scores(examples, predicted) if self.scores else {}

    def baselines(self, train: Examples, dev: Examples) -> dict[str, Predictor]:
        """Return simple predictors by name, which a trained model should beat.

        Their predictions are those that `baseline_scores` compares.
        """
        return {}

    def baseline_scores(self, examples: Examples, predicted: Any) -> dict[str, float]:
        """Return all scores of the predictions of one of the `baselines`."""
        return self.scores(examples, predicted)

    def fields(self, model: "Model") -> tuple[str, ...]:
        """Return the names of the parts of an example."""
        fields = model.fields
        is_single = "text_pair" in fields and not model.pairs
        return fields[:1] if is_single else fields

    def unlabelled_fields(self, train: Examples) -> tuple[str, ...]:
        """Return the parts of an example that files of --unlabelled have."""
        return ("text", "text_pair")[: len(as_columns(train.x))]

    def own_labels(
        self, model: "AlbertTask", x: Inputs, batch_size: int | None
    ) -> OwnLabels | None:
        """Return the labels of a model; `None` for tasks that do not learn them."""
        return None

    def is_as_good(
        self,
        model: "AlbertTask",
        former: "AlbertTask",
        dev: Examples,
        batch_size: int | None,
    ) -> bool:
        """Return whether a model that learned its own labels is as good as the former.

        It may have fewer right answers, by at most the standard deviation that the
        difference has by chance.
        """
        raise NotImplementedError

    def calibrate_to(
        self, model: "AlbertTask", reference: Examples, batch_size: int | None
    ) -> None:
        """Set the temperature so that the scores are like those of `OwnLabels`."""
        raise NotImplementedError

    def inputs(self, fields: tuple[str, ...], lines: list[str]) -> Inputs:
        """Return lines as the input of the model; tabs separate its parts."""
        return lines if len(fields) == 1 else split_lines(lines, fields)

    def blocks(
        self, path: str, columns: ColumnOptions, fields: tuple[str, ...], size: int
    ) -> Iterator[tuple[Any, list[dict] | None]]:
        """Yield the input of the model and the records of each `size` rows of a file.

        The lines of a file of texts have no records. `columns` are those of the first
        two fields.
        """
        from albert_tf.data.files.tables import holds_lines, table_blocks
        from albert_tf.data.files.text_lines import stream_lines

        encoding = columns.encoding
        is_table = columns.text is not None or columns.sheet is not None
        if not is_table and holds_lines(path, encoding, fields):
            lines = stream_lines(path, encoding)
            while block := list(itertools.islice(lines, size)):
                yield self.inputs(fields, block), None
            return
        roles = self.roles(fields)
        # --text-column and --text-b-column name the first two parts.
        given = dict(zip(roles, (columns.text, columns.text_b), strict=False))
        for table in table_blocks(path, size, encoding, columns.sheet, given):
            cells = self.cells(table, roles)
            yield as_inputs(cells), table.records()

    def roles(self, fields: tuple[str, ...]) -> tuple[str, ...]:
        """Return the roles of columns that hold fields, as in `COLUMN_NAMES`."""
        return tuple("text_b" if name == "text_pair" else name for name in fields)

    def cells(self, table: "Table", roles: tuple[str, ...]) -> tuple[list, ...]:
        """Find the columns of a table, and return the cells of each."""
        table.find(*roles)
        return tuple(table.strings(role) for role in roles)

    def columns(self, answer: Answer) -> dict[str, str | float]:
        """Return the columns that `predict` prints before the text, by name."""
        if isinstance(answer, list):
            columns = {}
            for number, one in enumerate(answer, start=1):
                suffix = "" if number == 1 else f"_{number}"
                for name, value in self.columns(one).items():
                    columns[f"{name}{suffix}"] = value
            return columns
        if "labels" in answer:
            return {"label": answer["labels"][0], "score": answer["scores"][0]}
        printed = [name for name in _PRINTED if name in answer]
        if not printed:
            return dict(answer)
        return {name: answer[name] for name in printed}


def read_labelled(
    path: str, columns: ColumnOptions, arguments: dict | None = None
) -> Any:
    """Read a table; with arguments, of pairs if the model takes pairs."""
    pairs = None if arguments is None else arguments["pairs"]
    return albert_tf.data.read_labelled_texts(
        path,
        columns.label,
        columns.text,
        columns.text_b,
        pairs=pairs,
        encoding=columns.encoding,
        sheet=columns.sheet,
    )


def has_own_form(path, columns, name):
    """Return whether a file is a directory, or JSON other than records with a field."""
    from albert_tf.data.files.json_values import is_json, read_json
    from albert_tf.data.files.table_formats import detect_format
    from albert_tf.data.files.text_lines import stream_lines

    if os.path.isdir(path):
        return True
    if detect_format(path) in (".parquet", ".xlsx"):
        return False
    lines = filter(str.strip, stream_lines(path, columns.encoding))
    if not is_json(next(lines, "")):
        return False
    _, first = next(read_json(path, columns.encoding), (None, None))
    return not (isinstance(first, dict) and name in first)


def split_lines(lines: list[str], fields: tuple[str, ...]) -> tuple[list[str], ...]:
    """Split lines at tabs into one list per field; the last takes further tabs."""
    rows = [line.split("\t", len(fields) - 1) for line in lines]
    for line, row in zip(lines, rows, strict=True):
        if len(row) < len(fields):
            raise AlbertError(
                f"Expected {', '.join(fields)}, separated by tabs. Received: {line!r}"
            )
    return tuple([row[i] for row in rows] for i in range(len(fields)))


def whole_blocks(
    x: Inputs, ids: list, fields: tuple[str, ...], size: int
) -> Iterator[tuple[Any, list[dict]]]:
    """Yield blocks of examples, as `Task.blocks`; their records have the ids."""
    for start in range(0, len(ids), size):
        part = [values[start : start + size] for values in as_columns(x)]
        records = [
            ({} if name is None else {"id": name}) | dict(zip(fields, row, strict=True))
            for name, *row in zip(ids[start : start + size], *part, strict=True)
        ]
        yield as_inputs(part), records


def as_columns(x: Inputs) -> tuple[list, ...]:
    """Return the lists of the parts of examples."""
    return x if isinstance(x, tuple) else (x,)


def as_inputs(columns: Sequence[list]) -> Inputs:
    """Return the lists of the parts of examples as models take them."""
    return tuple(columns) if len(columns) > 1 else columns[0]


def text_columns(x: Inputs, index: int) -> dict[str, str]:
    """Return the text, or both texts of a pair, of an example as columns."""
    texts = [column[index] for column in as_columns(x)]
    return dict(zip(("text", "text_b"), texts, strict=False))


def worst(rows: Iterable[dict]) -> list[dict]:
    """Return the 50 rows of the highest loss with something missed or wrong."""
    wrong = (row for row in rows if row["missed"] or row["wrong"])
    return sorted(wrong, key=lambda row: -row["loss"])[:50]


def split(examples: Examples, seed: int) -> list[Examples]:
    """Split off a tenth of the examples for dev, stratified by class if possible."""
    from sklearn.model_selection import train_test_split

    if len(examples) < 2:
        raise AlbertError("A single example cannot be split. Pass --dev.")
    indices = list(range(len(examples)))
    options = {"test_size": 0.1, "random_state": seed}
    try:
        parts = train_test_split(indices, **options, stratify=examples.y)
    except (ValueError, TypeError):
        # Labels that are not classes, or classes that are too small.
        parts = train_test_split(indices, **options)
    return [examples.select(chosen) for chosen in map(sorted, parts)]
