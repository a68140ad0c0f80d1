"""The command `albert-tf inspect`."""

import collections
import dataclasses
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from albert_tf_cli.shared.column_options import ColumnOptions, columns_of
from albert_tf_cli.shared.console import format_value, print_json, print_summary
from albert_tf_cli.shared.early_checks import check_checkpoint, check_files
from albert_tf_cli.shared.importing import import_tensorflow
from albert_tf_cli.shared.options import (
    Checkpoint,
    Config,
    Encoding,
    Json,
    Sheet,
    TextBColumn,
    TextColumn,
    takes_options,
)
from albert_tf_cli.tasks import Task, task_named
from albert_tf_cli.tasks.blocks import file_blocks
from albert_tf_cli.tasks.task import Inputs, as_columns
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.unknown import advice, are_many, commonest

if TYPE_CHECKING:
    from albert_tf import checkpoints

# Rows that are printed even if they are empty.
_ALWAYS = ("release", "vocabulary", "heads", "missing", "damaged")


@dataclasses.dataclass(frozen=True, kw_only=True)
class InspectOptions:
    """The options of `albert-tf inspect`."""

    checkpoint: Checkpoint
    file: Annotated[
        str | None,
        typer.Argument(
            help="Texts that `predict` reads: count their tokens and the unknown ones."
        ),
    ] = None
    config: Config = None
    text_column: TextColumn = None
    text_b_column: TextBColumn = None
    encoding: Encoding = None
    sheet: Sheet = None
    as_json: Json = False


@takes_options
def inspect(context: typer.Context, options: InspectOptions) -> None:
    """Inspect a checkpoint and list missing weights.

    With a file of texts, also print the share of tokens that the vocabulary lacks, the
    lengths of the texts, and how many are longer than the model reads.

    \b
    Examples:
      albert-tf inspect albert_tiny_zh/albert_model.ckpt
      albert-tf inspect my_model reviews.csv
    """
    check_checkpoint(options.checkpoint)
    check_files(options.config, options.file)
    import_tensorflow()
    from albert_tf.checkpoints import inspect_checkpoint, open_checkpoint

    opened: Any = options.checkpoint
    if options.file:
        opened = open_checkpoint(options.checkpoint, config=options.config)
    report = dataclasses.asdict(inspect_checkpoint(opened, config=options.config))
    if options.file:
        report["texts"] = _inspect_texts(opened, options.file, columns_of(options))
    if options.as_json:
        print_json(report, indent=2)
    else:
        print_summary(_report_rows(report, opened, options.config))


def _report_rows(
    report: dict[str, Any], opened: Any, config: str | None
) -> dict[str, Any]:
    """Return a report as rows for a person."""
    from albert_tf.checkpoints import RELEASES, open_checkpoint

    shown = dict(report)
    if release := report["release"]:
        names = " or ".join((release, *RELEASES[release].confused_with))
        if report["damaged"]:
            names += " by its index, but the data are damaged (see below)"
        shown["release"] = names
    named_heads = shown.pop("named_heads")
    texts = shown.pop("texts", None)
    number = report["parameters"]
    shown["parameters"] = f"{number / 1e6:.3g} M ({number:,})"
    shown["dtypes"] = {
        dtype: f"{size / 1e6:.3g} MB" for dtype, size in report["dtypes"].items()
    }
    if named_heads:
        checkpoint = open_checkpoint(opened, config=config)
        shown.update(_head_rows(checkpoint, named_heads))
    if texts:
        shown.update(_text_rows(texts))
    return {name: x for name, x in shown.items() if x or name in _ALWAYS}


def _head_rows(
    opened: "checkpoints.Checkpoint", heads: dict[str, dict[str, Any]]
) -> dict[str, str]:
    """Return named heads as rows of a report."""
    return {f"head {name}": _head_row(opened, name, heads[name]) for name in heads}


def _head_row(opened, name, head):
    """Return the task of a named head, with its labels and pooling."""
    from albert_tf.models.task_of_checkpoint import task_class

    if not head["head"]:
        return "incomplete"
    task = task_class(opened.with_head(name))
    parts = [task.name_of_task if task else head["head"]]
    if labels := head["labels"]:
        parts.append(f"{len(labels)} labels: {format_value(labels)}")
    if head["pooling_mode"]:
        parts.append(f"pooling {head['pooling_mode']}")
    return "; ".join(parts)


@dataclasses.dataclass
class _Lengths:
    """Tokens of texts, counted block by block.

    Attributes:
        examples: list of arrays [examples], the tokens of each example as the model
            reads it.
        first_parts: list of arrays [examples], the tokens of the first part alone.
        tokens: int, the tokens of all texts.
        unknown: counts of what the vocabulary lacks.
    """

    examples: list[np.ndarray] = dataclasses.field(default_factory=list)
    first_parts: list[np.ndarray] = dataclasses.field(default_factory=list)
    tokens: int = 0
    unknown: collections.Counter[str] = dataclasses.field(
        default_factory=collections.Counter
    )

    def add(self, x: Inputs, tokenizer: Any) -> None:
        """Count the tokens of a block of examples."""
        lengths = [self._add_part(part, tokenizer) for part in as_columns(x)]
        first = lengths[0]
        second = np.sum(lengths[1:], axis=0, dtype=int)
        # [CLS] and [SEP], and another [SEP] after a second part.
        self.examples.append(2 + first + second + (second > 0))
        self.first_parts.append(first)

    def _add_part(self, part: list, tokenizer: Any) -> np.ndarray:
        """Return the tokens of each text; of choices, those of the longest."""
        from albert_tf.preprocessing.texts import tokenize_with_offsets

        examples = [[text] if isinstance(text, str) else text for text in part]
        texts = [text for example in examples for text in example]
        ids, starts, ends = tokenize_with_offsets(tokenizer, texts)
        lengths = ids.row_lengths().numpy()
        self.tokens += int(lengths.sum())
        unknown = np.flatnonzero(ids.values.numpy() == tokenizer.unk_token_id)
        for row, start, end in zip(
            ids.value_rowids().numpy()[unknown],
            starts.values.numpy()[unknown],
            ends.values.numpy()[unknown],
            strict=True,
        ):
            self.unknown[texts[row][start:end]] += 1
        splits = np.cumsum([len(example) for example in examples])[:-1]
        return np.array([int(x.max(initial=0)) for x in np.split(lengths, splits)])


def _inspect_texts(opened: Any, file: str, columns: ColumnOptions) -> dict[str, Any]:
    """Return counts of the texts of a file, their tokens and the unknown ones."""
    tokenizer = opened.tokenizer()
    if tokenizer is None:
        raise AlbertError(f"There is no vocabulary beside {opened.path}. Put it there.")
    model, task = opened.model, Task()
    fields: tuple[str, ...] = ("text",)
    most = opened.arguments["max_sequence_length"]
    if preprocessor := getattr(model, "preprocessor", None):
        most = preprocessor.sequence_length
        task = task_named(model.name_of_task)
        fields = task.fields(model)
    counts = _Lengths()
    for x, _ in file_blocks(task, file, columns, fields)():
        counts.add(x, tokenizer)
    if not counts.examples:
        raise AlbertError(f"{file} has no texts.")
    lengths, unknown = np.concatenate(counts.examples), counts.unknown
    report = {
        "count": len(lengths),
        "tokens": counts.tokens,
        "unknown": unknown.total(),
        "commonest_unknown": commonest(unknown),
        "advice": None,
        "median_length": int(np.median(lengths)),
        "length_of_95_percent": int(np.percentile(lengths, 95)),
        "longest": int(lengths.max()),
        "sequence_length": most,
        "longer": int((lengths > most).sum()),
        "reads_windows": getattr(model, "reads_windows", False),
    }
    if are_many(unknown.total(), counts.tokens):
        report["advice"] = advice(unknown, tokenizer)
    if question_limit := getattr(preprocessor, "question_limit", None):
        limit, _ = question_limit
        questions = np.concatenate(counts.first_parts)
        report["question_length"] = limit
        report["longer_questions"] = int((questions > limit).sum())
    return report


def _text_rows(counts):
    """Return the counts of `_inspect_texts` as rows of a report."""
    count, length = counts["count"], counts["sequence_length"]
    share = counts["unknown"] / max(counts["tokens"], 1)
    unknown = f"{share:.2%} of the tokens"
    if commonest := counts["commonest_unknown"]:
        shown = [f"{token} {number:,}" for token, number in commonest.items()]
        unknown += f": {', '.join(shown)}"
    median, most = counts["median_length"], counts["length_of_95_percent"]
    longer = f"{counts['longer']:,} ({counts['longer'] / count:.1%})"
    longer_row = "read in windows" if counts["reads_windows"] else "truncated"
    questions = None
    if long_questions := counts.get("longer_questions"):
        questions = (
            f"{long_questions:,} ({long_questions / count:.1%}), longer than "
            f"{counts['question_length']} tokens"
        )
    return {
        "texts": f"{count:,}, {counts['tokens']:,} tokens",
        "unknown": unknown,
        "advice": counts["advice"],
        "lengths": f"median {median}, 95% up to {most}, longest {counts['longest']:,}",
        longer_row: f"{longer}, longer than {length} tokens",
        "truncated questions": questions,
    }
