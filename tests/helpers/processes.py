"""Python code in another process."""

import os
import pathlib
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
HELPERS = ROOT / "tests" / "helpers"
# What hides TensorFlow Text from a process.
WITHOUT_TEXT = str(HELPERS / "without_text")
# `make test-notext` hides it from all processes.
_HIDING = [WITHOUT_TEXT] if WITHOUT_TEXT in sys.path else []
PATH = os.pathsep.join([*_HIDING, str(ROOT), str(HELPERS)])

WITHOUT_TENSORFLOW = """
import importlib.util, sys

# Like modules that are not installed.
names = ("tensorflow", "tensorflow_text", "tf_keras")
sys.modules.update(dict.fromkeys(names))
find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda x, *_: None if x in names else find_spec(x, *_)
"""


def _command(code, arguments):
    """Return the command that runs code, or a script by its path."""
    source = ["-c", code] if isinstance(code, str) else [code]
    return [sys.executable, *map(str, (*source, *arguments))]


def run_python(code, *arguments, input=None, cwd=None, **environment):
    """Run code, or a script by its path; assert its success and return its output."""
    done = subprocess.run(
        _command(code, arguments),
        input=input,
        capture_output=True,
        text=not isinstance(input, bytes),
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": PATH, **environment},
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def start_python(code, *arguments, stdin=None, **environment):
    """Start code, or a script by its path, and return the process."""
    return subprocess.Popen(
        _command(code, arguments),
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": PATH, **environment},
    )


def kill_when(process, is_ready, number=signal.SIGKILL):
    """Send a process a signal once a function returns true; return its output."""
    deadline = time.monotonic() + 180
    while not is_ready():
        assert process.poll() is None, process.communicate()[1][-3000:]
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(number)
    return process.communicate(timeout=60)
