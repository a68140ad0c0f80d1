"""Texts or pairs of texts, each with a number, such as how alike the two are."""

from albert_tf_cli.task_table.row import Examples, Report, Row
from albert_tf_lite.errors import AlbertError


def read(path, columns, known=None):
    from albert_tf.data import read_labelled_texts

    pairs = None if known is None else known["pairs"]
    data = read_labelled_texts(path, *columns, pairs=pairs)
    try:
        y = data.scores()
    except ValueError as error:
        raise AlbertError(f"{path}: {error}") from error
    return Examples(
        data.x,
        y,
        count=len(y),
        arguments={"pairs": data.pairs},
        unit="pairs" if data.pairs else "texts",
    )


def scores(model, examples, batch_size):
    from albert_tf.evaluation import regression_scores

    predicted = model.predict(examples.x, batch_size=batch_size, verbose=0)
    return regression_scores(examples.y, predicted)


def report(model, examples, batch_size):
    values = scores(model, examples, batch_size)
    return Report(values, [f"{name} {value:.4f}" for name, value in values.items()])


def cells(answer):
    return [f"{answer['score']:.4f}"]


ROW = Row(
    name="regression",
    maximise="spearman",
    read=read,
    report=report,
    cells=cells,
    scores=scores,
)
