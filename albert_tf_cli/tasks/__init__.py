"""The tasks that read files, one module per task or pair of similar tasks."""

from typing import Any

from albert_tf_cli.tasks.classification import MultiLabel, TextClassification
from albert_tf_cli.tasks.multiple_choice import MultipleChoice
from albert_tf_cli.tasks.question_answering import QuestionAnswering
from albert_tf_cli.tasks.regression import Regression, TextEmbedding
from albert_tf_cli.tasks.spelling_correction import SpellingCorrection
from albert_tf_cli.tasks.summarization import Summarization
from albert_tf_cli.tasks.task import Columns, Examples, Report, Task, split
from albert_tf_cli.tasks.token_classification import TokenClassification

__all__ = [
    "TASKS",
    "Columns",
    "Examples",
    "Report",
    "Task",
    "load_task",
    "split",
    "task_named",
]

_TASKS = (
    *(TextClassification(), MultiLabel(), Regression(), TokenClassification()),
    *(QuestionAnswering(), MultipleChoice(), TextEmbedding(), SpellingCorrection()),
    Summarization(),
)
TASKS: dict[str, Task] = {task.name: task for task in _TASKS}


def task_named(name: str) -> Task:
    """Return the task of a name; a plain `Task` if it only predicts."""
    return TASKS.get(name) or Task(name)


def load_task(path: str, name: str | None = None) -> tuple[Task, Any]:
    """Load a model and its task from a checkpoint of any form.

    Args:
        path: as for `albert_tf.pipeline`.
        name: optional string, the task. By default that of the checkpoint.
    """
    from albert_tf import pipeline

    found = pipeline(name, path)
    return task_named(found.task), found.answerer
