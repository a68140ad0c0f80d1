"""`albert-tf prune`."""

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
    app,
    check_checkpoint,
    check_files,
    import_tensorflow,
    print_summary,
)
from albert_tf_cli.fine_tuned import load
from albert_tf_cli.task_table.row import Columns
from albert_tf_cli.text_files import lines_of


@app.command()
def prune(
    model: Checkpoint,
    output: Annotated[str, typer.Argument(help="Directory to write to.")],
    corpus: Annotated[
        list[str],
        typer.Option(
            help="Texts like those that the model will get: a .txt file, a text a "
            "line, or .csv, .tsv or .jsonl; may be repeated."
        ),
    ],
    min_count: Annotated[
        int, typer.Option(min=1, help="Leave out tokens that occur less often.")
    ] = 1,
    ascii_characters: Annotated[
        bool, typer.Option(help="Keep all ASCII characters, with and without ##.")
    ] = True,
    to: Annotated[Layout, typer.Option(help="What to write.")] = Layout.keras,
    config: Config = None,
    vocab: Vocab = None,
    text_column: TextAColumn = None,
    text_b_column: TextBColumn = None,
):
    """Keep only the tokens that a corpus needs; its texts keep their answers.

    Example: albert-tf prune my_model my_small_model --corpus train.tsv --min-count 2
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
    save_checkpoint(small, output, layout=to.value, tokenizer=kept)
    before, after = (sum(x.numpy().nbytes for x in y.weights) for y in (whole, small))
    print_summary(
        {
            "read": model,
            "wrote": f"{output} ({to.value})",
            "tokens": f"{len(tokens):,} of {tokenizer.vocabulary_size():,}",
            "weights": f"{after / 1e6:.2f} MB of {before / 1e6:.2f} MB",
        }
    )


def _open(model, config, vocab):
    """The model of a directory of `finetune`, or of a checkpoint; its tokenizer."""
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
