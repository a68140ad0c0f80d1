"""Pairs of texts with a number each, how alike they are, to learn vectors from."""

from albert_tf_cli.task_table.row import Examples, Report, Row, pairs_of
from albert_tf_lite.errors import AlbertError


def read(path, columns, known=None):
    from albert_tf.data import read_labelled_texts

    data = read_labelled_texts(path, *columns, pairs=True)
    try:
        y = data.scores()
    except ValueError as error:
        raise AlbertError(f"{path}: {error}") from error
    return Examples(data.x, y, count=len(y), unit="pairs")


def scores(model, examples, batch_size):
    from albert_tf.evaluation import regression_scores
    from albert_tf_lite.answers import cosines_of

    vectors = (model.encode_text(part, batch_size) for part in examples.x)
    found = regression_scores(examples.y, cosines_of(*vectors))
    # A cosine has another range than the scores.
    return {name: found[name] for name in ("pearson", "spearman")}


def report(model, examples, batch_size):
    values = scores(model, examples, batch_size)
    return Report(values, [f"{name} {value:.4f}" for name, value in values.items()])


def inputs(model, lines):
    expected = "Give pairs of texts with a tab between them, which are compared."
    return pairs_of(lines, expected)


def cells(answer):
    return [f"{answer['score']:.4f}"]


ROW = Row(
    name="text-embedding",
    read=read,
    report=report,
    cells=cells,
    scores=scores,
    inputs=inputs,
)
