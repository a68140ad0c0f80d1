"""The tasks that read files, in modules of similar tasks."""

from albert_tf_cli.tasks.passages import (
    MultipleChoice,
    QuestionAnswering,
    TokenClassification,
)
from albert_tf_cli.tasks.task import Columns, Examples, Task, split
from albert_tf_cli.tasks.texts import (
    MultiLabel,
    Regression,
    SpellingCorrection,
    Summarization,
    TextClassification,
    TextEmbedding,
)

__all__ = ["TASKS", "Columns", "Examples", "Task", "split", "task_named"]

_TASKS = (
    *(TextClassification(), MultiLabel(), Regression(), TokenClassification()),
    *(QuestionAnswering(), MultipleChoice(), TextEmbedding(), SpellingCorrection()),
    Summarization(),
)
TASKS: dict[str, Task] = {task.name: task for task in _TASKS}


def task_named(name: str) -> Task:
    """Return the task of a name; a plain `Task` if it only predicts."""
    return TASKS.get(name) or Task(name)
