"""The benchmark of pretraining: what it says when it cannot run."""

import pathlib
import subprocess
import sys

import pytest

SCRIPT = pathlib.Path(__file__).parents[2] / "benchmarks" / "pretraining_gain.py"


def errors_of(*options):
    command = [sys.executable, SCRIPT, "--task", "reviews", "nowhere", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode and "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--random", "albert_micro_zh"], "--random needs --vocab, or a --from"),
        ([], "give --from or --random"),
        # What the run that failed has said.
        pytest.param(
            ["--from", "mine", "missing"],
            "No such file or directory",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_what_is_missing_is_said(options, message):
    assert message in errors_of(*options)
