"""The command line, a module a group of commands."""

from albert_tf.cli import checkpoints, classifier, pretraining
from albert_tf.cli.common import app, main

__all__ = ["app", "checkpoints", "classifier", "main", "pretraining"]
