"""The command `albert-tf prune`."""

import pathlib
from typing import Annotated

import typer

from albert_tf_cli.common import (
    Checkpoint,
    Config,
    Layout,
    TextAColumn,
    TextBColumn,
    Vocab,
    check_checkpoint,
    check_files,
    import_tensorflow,
    print_summary,
)
from albert_tf_cli.fine_tuned import load
from albert_tf_cli.task_table.row import Columns
from albert_tf_cli.text_files import lines_of


def prune(
    model: Checkpoint,
    output: Annotated[str, typer.Argument(help="Output directory.")],
    corpus: Annotated[
        list[str],
        typer.Option(
            help="File with typical texts: .txt with one text per line, .csv, .tsv or "
            ".jsonl. May be repeated."
        ),
    ],
    min_count: Annotated[
        int, typer.Option(min=1, help="Remove tokens that occur less often.")
    ] = 1,
    ascii_characters: Annotated[
        bool, typer.Option(help="Keep all ASCII characters, with and without ##.")
    ] = True,
    to: Annotated[Layout, typer.Option(help="Layout to write.")] = "keras",
    config: Config = None,
    vocab: Vocab = None,
    text_column: TextAColumn = None,
    text_b_column: TextBColumn = None,
):
    """Remove the tokens that a corpus does not need.

    The predictions for its texts stay the same.

    \b
    Example:
      albert-tf prune my_model my_small_model --corpus train.tsv --min-count 2
    """
    check_checkpoint(model)
    check_files(config, vocab, *corpus)
    import_tensorflow()
    from albert_tf.checkpoints import keep_tokens, needed_tokens, save_checkpoint
    from albert_tf.tokenizers import WordPieceTokenizer

    whole, tokenizer = _open(model, config, vocab)
    columns = Columns(None, text_column, text_b_column)
    pairs = getattr(whole, "pairs", False)
    tokens = needed_tokens(
        (text for file in corpus for text in lines_of(file, pairs, columns)),
        tokenizer,
        min_count=min_count,
        ascii_characters=ascii_characters,
        marked_characters="masked_lm_head" in getattr(whole, "heads", ()),
    )
    small = keep_tokens(whole, tokens, tokenizer)
    kept = WordPieceTokenizer(tokens, lowercase=tokenizer.lowercase)
    save_checkpoint(small, output, layout=to, tokenizer=kept)
    before, after = (sum(x.numpy().nbytes for x in y.weights) for y in (whole, small))
    print_summary(
        {
            "read": model,
            "wrote": f"{output} ({to})",
            "tokens": f"{len(tokens):,} of {tokenizer.vocabulary_size():,}",
            "weights": f"{after / 1e6:.2f} MB of {before / 1e6:.2f} MB",
        }
    )


def _open(model, config, vocab):
    """Load a fine-tuned model or a checkpoint; return the model and its tokenizer."""
    from albert_tf.checkpoints import open_checkpoint
    from albert_tf.models.building import build_model

    if pathlib.Path(model, "task.json").exists():
        task = load(model)[1]
        return task, task.preprocessor.tokenizer
    checkpoint = open_checkpoint(model, config=config)
    tokenizer = checkpoint.tokenizer(vocabulary=vocab)
    if tokenizer is None:
        raise FileNotFoundError(f"There is no vocabulary beside {model}. Give --vocab.")
    return build_model(checkpoint), tokenizer
