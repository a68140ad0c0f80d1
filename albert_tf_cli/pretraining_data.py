"""The command `albert-tf pretrain-data`."""

import functools
import pathlib
import types
from typing import Annotated, Any, Literal

import typer

from albert_tf_cli import common
from albert_tf_cli.options import (
    Encoding,
    Seed,
    Sheet,
    Workers,
    advanced_option,
    data_option,
    directory_option,
    mask_option,
    output_option,
)
from albert_tf_lite.errors import AlbertError

Engine = Literal["process", "ray"]
Segmenter = Literal["jieba", "whitespace"]
Order = Literal["sop", "nsp", "three_way", "none"]

# Options of `pretrain`.
Ngram = Annotated[int | None, mask_option("Maximum words masked together. Default: 3.")]
MarkedLabels = Annotated[
    bool | None, mask_option("Label inner characters with ##, as albert_zh.")
]

# Options that apply to labelled files.
_LABELLED = {"--labelled", "--vocab", "--output", "--sequence-length", "--cased"}
_LABELLED |= {"--encoding", "--sheet"}


def pretrain_data(
    context: typer.Context,
    *,
    files: Annotated[
        list[str] | None,
        data_option(
            "Text file or pattern such as 'corpus/*.txt'; may be repeated. Also .gz, "
            ".zst and JSON lines (.jsonl).",
            "--input",
        ),
    ] = None,
    labelled: Annotated[
        list[str] | None,
        data_option(
            "Labelled file and the head that learns it, as NAME:TASK=FILE, instead of "
            "--input; may be repeated, also with the same NAME. TASK is "
            "text-classification, regression, token-classification or "
            "question-answering."
        ),
    ] = None,
    vocab: Annotated[str, data_option("A vocab.txt or SentencePiece model.")],
    output: Annotated[str, directory_option("Directory for the records.")],
    sequence_length: Annotated[int, output_option("Tokens per sequence.")] = 512,
    order: Annotated[
        Order,
        output_option(
            "Labels of pairs: sop (ALBERT), nsp (BERT), three_way (StructBERT), none "
            "(RoBERTa)."
        ),
    ] = "sop",
    duplicates: Annotated[
        int, output_option("Number of times the text is used, in other pairs.")
    ] = 1,
    keep_unpaired: Annotated[
        bool, output_option("Keep sentences without a second.", "--keep-unpaired")
    ] = False,
    whole_word: Annotated[
        bool, data_option("Mark words, to mask whole words instead of tokens.")
    ] = True,
    segmenter: Annotated[
        Segmenter, data_option("Word segmenter; whitespace for segmented text.")
    ] = "jieba",
    user_dictionary: Annotated[
        str | None,
        data_option("Your dictionary, in jieba's format, in UTF-8 or --encoding."),
    ] = None,
    document_per_line: Annotated[
        bool,
        data_option(
            "Read each line of a text file as a document, instead of the lines up to "
            "an empty one.",
            "--document-per-line",
        ),
    ] = False,
    text_field: Annotated[
        str, data_option("Field of the JSON lines with the text.")
    ] = "text",
    encoding: Encoding = None,
    sheet: Sheet = None,
    cased: Annotated[bool, data_option("Do not lower-case.", "--cased")] = False,
    seed: Seed = 1,
    workers: Workers = None,
    engine: Annotated[
        Engine, advanced_option("This machine, or the Ray cluster in RAY_ADDRESS.")
    ] = "process",
):
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
    args = types.SimpleNamespace(**context.params)
    args.files = files or []
    if bool(files) == bool(labelled):
        raise AlbertError("Give --input for text, or --labelled for labelled files.")
    common.import_tensorflow()
    make = _from_labelled(args, context) if labelled else _from_text(args)
    with common.progress_bar("Text", context) as progress:
        manifest = make(progress=progress)
    common.print_summary(manifest["counts"])
    for warning in manifest["warnings"]:
        common.console.print(f"Warning: {warning}", soft_wrap=True)
    for name, head in manifest.get("heads", {}).items():
        labels = f": {common.format_value(head['labels'])}" if head["labels"] else ""
        common.console.print(f"{name} ({head['task']}){labels}", soft_wrap=True)
    count = len(manifest["shards"])
    common.console.print(f"Shards of records in {output}: {count}", soft_wrap=True)


def _from_labelled(args, context):
    """Return the function that makes records of labelled files."""
    from albert_tf.pretraining import make_labelled_data
    from albert_tf_cli.tasks import Columns

    if given := _given(context) - _LABELLED:
        raise AlbertError(
            f"{', '.join(sorted(given))}: only for text without labels. Leave it out."
        )
    given_files = [_labelled_file(text) for text in args.labelled]
    if args.sheet is not None and not any(_is_workbook(x) for *_, x in given_files):
        raise AlbertError("No file is a workbook of sheets. Leave out --sheet.")
    columns = Columns(encoding=args.encoding, sheet=args.sheet)
    sets = [_labelled_set(*given, columns) for given in given_files]
    return functools.partial(
        make_labelled_data,
        *(sets, args.output, args.vocab, args.sequence_length),
        lowercase=not args.cased,
    )


def _from_text(args):
    """Return the function that makes records of text."""
    import zh
    from albert_tf.pretraining import PretrainingData, make_pretraining_data

    if args.sheet is not None:
        raise AlbertError("--sheet is for workbooks of --labelled. Leave it out.")
    words: Any = zh.Whitespace()
    is_used = args.whole_word and args.segmenter == "jieba"
    if args.user_dictionary is not None and not is_used:
        raise AlbertError(
            "--user-dictionary is for --segmenter jieba and --whole-word. Leave it out."
        )
    if args.segmenter == "jieba":
        encoding = _dictionary_encoding(args.user_dictionary, args.encoding)
        words = zh.Jieba(args.user_dictionary, encoding)
    settings = PretrainingData(
        args.vocab,
        lowercase=not args.cased,
        sequence_length=args.sequence_length,
        segmenter=words if args.whole_word else None,
        split_sentences=zh.split_sentences,
        duplicates=args.duplicates,
        order=args.order,
        keep_unpaired=args.keep_unpaired,
        text_field=args.text_field,
        encoding=args.encoding,
        document_per_line=args.document_per_line,
        seed=args.seed,
    )
    return functools.partial(
        make_pretraining_data,
        *(args.files, args.output, settings, args.engine, args.workers),
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


def _labelled_file(text: str) -> tuple[str, str, str]:
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
    return head, task, file


def _is_workbook(file: str) -> bool:
    from albert_tf.data.files.table_formats import detect_format

    return pathlib.Path(file).is_file() and detect_format(file) == ".xlsx"


def _labelled_set(head: str, task: str, file: str, columns: Any) -> Any:
    """Read a labelled file; its `columns` name a sheet of workbooks only."""
    from albert_tf.pretraining import LabelledSet
    from albert_tf_cli.tasks import task_named

    if not _is_workbook(file):
        columns = columns._replace(sheet=None)
    found = task_named(task).read(file, columns)
    labels = found.arguments.get("labels")
    return LabelledSet(file, head, task, found.x, found.y, labels)


def _given(context: typer.Context) -> set[str]:
    """Return the options that the user gave."""
    return {
        parameter.opts[0]
        for parameter in context.command.params
        if (source := context.get_parameter_source(parameter.name))
        and source.name == "COMMANDLINE"
    }
