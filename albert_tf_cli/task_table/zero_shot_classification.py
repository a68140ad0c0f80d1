"""Classes given in words, by a classifier of inference. Only to predict."""

from albert_tf_cli.task_table.row import Row


def inputs(model, lines):
    return lines


def cells(answer):
    return [answer["labels"][0], f"{answer['scores'][0]:.4f}"]


ROW = Row(name="zero-shot-classification", cells=cells, inputs=inputs)
