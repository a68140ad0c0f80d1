"""The command `albert-tf pretrain-data`."""

import dataclasses
import functools
import pathlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from albert_tf_cli.shared.column_options import ColumnOptions, columns_of
from albert_tf_cli.shared.console import console, format_value, print_summary
from albert_tf_cli.shared.importing import import_tensorflow
from albert_tf_cli.shared.options import (
    Encoding,
    Seed,
    Sheet,
    Workers,
    advanced_option,
    data_option,
    directory_option,
    mask_option,
    output_option,
    takes_options,
)
from albert_tf_cli.shared.progress import progress_bar
from albert_tf_cli.tasks import task_named
from albert_tf_lite.errors import AlbertError

if TYPE_CHECKING:
    from albert_tf.pretraining import LabelledSet

Engine = Literal["process", "ray"]
Segmenter = Literal["jieba", "whitespace"]
Order = Literal["sop", "nsp", "three_way", "none"]

# Options of `pretrain`.
Ngram = Annotated[int | None, mask_option("Maximum words masked together. Default: 3.")]
MarkedLabels = Annotated[
    bool | None, mask_option("Label inner characters with ##, as albert_zh.")
]

# Options that apply to labelled files.
_LABELLED = {
    "--labelled",
    "--vocab",
    "--output",
    "--sequence-length",
    "--cased",
    "--encoding",
    "--sheet",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class PretrainDataOptions:
    """The options of `albert-tf pretrain-data`."""

    files: Annotated[
        list[str] | None,
        data_option(
            "Text file or pattern such as 'corpus/*.txt'; may be repeated. Also .gz, "
            ".zst and JSON lines (.jsonl).",
            "--input",
        ),
    ] = None
    labelled: Annotated[
        list[str] | None,
        data_option(
            "Labelled file and the head that learns it, as NAME:TASK=FILE, instead of "
            "--input; may be repeated, also with the same NAME. TASK is "
            "text-classification, regression, token-classification or "
            "question-answering."
        ),
    ] = None
    vocab: Annotated[str, data_option("A vocab.txt or SentencePiece model.")]
    output: Annotated[str, directory_option("Directory for the records.")]
    sequence_length: Annotated[int, output_option("Tokens per sequence.")] = 512
    order: Annotated[
        Order,
        output_option(
            "Labels of pairs: sop (ALBERT), nsp (BERT), three_way (StructBERT), none "
            "(RoBERTa)."
        ),
    ] = "sop"
    duplicates: Annotated[
        int, output_option("Number of times the text is used, in other pairs.")
    ] = 1
    keep_unpaired: Annotated[
        bool, output_option("Keep sentences without a second.", "--keep-unpaired")
    ] = False
    whole_word: Annotated[
        bool, data_option("Mark words, to mask whole words instead of tokens.")
    ] = True
    segmenter: Annotated[
        Segmenter, data_option("Word segmenter; whitespace for segmented text.")
    ] = "jieba"
    user_dictionary: Annotated[
        str | None,
        data_option("Your dictionary, in jieba's format, in UTF-8 or --encoding."),
    ] = None
    document_per_line: Annotated[
        bool,
        data_option(
            "Read each line of a text file as a document, instead of the lines up to "
            "an empty one.",
            "--document-per-line",
        ),
    ] = False
    text_field: Annotated[
        str, data_option("Field of the JSON lines with the text.")
    ] = "text"
    encoding: Encoding = None
    sheet: Sheet = None
    cased: Annotated[bool, data_option("Do not lower-case.", "--cased")] = False
    seed: Seed = 1
    workers: Workers = None
    engine: Annotated[
        Engine, advanced_option("This machine, or the Ray cluster in RAY_ADDRESS.")
    ] = "process"


@takes_options
def pretrain_data(context: typer.Context, options: PretrainDataOptions) -> None:
    """Turn text into flat arrays of tokens for pretraining.

    The records depend on the seed, not on the number of workers. The same command
    resumes after an interruption. Labelled files make records of their own, for
    `pretrain --labelled`.

    \b
    Examples:
      albert-tf pretrain-data --input 'corpus/*.txt' --vocab vocab.txt \\
          --output records
      albert-tf pretrain-data --vocab vocab.txt --output labelled \\
          --labelled sentiment:text-classification=reviews.tsv \\
          --labelled entities:token-classification=names.txt
    """
    if bool(options.files) == bool(options.labelled):
        raise AlbertError("Give --input for text, or --labelled for labelled files.")
    import_tensorflow()
    if options.labelled:
        make = _from_labelled(options, _given(context))
    else:
        make = _from_text(options)
    with progress_bar("Text", context) as progress:
        manifest = make(progress=progress)
    print_summary(manifest["counts"])
    for warning in manifest["warnings"]:
        console.print(f"Warning: {warning}", soft_wrap=True)
    for name, head in manifest.get("heads", {}).items():
        labels = f": {format_value(head['labels'])}" if head["labels"] else ""
        console.print(f"{name} ({head['task']}){labels}", soft_wrap=True)
    count = len(manifest["shards"])
    console.print(f"Shards of records in {options.output}: {count}", soft_wrap=True)


def _from_labelled(
    options: PretrainDataOptions, given: set[str]
) -> Callable[..., dict[str, Any]]:
    """Return the function that makes records of labelled files."""
    from albert_tf.pretraining import make_labelled_data

    if others := given - _LABELLED:
        raise AlbertError(
            f"{', '.join(sorted(others))}: only for text without labels. Leave it out."
        )
    files = [_labelled_file(text) for text in options.labelled or ()]
    is_workbook = [_is_workbook(labelled.file) for labelled in files]
    if options.sheet is not None and not any(is_workbook):
        raise AlbertError("No file is a workbook of sheets. Leave out --sheet.")
    columns = columns_of(options)
    return functools.partial(
        make_labelled_data,
        [_labelled_set(labelled, columns) for labelled in files],
        options.output,
        options.vocab,
        options.sequence_length,
        lowercase=not options.cased,
    )


def _from_text(options: PretrainDataOptions) -> Callable[..., dict[str, Any]]:
    """Return the function that makes records of text."""
    import zh
    from albert_tf.pretraining import PretrainingData, make_pretraining_data

    if options.sheet is not None:
        raise AlbertError("--sheet is for workbooks of --labelled. Leave it out.")
    is_jieba = options.segmenter == "jieba"
    if options.user_dictionary is not None and not (options.whole_word and is_jieba):
        raise AlbertError(
            "--user-dictionary is for --segmenter jieba and --whole-word. Leave it out."
        )
    segmenter: Any = None
    if options.whole_word and is_jieba:
        encoding = _dictionary_encoding(options.user_dictionary, options.encoding)
        segmenter = zh.Jieba(options.user_dictionary, encoding)
    elif options.whole_word:
        segmenter = zh.Whitespace()
    settings = PretrainingData(
        options.vocab,
        lowercase=not options.cased,
        sequence_length=options.sequence_length,
        segmenter=segmenter,
        split_sentences=zh.split_sentences,
        duplicates=options.duplicates,
        order=options.order,
        keep_unpaired=options.keep_unpaired,
        text_field=options.text_field,
        encoding=options.encoding,
        document_per_line=options.document_per_line,
        seed=options.seed,
    )
    return functools.partial(
        make_pretraining_data,
        options.files or [],
        options.output,
        settings,
        options.engine,
        options.workers,
    )


def _dictionary_encoding(path: str | None, encoding: str | None) -> str | None:
    """Return the encoding of the user dictionary: UTF-8, or that of the text."""
    if path is None or encoding is None:
        return None
    try:
        pathlib.Path(path).read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        return encoding
    return "utf-8"


class _LabelledFile(NamedTuple):
    """A labelled file, and the head that learns its task."""

    head: str
    task: str
    file: str


def _labelled_file(text: str) -> _LabelledFile:
    """Return the parts of NAME:TASK=FILE."""
    from albert_tf.pretraining.records.shard_files import TARGETS

    head, colon, rest = text.partition(":")
    task, equals, file = rest.partition("=")
    if not (head and colon and equals and file) or task not in TARGETS:
        raise AlbertError(
            "--labelled must be NAME:TASK=FILE, such as "
            "sentiment:text-classification=reviews.tsv, and TASK one of "
            f"{', '.join(TARGETS)}. Received: {text}"
        )
    return _LabelledFile(head, task, file)


def _is_workbook(file: str) -> bool:
    from albert_tf.data.files.table_formats import detect_format

    return pathlib.Path(file).is_file() and detect_format(file) == ".xlsx"


def _labelled_set(labelled: _LabelledFile, columns: ColumnOptions) -> "LabelledSet":
    """Read a labelled file; its `columns` name a sheet of workbooks only."""
    from albert_tf.pretraining import LabelledSet

    head, task, file = labelled
    if not _is_workbook(file):
        columns = dataclasses.replace(columns, sheet=None)
    examples = task_named(task).read(file, columns)
    labels = examples.arguments.get("labels")
    return LabelledSet(file, head, task, examples.x, examples.y, labels)


def _given(context: typer.Context) -> set[str]:
    """Return the options that the user gave."""
    return {
        parameter.opts[0]
        for parameter in context.command.params
        if (source := context.get_parameter_source(parameter.name))
        and source.name == "COMMANDLINE"
    }
