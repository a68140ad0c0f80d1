"""The commands `albert-tf convert`, `inspect`, `prune` and `download`."""

import collections
import dataclasses
import math
import os
import pathlib
from typing import Annotated, Any

import numpy as np
import typer

from albert_tf.files import read_releases
from albert_tf_cli import common, options
from albert_tf_cli.options import data_option, model_option, output_option
from albert_tf_cli.streaming import file_blocks
from albert_tf_cli.tasks import Columns, Task, task_named
from albert_tf_cli.tasks.task import as_columns
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.unknown import advice, are_many, commonest

# Two implementations differ by about 5e-6 in float32, misplaced weights by far more.
TOLERANCE = 1e-4
# Rows that `inspect` prints even if they are empty.
_ALWAYS = ("release", "vocabulary", "heads", "missing", "damaged")


def convert(
    checkpoint: options.Checkpoint,
    output: options.OutputDirectory,
    to: options.To,
    config: options.Config = None,
    vocab: options.Vocab = None,
    verify: Annotated[
        bool, output_option("Compare the outputs on a random batch.", "--verify")
    ] = False,
    overwrite: options.Overwrite = False,
):
    """Convert a checkpoint to another layout.

    \b
    Example:
      albert-tf convert albert_base_zh_google hf_model --to huggingface --verify
    """
    common.check_checkpoint(checkpoint)
    common.check_files(config, vocab)
    common.check_output(output, overwrite)
    common.import_tensorflow()
    from albert_tf import convert_checkpoint, verify_conversion

    done = convert_checkpoint(checkpoint, output, to, config=config, vocabulary=vocab)
    sizes = [math.prod(shape) for *_, shape in done.moved]
    common.print_summary(
        {
            "read": f"{checkpoint} ({done.layout})",
            "wrote": f"{output} ({to})",
            "files": sorted(file.name for file in pathlib.Path(output).iterdir()),
            "weights": f"{len(sizes):,}, {sum(sizes):,} numbers",
            "left_out": done.left_out,
        }
    )
    if not verify:
        return
    differences = verify_conversion(checkpoint, output, config=config)
    common.print_summary({f"difference of {x}": y for x, y in differences.items()})
    if not all(difference <= TOLERANCE for difference in differences.values()):
        raise AlbertError(
            "The outputs of the converted checkpoint differ from the original by more "
            f"than {TOLERANCE:.0e}."
        )


def inspect(
    checkpoint: options.Checkpoint,
    file: Annotated[
        str | None,
        typer.Argument(
            help="Texts, as for `predict`: count their tokens and the unknown ones."
        ),
    ] = None,
    config: options.Config = None,
    text_column: options.TextColumn = None,
    text_b_column: options.TextBColumn = None,
    encoding: options.Encoding = None,
    sheet: options.Sheet = None,
    as_json: options.Json = False,
):
    """Inspect a checkpoint and list missing weights.

    With a file of texts, also print the share of tokens that the vocabulary lacks, the
    lengths of the texts, and how many are longer than the model reads.

    \b
    Examples:
      albert-tf inspect albert_tiny_zh/albert_model.ckpt
      albert-tf inspect my_model reviews.csv
    """
    common.check_checkpoint(checkpoint)
    common.check_files(config, file)
    common.import_tensorflow()
    from albert_tf.checkpoints import RELEASES, inspect_checkpoint, open_checkpoint

    opened = open_checkpoint(checkpoint, config=config) if file else checkpoint
    report = dataclasses.asdict(inspect_checkpoint(opened, config=config))
    if file:
        columns = Columns(None, text_column, text_b_column, None, encoding, sheet)
        report["texts"] = _inspect_texts(opened, file, columns)
    if as_json:
        common.print_json(report, indent=2)
        return
    if report["release"]:
        others = RELEASES[report["release"]].confused_with
        report["release"] = " or ".join((report["release"], *others))
        if report["damaged"]:
            report["release"] += " by its index, but the data are damaged (see below)"
    if named := report.pop("named_heads"):
        report |= _head_rows(open_checkpoint(opened, config=config), named)
    number, dtypes = report["parameters"], report["dtypes"]
    report["parameters"] = f"{number / 1e6:.3g} M ({number:,})"
    report["dtypes"] = {x: f"{size / 1e6:.3g} MB" for x, size in dtypes.items()}
    if file:
        report |= _text_rows(report.pop("texts"))
    rows = {name: x for name, x in report.items() if x or name in _ALWAYS}
    common.print_summary(rows)


def _head_rows(opened, heads):
    """Return named heads as rows of a report."""
    from albert_tf.models.task_of_checkpoint import task_class

    rows = {}
    for name, head in heads.items():
        parts = ["incomplete"]
        if head["head"]:
            task = task_class(opened.with_head(name))
            parts = [task.name_of_task if task else head["head"]]
            if labels := head["labels"]:
                parts.append(f"{len(labels)} labels: {common.format_value(labels)}")
            if head["pooling_mode"]:
                parts.append(f"pooling {head['pooling_mode']}")
        rows[f"head {name}"] = "; ".join(parts)
    return rows


def _inspect_texts(opened, file, columns):
    """Return counts of the texts of a file, their tokens and the unknown ones."""
    tokenizer = opened.tokenizer()
    if tokenizer is None:
        raise AlbertError(f"There is no vocabulary beside {opened.path}. Put it there.")
    model, task, fields = opened.model, Task(), ("text",)
    longest = opened.arguments["max_sequence_length"]
    if preprocessor := getattr(model, "preprocessor", None):
        longest = preprocessor.sequence_length
        task = task_named(model.name_of_task)
        fields = task.fields(model)
    sizes, tokens, unknown = [], 0, collections.Counter()
    question_lengths = []
    for x, _ in file_blocks(task, file, columns, fields)():
        parts = []
        for part in as_columns(x):
            lengths, count, lacking = _count_tokens(part, tokenizer)
            parts.append(lengths)
            tokens += count
            unknown += lacking
        first, second = parts[0], np.sum(parts[1:], axis=0, dtype=int)
        # [CLS] and [SEP], and another [SEP] after a second part.
        sizes.append(2 + first + second + (second > 0))
        question_lengths.append(first)
    if not sizes:
        raise AlbertError(f"{file} has no texts.")
    lengths, many = np.concatenate(sizes), are_many(unknown.total(), tokens)
    return {
        "count": len(lengths),
        "tokens": tokens,
        "unknown": unknown.total(),
        "commonest_unknown": commonest(unknown),
        "advice": advice(unknown, tokenizer) if many else None,
        "median_length": int(np.median(lengths)),
        "length_of_95_percent": int(np.percentile(lengths, 95)),
        "longest": int(lengths.max()),
        "sequence_length": longest,
        "longer": int((lengths > longest).sum()),
        "reads_windows": getattr(model, "reads_windows", False),
        **_long_questions(preprocessor, np.concatenate(question_lengths)),
    }


def _long_questions(preprocessor, lengths):
    """Return the limit of questions and how many are longer; {} for other tasks."""
    if not hasattr(preprocessor, "question_limit"):
        return {}
    limit, _ = preprocessor.question_limit
    return {"question_length": limit, "longer_questions": int((lengths > limit).sum())}


def _count_tokens(part, tokenizer):
    """Return the tokens of each text, of all texts, and what is unknown.

    Choices are lists: an example is as long as its longest one.
    """
    from albert_tf.preprocessing.texts import tokenize_with_offsets

    examples = [[text] if isinstance(text, str) else text for text in part]
    texts = [text for example in examples for text in example]
    ids, starts, ends = tokenize_with_offsets(tokenizer, texts)
    places = np.flatnonzero(ids.values.numpy() == tokenizer.unk_token_id)
    rows, starts, ends = (
        x.numpy()[places] for x in (ids.value_rowids(), starts.values, ends.values)
    )
    unknown = (texts[i][a:b] for i, a, b in zip(rows, starts, ends, strict=True))
    lengths = ids.row_lengths().numpy()
    ends = np.cumsum([len(example) for example in examples])
    longest = [int(x.max(initial=0)) for x in np.split(lengths, ends[:-1])]
    return np.array(longest), int(lengths.sum()), collections.Counter(unknown)


def _text_rows(counts):
    """Return the counts of `_inspect_texts` as rows of a report."""
    count, length = counts["count"], counts["sequence_length"]
    names = ", ".join(f"{x} {n:,}" for x, n in counts["commonest_unknown"].items())
    share = counts["unknown"] / max(counts["tokens"], 1)
    verb = "read in windows" if counts["reads_windows"] else "truncated"
    questions = None
    if long_questions := counts.get("longer_questions"):
        questions = (
            f"{long_questions:,} ({long_questions / count:.1%}), longer than "
            f"{counts['question_length']} tokens"
        )
    return {
        "texts": f"{count:,}, {counts['tokens']:,} tokens",
        "unknown": f"{share:.2%} of the tokens{': ' * bool(names)}{names}",
        "advice": counts["advice"],
        "lengths": f"median {counts['median_length']}, 95% up to "
        f"{counts['length_of_95_percent']}, longest {counts['longest']:,}",
        verb: f"{counts['longer']:,} ({counts['longer'] / count:.1%}), longer than "
        f"{length} tokens",
        "truncated questions": questions,
    }


def prune(
    checkpoint: options.Checkpoint,
    output: options.OutputDirectory,
    corpus: Annotated[
        list[str],
        data_option(
            "File with typical texts: .txt with one text per line, .csv, .tsv or "
            ".jsonl. May be repeated."
        ),
    ],
    min_count: Annotated[
        int, model_option("Remove tokens that occur less often.", min=1)
    ] = 1,
    to: Annotated[
        options.Layout | None,
        output_option(
            "Layout of the checkpoint to write. Default: keras, or that of a "
            "checkpoint with several heads."
        ),
    ] = None,
    config: options.Config = None,
    vocab: options.Vocab = None,
    text_column: options.TextColumn = None,
    text_b_column: options.TextBColumn = None,
    encoding: options.Encoding = None,
    sheet: options.Sheet = None,
    overwrite: options.Overwrite = False,
):
    """Remove the tokens that a corpus does not need.

    Predictions on texts of the kept tokens do not change.

    \b
    Example:
      albert-tf prune my_model my_small_model --corpus train.tsv --min-count 2
    """
    common.check_checkpoint(checkpoint)
    common.check_files(config, vocab, *corpus)
    common.check_output(output, overwrite)
    common.import_tensorflow()
    from albert_tf.backbone import AlbertBackbone
    from albert_tf.checkpoints import open_checkpoint, prune_vocabulary
    from albert_tf.checkpoints.saving import Saving
    from albert_tf.models.task_of_checkpoint import build_model

    opened = open_checkpoint(checkpoint, config=config)
    # A preset is opened as its model. Prune those of KerasHub as models of ours.
    model: Any = opened.model
    if not isinstance(getattr(model, "backbone", model), AlbertBackbone):
        model = build_model(opened)
    tokenizer = opened.tokenizer(vocabulary=vocab)
    if tokenizer is None:
        raise FileNotFoundError(
            f"There is no vocabulary beside {checkpoint}. Pass --vocab."
        )
    pairs = getattr(model, "pairs", False)
    columns = Columns(None, text_column, text_b_column, None, encoding, sheet)
    fields = ("text", "text_pair") if pairs else ("text",)
    blocks = (file_blocks(Task(), file, columns, fields)() for file in corpus)
    texts = (x for part in blocks for y, _ in part for z in as_columns(y) for x in z)
    small, kept = prune_vocabulary(model, texts, tokenizer, min_count)
    # Named heads have no rows of the vocabulary.
    heads = opened.views()
    layout = to or (opened.layout.name if heads else "keras")
    Saving(small, output, layout, kept, heads=heads).write()
    before, after = (sum(x.numpy().nbytes for x in y.weights) for y in (model, small))
    common.print_summary(
        {
            "read": checkpoint,
            "wrote": f"{output} ({layout})",
            "tokens": f"{kept.vocabulary_size():,} of {tokenizer.vocabulary_size():,}",
            "weights": f"{after / 1e6:.2f} MB of {before / 1e6:.2f} MB",
        }
    )


def download(
    name: Annotated[
        str | None,
        typer.Argument(help="Name of the release. Without it, list all releases."),
    ] = None,
):
    """Download a released checkpoint and verify it.

    Set ALBERT_TF_CACHE to change the cache directory and ALBERT_TF_MIRROR to download
    from a mirror.

    \b
    Example:
      albert-tf download albert_tiny_zh
    """
    if name is None:
        print(*read_releases(), sep="\n")
        return
    if not os.path.exists(name):
        common.check_checkpoint(name)
    common.import_tensorflow()
    from albert_tf.checkpoints.download import download_release

    folder = download_release(name, progress=common.console.is_terminal)
    common.console.print(f"{name} is in {folder}", soft_wrap=True)
