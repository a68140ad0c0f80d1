"""The tasks of the command line."""

# In the order of `--help`.
# ruff: noqa: I001
from albert_tf_cli.tasks import classification  # noqa: F401
from albert_tf_cli.tasks import span_tasks  # noqa: F401
from albert_tf_cli.tasks import multiple_choice  # noqa: F401
from albert_tf_cli.tasks import similarity  # noqa: F401
from albert_tf_cli.tasks import generation  # noqa: F401
from albert_tf_cli.tasks import pretrained  # noqa: F401
from albert_tf_cli.tasks.task import TASKS, Examples, Task, split

__all__ = ["TASKS", "Examples", "Task", "split", "task_named"]


def task_named(name: str) -> Task:
    """Return the task of a name; a plain `Task` if it has no class here."""
    return TASKS.get(name) or Task(name)
