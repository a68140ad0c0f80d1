"""The tasks of the command line."""

from albert_tf_cli.tasks import readers
from albert_tf_cli.tasks.task import Columns, Examples, Task, split

__all__ = ["TASKS", "Columns", "Examples", "Task", "split", "task_named"]

_TASKS = (
    *(readers.TextClassification(), readers.MultiLabel(), readers.Regression()),
    *(readers.TokenClassification(), readers.QuestionAnswering()),
    *(readers.MultipleChoice(), readers.TextEmbedding()),
    *(readers.SpellingCorrection(), readers.Summarization()),
)
TASKS: dict[str, Task] = {task.name: task for task in _TASKS}


def task_named(name: str) -> Task:
    """Return the task of a name; a plain `Task` if it only predicts."""
    return TASKS.get(name) or Task(name)
