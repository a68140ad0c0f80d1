"""What the command line says of itself and of mistakes."""

import pytest

import albert_tf_cli
from albert_tf_cli.common import OPTIONS, in_options


def test_arguments_are_named_as_options():
    message = "Put it there or give it with `vocabulary=`, not `dtype=`."
    assert in_options(message) == "Put it there or give it with --vocab, not `dtype=`."


@pytest.mark.parametrize("option", OPTIONS.values())
def test_every_option_of_the_table_is_one(option):
    import typer

    commands = typer.main.get_command(albert_tf_cli.app).commands.values()
    assert any(option in x.opts for y in commands for x in y.params)
