"""The tasks of the command line, a row each.

`finetune --task NAME`, `evaluate` and `predict` are driven by these rows alone. A row
is added in two steps:

1. A module here, named after the task, with a `Row` at its end. The functions of the
   row (`read`, `report`, `cells`, and where needed `scores`, `tune`, `inputs`,
   `summary`) stand above it and import TensorFlow, NumPy and `albert_tf` when they are
   called. See `Row` for what each is given and gives. The model of a task and what it
   answers are a row of the same name in `albert_tf.pipelines`.
2. Its name in `_ROWS` below.

Nothing outside of a row knows what labels, texts or scores of a task look like.
"""

from albert_tf_cli.task_table import (
    fill_mask,
    multi_label,
    multiple_choice,
    question_answering,
    regression,
    sentence_order,
    spelling_correction,
    summarization,
    text_classification,
    text_embedding,
    token_classification,
    zero_shot_classification,
)

_ROWS = (
    text_classification.ROW,
    multi_label.ROW,
    regression.ROW,
    token_classification.ROW,
    question_answering.ROW,
    multiple_choice.ROW,
    text_embedding.ROW,
    spelling_correction.ROW,
    summarization.ROW,
    fill_mask.ROW,
    sentence_order.ROW,
    zero_shot_classification.ROW,
)
TASKS = {row.name: row for row in _ROWS}


def task_of(class_name, config):
    """The row of a model of a class and config; `None` if it is of no task here."""
    from albert_tf import pipelines

    found = pipelines.task_of(class_name, config)
    return found and TASKS.get(found.name)
