"""The command line, a module a group of commands."""

from albert_tf_cli import checkpoints, pretraining, tasks
from albert_tf_cli.common import app, main

__all__ = ["app", "checkpoints", "main", "pretraining", "tasks"]
