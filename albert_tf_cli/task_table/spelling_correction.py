"""Texts with wrong characters, and the right ones."""

from albert_tf_cli.task_table.row import Examples, Report, Row


def read(path, columns, known=None):
    from albert_tf.data import read_spelling

    sources, targets = read_spelling(path)
    return Examples(sources, targets, count=len(sources))


def scores(model, examples, batch_size):
    from albert_tf.evaluation import spelling_scores

    predicted = [found["target"] for found in model.correct(examples.x, batch_size)]
    return spelling_scores(examples.x, examples.y, predicted)


def report(model, examples, batch_size):
    values = scores(model, examples, batch_size)
    return Report(values, [f"{name} {value:.4f}" for name, value in values.items()])


def cells(answer):
    errors = (f"{wrong}→{right}@{place}" for wrong, right, place in answer["errors"])
    return [answer["target"], " ".join(errors)]


def inputs(model, lines):
    return lines


ROW = Row(
    name="spelling-correction",
    read=read,
    report=report,
    cells=cells,
    scores=scores,
    inputs=inputs,
)
