"""The tasks of the command line."""

from albert_tf_cli.tasks import readers
from albert_tf_cli.tasks.task import READERS, Columns, Examples, Task, split

__all__ = ["READERS", "Columns", "Examples", "Task", "readers", "split", "task_named"]


def task_named(name: str) -> Task:
    """Return the task of a name; a plain `Task` if it only predicts."""
    return READERS.get(name) or Task(name)
