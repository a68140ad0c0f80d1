"""The command line, run in the process of the tests."""

import contextlib
import io
import json
import pathlib
import re
import runpy
import sys
from unittest import mock

import pytest
from small_classifier import VOCABULARY
from typer.testing import CliRunner

import albert_tf
import albert_tf_cli

# A size to train from random weights, as a config file has it.
CONFIG = {
    "vocab_size": len(VOCABULARY),
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "embedding_size": 8,
    "hidden_size": 12,
    "intermediate_size": 20,
    "hidden_act": "gelu",
    "max_position_embeddings": 32,
    "type_vocab_size": 2,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}


def as_options(**values):
    """Return options of a command: `batch_size=8` is `--batch-size 8`."""
    command = []
    for name, value in values.items():
        command += [f"--{name.replace('_', '-')}", value]
    return command


def run(*arguments, code=0, input=None):
    """Run a command and return its result; raise its error unless it has a `code`."""
    command = [str(part) for part in arguments]
    result = CliRunner().invoke(albert_tf_cli.app, command, input)
    if result.exit_code and not code:
        raise result.exception
    return result


def refused(*arguments, input=b""):
    """Return the one line with which a command ends that a user got wrong."""
    stdin = io.TextIOWrapper(io.BytesIO(input), encoding="utf-8")
    command = {"argv": ["albert-tf", *map(str, arguments)], "stdin": stdin}
    errors = io.StringIO()
    with (
        mock.patch.multiple(sys, **command),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(errors),
        pytest.raises(SystemExit) as exit,
    ):
        runpy.run_module("albert_tf_cli", run_name="__main__")
    assert exit.value.code == 1, errors.getvalue()
    # A slow machine prints progress, too, such as "predict: running for 0 min 30 s".
    lines = errors.getvalue().splitlines()
    (line,) = (x for x in lines if not re.match(r"[a-z-]+: ", x))
    assert line.startswith("Error: ")
    return line


def open_once(folder):
    """Open each model of a folder once, instead of once per command."""
    opened, open_model = {}, albert_tf.pipeline

    def pipeline(task=None, path=None, **settings):
        # A path of the command line rather than a model, in this folder.
        if not isinstance(path, str) or folder not in pathlib.Path(path).parents:
            return open_model(task, path, **settings)
        key = task, path, repr(settings)
        if key not in opened:
            opened[key] = open_model(task, path, **settings)
        return opened[key]

    return mock.patch.object(albert_tf, "pipeline", pipeline)


def write_start(folder):
    """Write a size and a vocabulary, and return the options to train from them."""
    config, vocabulary = folder / "size.json", folder / "vocab.txt"
    config.write_text(json.dumps(CONFIG), "utf-8")
    vocabulary.write_text("\n".join(VOCABULARY) + "\n", "utf-8")
    return ("--config", config, "--vocab", vocabulary)
