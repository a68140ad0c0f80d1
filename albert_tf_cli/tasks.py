"""`albert-tf finetune | evaluate | predict | export`."""

import json
import pathlib
import sys
from typing import Annotated

import typer
from rich.table import Table

from albert_tf_cli.common import (
    Config,
    Vocab,
    app,
    console,
    import_tensorflow,
    options_given,
    random_backbone,
    shown,
)

Model = Annotated[str, typer.Argument(help="A directory that `finetune` has written.")]
LabelColumn = Annotated[
    str | None,
    typer.Option(help="Name or number (from 1) of the column with the label."),
]
TextColumn = Annotated[
    str | None,
    typer.Option(help="Name or number (from 1) of the column with the text."),
]
TextBColumn = Annotated[
    str | None,
    typer.Option(help="The same of the second text, if an example is a pair."),
]
BatchSize = Annotated[int, typer.Option(min=1, help="Examples a step.")]


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
    text_column: TextColumn = None,
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
    if pathlib.Path(output).is_file():
        raise FileExistsError(f"--output {output} is a file. Give a directory.")
    import_tensorflow()
    import keras

    from albert_tf.data import class_names, read_labelled_texts
    from albert_tf.files import write_text
    from albert_tf.training.fine_tuning import fine_tune, plot_history
    from albert_tf.training.run_state import weights_digest

    columns = (label_column, text_column, text_b_column)
    data = {
        name: read_labelled_texts(path, *columns)
        for name, path in (("train", train), ("dev", dev), ("test", test))
        if path
    }
    for name, part in data.items():
        if part.pairs != data["train"].pairs:
            raise ValueError(
                f"{train} has {_KINDS[data['train'].pairs]}, --{name} has "
                f"{_KINDS[part.pairs]}. Say which columns to read with --text-column "
                "and --text-b-column."
            )
    classes = class_names(data["train"].labels)
    if len(classes) < 2:
        raise ValueError(
            f"All texts of {train} have the label {classes[0]!r}. Expected two "
            "classes at least; is it the right --label-column?"
        )
    examples = {name: (part.x, part.class_ids(classes)) for name, part in data.items()}
    console.print(
        f"{len(classes)} classes: {shown(classes)}. "
        + ", ".join(f"{name} {len(part[1]):,}" for name, part in examples.items())
        + (" pairs" if data["train"].pairs else " texts"),
        soft_wrap=True,
    )

    keras.utils.set_random_seed(seed)
    if mixed_precision:
        keras.config.set_dtype_policy("mixed_bfloat16")
    classifier = _new_classifier(
        checkpoint, config, vocab, sequence_length, classes, dropout
    )
    if learning_rate is None and checkpoint is None:
        learning_rate = 3e-4
    classifier.compile(learning_rate=learning_rate)

    metrics = fine_tune(
        classifier,
        examples["train"],
        examples["dev"],
        output,
        epochs=epochs,
        batch_size=batch_size,
        # What makes it another training, besides the data.
        settings={
            "classes": classes,
            "weights": weights_digest(classifier),
            "learning_rate": learning_rate,
            "sequence_length": sequence_length,
            "dropout": dropout,
            "mixed_precision": mixed_precision,
            "seed": seed,
        },
        verbose=1 if sys.stdout.isatty() else 2,
    )
    if test:
        scores = classifier.evaluate(*examples["test"], return_dict=True, verbose=0)
        metrics["test"] = scores
    metrics["classes"] = classes
    metrics["settings"] = options_given(context)
    output = pathlib.Path(output)
    text = json.dumps(metrics, ensure_ascii=False, indent=2)
    write_text(output / "metrics.json", text + "\n")
    plot_history(metrics["history"], output / "history.png")
    console.print(
        f"Best epoch {metrics['best_epoch']} of {epochs}, {metrics['seconds']} s. "
        + ", ".join(
            f"{name} accuracy {metrics[name]['accuracy']:.4f}"
            for name in ("dev", "test")
            if name in metrics
        )
        + f". Model, metrics.json and history.png are in {output}",
        soft_wrap=True,
    )


def _new_classifier(checkpoint, config, vocab, sequence_length, classes, dropout):
    """A classifier on a checkpoint, or with random weights of a given size."""
    from albert_tf.models import AlbertTextClassifier

    head = {"num_classes": len(classes), "labels": classes, "dropout": dropout}
    if checkpoint:
        from albert_tf.checkpoints import open_checkpoint

        opened = open_checkpoint(checkpoint, config=config)
        positions = opened.arguments["max_sequence_length"]
        return AlbertTextClassifier.from_checkpoint(
            opened,
            vocabulary=vocab,
            sequence_length=min(sequence_length, positions),
            **head,
        )
    if not (config and vocab):
        raise ValueError(
            "Give --checkpoint to start from, or --config and --vocab to train from "
            "random weights."
        )
    backbone = random_backbone(config)
    return AlbertTextClassifier.from_backbone(
        backbone,
        vocab,
        sequence_length=min(sequence_length, backbone.max_sequence_length),
        **head,
    )


@app.command()
def evaluate(
    model: Model,
    file: Annotated[str, typer.Argument(help="Labelled texts: .tsv, .csv, .jsonl.")],
    batch_size: BatchSize = 32,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    label_column: LabelColumn = None,
    text_column: TextColumn = None,
    text_b_column: TextBColumn = None,
):
    """Score a model on labelled texts: accuracy, and precision and recall by class.

    Example: albert-tf evaluate my_model test.tsv
    """
    import_tensorflow()
    from sklearn.metrics import classification_report, confusion_matrix

    from albert_tf.data.tables import read_labelled_texts

    classifier = _load(model)
    data = read_labelled_texts(file, label_column, text_column, text_b_column)
    _check_pairs(classifier, data.pairs)
    labels = classifier.class_names
    truth = data.class_ids(labels)
    predicted = classifier.predict(data.x, batch_size=batch_size, verbose=0)
    arguments = {
        "y_true": truth,
        "y_pred": predicted.argmax(-1),
        "labels": range(classifier.num_classes),
    }
    matrix = confusion_matrix(**arguments)
    report = classification_report(
        **arguments,
        target_names=labels,
        zero_division=0,
        digits=4,
        output_dict=as_json,
    )
    if as_json:
        report["confusion_matrix"] = matrix.tolist()
        print(json.dumps(report, ensure_ascii=False, indent=2))
        return
    console.print(report, soft_wrap=True)
    table = Table("truth \\ predicted", *labels)
    for label, row in zip(labels, matrix, strict=True):
        table.add_row(label, *map(str, row))
    console.print(table)


@app.command()
def predict(
    model: Model,
    texts: Annotated[
        list[str] | None,
        typer.Argument(help="Texts; without any, the lines of standard input."),
    ] = None,
    batch_size: BatchSize = 32,
):
    """Classify texts: prints label, probability and text, separated by tabs.

    For a model of pairs, a text is the two with a tab between them.

    Example: albert-tf predict my_model 很好 太差了
    Example: cat reviews.txt | albert-tf predict my_model
    """
    import_tensorflow()
    classifier = _load(model)
    if not texts:
        # As bytes: one line that is not UTF-8 should not end the rest.
        lines = sys.stdin.buffer.read().split(b"\n")
        texts = [line.removesuffix(b"\r").decode("utf-8", "replace") for line in lines]
        texts = texts[:-1] if texts[-1] == "" else texts
    x = [_as_pair(text) for text in texts] if classifier.pairs else texts
    x = tuple(map(list, zip(*x, strict=True))) if x and classifier.pairs else x
    for text, row in zip(texts, _probabilities(classifier, x, batch_size), strict=True):
        best = row.argmax()
        print(f"{classifier.class_names[best]}\t{row[best]:.4f}\t{text}")


def _as_pair(text):
    first, tab, second = text.partition("\t")
    if not tab:
        raise ValueError(
            f"This model takes pairs of texts with a tab between them. Found: {text!r}"
        )
    return first, second


def _probabilities(classifier, x, batch_size):
    import keras

    outputs = classifier.predict(x, batch_size=batch_size, verbose=0)
    if classifier.activation is keras.activations.linear and len(outputs):
        return keras.ops.convert_to_numpy(keras.ops.softmax(outputs))
    return outputs


@app.command()
def export(
    model: Model,
    directory: Annotated[
        str,
        typer.Argument(help="Where to write; TensorFlow Serving wants .../NAME/1."),
    ],
):
    """Write a SavedModel that takes strings, for TensorFlow Serving.

    Example: albert-tf export my_model serving/my_model/1
    """
    import_tensorflow()
    from albert_tf.export import saved_model

    classifier = _load(model)
    saved_model(classifier, directory)
    files = [file for file in pathlib.Path(directory).rglob("*") if file.is_file()]
    megabytes = sum(file.stat().st_size for file in files) / 1e6
    inputs = "text, text_b" if classifier.pairs else "text"
    console.print(
        f"Wrote {directory} ({megabytes:.1f} MB). serving_default takes {inputs} and "
        "gives label, label_id, probabilities."
    )


def _load(model):
    from albert_tf.checkpoints.config import read_config
    from albert_tf.models import AlbertTextClassifier

    folder = pathlib.Path(model)
    # Without task.weights.h5 KerasHub would give the head random weights.
    for name in ("config.json", "task.json", "task.weights.h5"):
        if not (folder / name).exists():
            raise FileNotFoundError(
                f"{model} is not a model that `albert-tf finetune` has written: it "
                f"has no {name}. A classifier in another form becomes one by "
                f"`albert-tf convert {model} DIRECTORY --to keras`."
            )
    for name in ("config.json", "task.json"):
        read_config(folder / name)
    return AlbertTextClassifier.from_preset(model)


_KINDS = {True: "pairs of texts", False: "single texts"}


def _check_pairs(classifier, pairs):
    if classifier.pairs != pairs:
        raise ValueError(
            f"The model takes {_KINDS[classifier.pairs]}, "
            f"the file has {_KINDS[pairs]}. "
            "Say which columns to read with --text-column and --text-b-column."
        )
