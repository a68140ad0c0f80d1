"""The command line, a module a group of commands."""

import importlib.util
import sys

for _name in ("typer", "rich"):
    if importlib.util.find_spec(_name) is None:
        sys.exit(
            f"The command line needs {_name}. Run: pip install 'albert-tf[cli]'",
        )

from albert_tf_cli import (  # noqa: E402
    checkpoints,
    export,
    finetune,
    pretraining,
    prune,
    tasks,
)
from albert_tf_cli.common import app, main  # noqa: E402

__all__ = [
    "app",
    "checkpoints",
    "export",
    "finetune",
    "main",
    "pretraining",
    "prune",
    "tasks",
]
