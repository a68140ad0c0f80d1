"""`albert-tf evaluate | predict | export`: what one does with a fine-tuned model."""

import json
import pathlib
import sys
from typing import Annotated

import typer
from rich.table import Table

from albert_tf_cli.common import (
    BatchSize,
    LabelColumn,
    TextAColumn,
    TextBColumn,
    app,
    console,
    import_tensorflow,
)

Model = Annotated[str, typer.Argument(help="A directory that `finetune` has written.")]


@app.command()
def evaluate(
    model: Model,
    file: Annotated[str, typer.Argument(help="Labelled texts: .tsv, .csv, .jsonl.")],
    batch_size: BatchSize = 32,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    label_column: LabelColumn = None,
    text_column: TextAColumn = None,
    text_b_column: TextBColumn = None,
):
    """Score a model on labelled texts: accuracy, and precision and recall by class.

    Example: albert-tf evaluate my_model test.tsv
    """
    import_tensorflow()
    from sklearn.metrics import classification_report, confusion_matrix

    from albert_tf.data.tables import read_labelled_texts

    classifier = _load(model)
    columns = (label_column, text_column, text_b_column)
    data = read_labelled_texts(file, *columns, pairs=classifier.pairs)
    labels = classifier.class_names
    truth = data.class_ids(labels)
    predicted = classifier.predict(data.x, batch_size=batch_size, verbose=0).argmax(-1)
    ids = range(classifier.num_classes)
    matrix = confusion_matrix(truth, predicted, labels=ids)
    report = classification_report(
        *(truth, predicted),
        labels=ids,
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
    import numpy as np

    classifier = _load(model)
    if not texts:
        # As bytes: one line that is not UTF-8 should not end the rest.
        lines = sys.stdin.buffer.read().split(b"\n")
        texts = [line.removesuffix(b"\r").decode("utf-8", "replace") for line in lines]
        texts = texts[:-1] if texts[-1] == "" else texts
    x = texts
    if classifier.pairs:
        pairs = [_as_pair(text) for text in texts]
        x = ([first for first, _ in pairs], [second for _, second in pairs])
    outputs = classifier.predict(x, batch_size=batch_size, verbose=0)
    answers = classifier.answers(outputs)
    labels, rows = answers["label"].numpy(), np.asarray(answers["probabilities"])
    for label, row, text in zip(labels, rows, texts, strict=True):
        print(f"{label.decode()}\t{row.max():.4f}\t{text}")


def _as_pair(text):
    first, tab, second = text.partition("\t")
    if not tab:
        raise ValueError(
            f"This model takes pairs of texts with a tab between them. Found: {text!r}"
        )
    return first, second


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
    console.print(
        f"Wrote {directory}. serving_default takes {', '.join(classifier.text_inputs)} "
        "and gives label, label_id, probabilities."
    )


def _load(model):
    from albert_tf.checkpoints.config import read_config
    from albert_tf.models import AlbertTextClassifier

    # Without task.weights.h5 KerasHub would give the head random weights.
    for name in ("config.json", "task.json", "task.weights.h5"):
        file = pathlib.Path(model) / name
        if not file.exists():
            raise FileNotFoundError(
                f"{model} is not a model that `albert-tf finetune` has written: it "
                f"has no {name}. A classifier in another form becomes one by "
                f"`albert-tf convert {model} DIRECTORY --to keras`."
            )
        if file.suffix == ".json":
            read_config(file)
    return AlbertTextClassifier.from_preset(model)
