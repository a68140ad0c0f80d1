"""The Pythons of this machine, and commands in their environments."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest


def present(*versions):
    """Return parameters of a test: the path of each Python that is present."""
    return [pytest.param(x, id=y) for y in versions if (x := find(y))]


def find(version):
    """Return the path of a Python by its version, or `None`."""
    major, minor, *_ = sys.version_info
    if version == f"{major}.{minor}":
        return sys.executable
    # pyenv shows a version without a program of its name if another one is chosen.
    root = pathlib.Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser()
    found = [str(x) for x in sorted(root.glob(f"versions/{version}.*/bin/python"))]
    for python in (*found, shutil.which(f"python{version}")):
        if python and subprocess.run([python, "-c", ""], check=False).returncode == 0:
            return python
    return None


def run_in(environment, *command, cwd=None):
    """Run a command with the variables of an environment; return its output."""
    done = subprocess.run(
        # The program of that PATH.
        [shutil.which(command[0], path=environment["PATH"]), *map(str, command[1:])],
        env=environment,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert done.returncode == 0, (
        f"{command}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    )
    return done.stdout
