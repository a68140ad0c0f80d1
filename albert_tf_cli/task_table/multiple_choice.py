"""Questions on texts with several choices: files of the C3 and RACE forms."""

from albert_tf_cli.task_table.row import Examples, Report, Row
from albert_tf_lite.errors import AlbertError


def read(path, columns, known=None):
    from albert_tf.data import read_choices

    data = read_choices(path)
    if data.labels is None:
        raise AlbertError(f"{path} does not say which choices are right.")
    return Examples(data.x, data.labels, count=len(data), unit="questions")


def report(model, examples, batch_size):
    import numpy as np

    logits = model.predict(examples.x, batch_size=batch_size, verbose=0)
    accuracy = float(np.mean(logits.argmax(-1) == examples.y))
    chance = float(np.mean([1 / len(choices) for choices in examples.x[2]]))
    values = {"accuracy": accuracy, "chance": chance, "total": examples.count}
    shown = f"accuracy {accuracy:.4f} of {examples.count:,} questions; by chance "
    return Report(values, [f"{shown}{chance:.4f}"])


def inputs(model, lines):
    rows = [line.split("\t") for line in lines]
    for line, row in zip(lines, rows, strict=True):
        if len(row) < 4:
            raise AlbertError(
                "This model takes a context, a question and two choices at least, with "
                f"tabs between them. Found: {line!r}"
            )
    contexts, questions, *_ = map(list, zip(*rows, strict=False))
    return contexts, questions, [row[2:] for row in rows]


def cells(answer):
    return [answer["label"], f"{answer['score']:.4f}"]


ROW = Row(
    name="multiple-choice",
    maximise="accuracy",
    read=read,
    report=report,
    cells=cells,
    inputs=inputs,
)
