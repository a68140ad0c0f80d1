"""The command `albert-tf prune`."""

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from albert_tf_cli.shared.column_options import columns_of
from albert_tf_cli.shared.console import print_summary
from albert_tf_cli.shared.early_checks import (
    check_checkpoint,
    check_files,
    check_output,
)
from albert_tf_cli.shared.importing import import_tensorflow
from albert_tf_cli.shared.options import (
    Checkpoint,
    Config,
    Encoding,
    Layout,
    OutputDirectory,
    Overwrite,
    Sheet,
    TextBColumn,
    TextColumn,
    Vocab,
    data_option,
    model_option,
    output_option,
    takes_options,
)
from albert_tf_cli.tasks import Task
from albert_tf_cli.tasks.blocks import file_blocks
from albert_tf_cli.tasks.task import as_columns

if TYPE_CHECKING:
    from albert_tf import checkpoints


@dataclasses.dataclass(frozen=True, kw_only=True)
class PruneOptions:
    """The options of `albert-tf prune`."""

    checkpoint: Checkpoint
    output: OutputDirectory
    corpus: Annotated[
        list[str],
        data_option(
            "File with typical texts: .txt with one text per line, .csv, .tsv or "
            ".jsonl. May be repeated."
        ),
    ]
    min_count: Annotated[
        int, model_option("Remove tokens that occur less often.", min=1)
    ] = 1
    to: Annotated[
        Layout | None,
        output_option(
            "Layout of the checkpoint to write. Default: keras, or that of a "
            "checkpoint with several heads."
        ),
    ] = None
    config: Config = None
    vocab: Vocab = None
    text_column: TextColumn = None
    text_b_column: TextBColumn = None
    encoding: Encoding = None
    sheet: Sheet = None
    overwrite: Overwrite = False


@takes_options
def prune(context: typer.Context, options: PruneOptions) -> None:
    """Remove the tokens that a corpus does not need.

    Predictions on texts of the kept tokens do not change.

    \b
    Example:
      albert-tf prune my_model my_small_model --corpus train.tsv --min-count 2
    """
    check_checkpoint(options.checkpoint)
    check_files(options.config, options.vocab, *options.corpus)
    check_output(options.output, options.overwrite)
    import_tensorflow()
    from albert_tf.checkpoints import open_checkpoint, prune_vocabulary
    from albert_tf.checkpoints.saving import Saving

    opened = open_checkpoint(options.checkpoint, config=options.config)
    model = _model(opened)
    tokenizer = opened.tokenizer(vocabulary=options.vocab)
    if tokenizer is None:
        raise FileNotFoundError(
            f"There is no vocabulary beside {options.checkpoint}. Pass --vocab."
        )
    texts = _corpus_texts(options, takes_pairs=getattr(model, "pairs", False))
    small, kept = prune_vocabulary(model, texts, tokenizer, options.min_count)
    # Named heads have no rows of the vocabulary.
    heads = opened.views()
    layout = options.to or (opened.layout.name if heads else "keras")
    Saving(small, options.output, layout, kept, heads=heads).write()
    print_summary(
        {
            "read": options.checkpoint,
            "wrote": f"{options.output} ({layout})",
            "tokens": f"{kept.vocabulary_size():,} of {tokenizer.vocabulary_size():,}",
            "weights": f"{_megabytes(small):.2f} MB of {_megabytes(model):.2f} MB",
        }
    )


def _model(opened: "checkpoints.Checkpoint") -> Any:
    """Return the model of a checkpoint, one of ours also for presets of KerasHub."""
    from albert_tf.backbone import AlbertBackbone
    from albert_tf.models.task_of_checkpoint import build_model

    model: Any = opened.model
    if isinstance(getattr(model, "backbone", model), AlbertBackbone):
        return model
    return build_model(opened)


def _corpus_texts(options: PruneOptions, takes_pairs: bool) -> Iterator[str]:
    """Yield the texts of all files."""
    fields = ("text", "text_pair") if takes_pairs else ("text",)
    for file in options.corpus:
        blocks = file_blocks(Task(), file, columns_of(options), fields)
        for x, _ in blocks():
            for column in as_columns(x):
                yield from column


def _megabytes(model: Any) -> float:
    """Return the size of the weights of a model in MB."""
    return sum(weight.numpy().nbytes for weight in model.weights) / 1e6
