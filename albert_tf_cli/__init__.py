"""The command line, a module a group of commands."""

from albert_tf_cli import checkpoints, finetune, pretraining, tasks
from albert_tf_cli.common import app, main

__all__ = ["app", "checkpoints", "finetune", "main", "pretraining", "tasks"]
