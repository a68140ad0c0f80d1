"""Run a command and measure its time and memory."""

import os
import shlex
import subprocess
import sys
import time
from typing import NamedTuple

from benchmarks.lib.paths import ROOT


class Finished(NamedTuple):
    """Output, seconds and peak memory of a process."""

    output: str
    seconds: float
    megabytes: float


def run(*command, cwd=ROOT):
    """Run a command in a folder and return it as `Finished`; exit if it fails.

    Its messages on standard error are not shown.
    """
    start = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=cwd
    )
    output = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"Failed: {shlex.join(map(str, command))}")
    seconds = time.perf_counter() - start
    # In kilobytes on Linux.
    return Finished(output, seconds, used.ru_maxrss / 1e3)
