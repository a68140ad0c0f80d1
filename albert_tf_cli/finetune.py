"""`albert-tf finetune`."""

import pathlib
import sys
from typing import Annotated

import typer

from albert_tf_cli.common import (
    BatchSize,
    Config,
    LabelColumn,
    TextAColumn,
    TextBColumn,
    Vocab,
    app,
    console,
    import_tensorflow,
    random_backbone,
    shown,
)


@app.command()
def finetune(
    context: typer.Context,
    train: Annotated[str, typer.Option(help="Labelled texts to train on.")],
    dev: Annotated[str, typer.Option(help="Labelled texts to choose the epoch on.")],
    output: Annotated[str, typer.Option(help="Directory to write the model to.")],
    checkpoint: Annotated[
        str | None, typer.Option(help="The checkpoint to start from.")
    ] = None,
    config: Config = None,
    vocab: Vocab = None,
    test: Annotated[
        str | None, typer.Option(help="Labelled texts to score the result on.")
    ] = None,
    epochs: Annotated[int, typer.Option(min=1)] = 3,
    batch_size: BatchSize = 32,
    learning_rate: Annotated[
        float | None,
        typer.Option(
            help="Peak of the learning rate. By default by size, 1e-4 for tiny; "
            "from random weights 3e-4."
        ),
    ] = None,
    sequence_length: Annotated[
        int, typer.Option(min=5, help="Most tokens of an example; longer is cut.")
    ] = 256,
    dropout: Annotated[
        float, typer.Option(min=0, max=0.9, help="Of the classification head.")
    ] = 0.1,
    seed: Annotated[int, typer.Option(help="Of weights, order and dropout.")] = 1,
    mixed_precision: Annotated[
        bool, typer.Option("--mixed-precision", help="Compute in bfloat16.")
    ] = False,
    label_column: LabelColumn = None,
    text_column: TextAColumn = None,
    text_b_column: TextBColumn = None,
):
    """Fine-tune a classifier on labelled texts.

    Files are .tsv, .csv or .jsonl, with a header (label, text, and for pairs
    text_b) or without; see --label-column and --text-column for others. The epoch
    with the best accuracy on --dev is kept. Writes the model, metrics.json and
    history.png to --output. A run that was cut off resumes when it is started again.

    Example: albert-tf finetune --checkpoint albert_tiny_zh --train train.tsv
    --dev dev.tsv --output my_model
    """
    folder = pathlib.Path(output)
    if folder.is_file():
        raise FileExistsError(f"--output {output} is a file. Give a directory.")
    import_tensorflow()
    import keras

    from albert_tf.data import class_names, read_labelled_texts
    from albert_tf.files import write_json
    from albert_tf.training.fine_tuning import fine_tune, plot_history
    from albert_tf.training.run_state import weights_digest

    columns = (label_column, text_column, text_b_column)
    data = {"train": read_labelled_texts(train, *columns)}
    pairs = data["train"].pairs
    for name, path in (("dev", dev), ("test", test)):
        if path:
            data[name] = read_labelled_texts(path, *columns, pairs=pairs)
    classes = class_names(data["train"].labels)
    if len(classes) < 2:
        raise ValueError(
            f"All texts of {train} have the label {classes[0]!r}. Expected two "
            "classes at least; is it the right --label-column?"
        )
    examples = {name: (part.x, part.class_ids(classes)) for name, part in data.items()}
    counts = [f"{name} {len(part.labels):,}" for name, part in data.items()]
    console.print(
        f"{len(classes)} classes: {shown(classes)}. {', '.join(counts)} "
        f"{'pairs' if pairs else 'texts'}",
        soft_wrap=True,
    )

    keras.utils.set_random_seed(seed)
    if mixed_precision:
        keras.config.set_dtype_policy("mixed_bfloat16")
    classifier = _new_classifier(
        *(checkpoint, config, vocab, sequence_length),
        num_classes=len(classes),
        labels=classes,
        dropout=dropout,
    )
    if learning_rate is None and checkpoint is None:
        learning_rate = 3e-4
    classifier.compile(learning_rate=learning_rate)

    options = {name: x for name, x in context.params.items() if name != "output"}
    metrics = fine_tune(
        classifier,
        examples["train"],
        examples["dev"],
        output,
        epochs=epochs,
        batch_size=batch_size,
        # What makes it another training: of files, what is in them.
        settings={
            **{name: x for name, x in options.items() if name not in _FILES},
            "classes": classes,
            "weights": weights_digest(classifier),
        },
        verbose=1 if sys.stdout.isatty() else 2,
    )
    if test:
        metrics["test"] = classifier.evaluate(
            *examples["test"], return_dict=True, verbose=0
        )
    metrics["classes"] = classes
    metrics["settings"] = options
    write_json(folder / "metrics.json", metrics)
    plot_history(metrics["history"], folder / "history.png")
    scores = [
        f"{name} accuracy {metrics[name]['accuracy']:.4f}"
        for name in ("dev", "test")
        if name in metrics
    ]
    console.print(
        f"Best epoch {metrics['best_epoch']} of {epochs}, {metrics['seconds']} s. "
        f"{', '.join(scores)}. Model, metrics.json and history.png are in {output}",
        soft_wrap=True,
    )


_FILES = (
    *("train", "dev", "test", "checkpoint", "config", "vocab"),
    *("label_column", "text_column", "text_b_column"),
)


def _new_classifier(checkpoint, config, vocab, sequence_length, **head):
    """A classifier on a checkpoint, or with random weights of a given size."""
    from albert_tf.checkpoints import open_checkpoint
    from albert_tf.models import AlbertTextClassifier

    if checkpoint:
        opened = open_checkpoint(checkpoint, config=config)
        length = min(sequence_length, opened.arguments["max_sequence_length"])
        return AlbertTextClassifier.from_checkpoint(
            opened, vocabulary=vocab, sequence_length=length, **head
        )
    if not (config and vocab):
        raise ValueError(
            "Give --checkpoint to start from, or --config and --vocab to train from "
            "random weights."
        )
    backbone = random_backbone(config)
    length = min(sequence_length, backbone.max_sequence_length)
    return AlbertTextClassifier.from_backbone(
        backbone, vocab, sequence_length=length, **head
    )
