"""The command line, run in the process of the tests."""

from typer.testing import CliRunner

import albert_tf_cli


def run(*arguments, code=0, input=None):
    """The result of a command; its error is raised unless a `code` is expected."""
    command = [str(part) for part in arguments]
    result = CliRunner().invoke(albert_tf_cli.app, command, input)
    if result.exit_code and not code:
        raise result.exception
    return result
