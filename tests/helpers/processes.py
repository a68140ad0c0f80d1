"""Python code in another process."""

import os
import pathlib
import subprocess
import sys

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


def run_python(code, *arguments, input=None, cwd=None, **environment):
    """Run code, or a script by its path; assert its success and return its output."""
    done = subprocess.run(
        [sys.executable, *["-c"] * isinstance(code, str), code, *map(str, arguments)],
        input=input,
        capture_output=True,
        text=not isinstance(input, bytes),
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": PATH, **environment},
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout
