"""Pairs of texts, in order or swapped. Only to predict."""

from albert_tf_cli.task_table.row import Row, pairs_of


def inputs(model, lines):
    return pairs_of(lines, "Give two texts in a row with a tab between them.")


def cells(answer):
    return [answer["label"], f"{answer['score']:.4f}"]


ROW = Row(name="sentence-order", cells=cells, inputs=inputs)
