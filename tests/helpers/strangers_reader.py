"""Read files of `strangers_files`, here or in a process that may crash.

As a script, it reads one folder per line of its input, and prints what is wrong.
"""

import json
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
import traceback
import warnings

import tensorflow as tf
from memory import release_models, resident_bytes
from mutations import mutate
from processes import start_python
from strangers_files import CASES

from albert_tf_lite.errors import AlbertError

# For one file: seconds of the processor, and bytes. Valid ones take a tenth.
MOST_SECONDS, MOST_BYTES = 10, 1_500_000_000
# Seconds after which a process that reads is ended, on a machine that does more.
MOST_WAITED = 120
MOST_CHARACTERS = 1500
OURS = ("albert_tf", "albert_tf_cli", "albert_tf_lite", "zh")


def write_changed(name, rng, folder):
    """Write the files of a case, one of them changed, into a new folder."""
    case = CASES[name]
    files = dict(case.files)
    changed = rng.choice(case.names())
    kind = case.kind or pathlib.PurePosixPath(changed).suffix
    files[changed] = mutate(files[changed], rng, kind)
    shutil.rmtree(folder, ignore_errors=True)
    for file, content in files.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes(content)


def find_problem(name, folder):
    """Read the files of a case; return what is wrong with that, "" if nothing is."""
    before, start = _peak_bytes(), time.process_time()
    problem = ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            CASES[name].read(folder)
        except Exception as error:
            problem = _problem_of(error, folder)
    seconds, size = time.process_time() - start, _peak_bytes() - before
    if seconds > MOST_SECONDS:
        problem += f" It took {seconds:.0f} seconds."
    if size > MOST_BYTES:
        problem += f" It took {size / 1e9:.1f} GB."
    outside = [x.name for x in folder.parent.iterdir() if x != folder]
    if outside:
        problem += f" It wrote {outside} beside the folder."
    return problem


def _problem_of(error, folder):
    """Return what is wrong with an error: it must be ours, and one line with a path."""
    text = str(error)
    if not isinstance(error, AlbertError) and not _is_raised_by_us(error):
        return "".join(traceback.format_exception(error)[-12:])
    if "\n" in text or len(text) > MOST_CHARACTERS:
        return f"The message is not one line of {MOST_CHARACTERS} characters: {text}"
    names = (str(folder), *(x.name for x in folder.rglob("*")), folder.name)
    return "" if any(name in text for name in names) else f"It names no file: {text}"


def _is_raised_by_us(error):
    """Return whether a statement of this package raised an error of Python."""
    *_, last = traceback.extract_tb(error.__traceback__)
    is_ours = any(f"{os.sep}{name}{os.sep}" in last.filename for name in OURS)
    is_kind = isinstance(error, (OSError, TypeError))
    return is_kind and is_ours and "raise" in (last.line or "")


def _peak_bytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1000


def check_seed(name, seed, folder):
    """Raise if the change of a seed is not read or refused as it should be."""
    write_changed(name, random.Random(seed), folder)
    if problem := find_problem(name, folder):
        raise AssertionError(f"{name}, seed {seed}: {problem}")


class Reader:
    """A process that reads; another one takes its place when it ends."""

    def __init__(self):
        self._process = None

    def find_problem(self, name, folder):
        """Return what is wrong with reading a folder, as the function."""
        if self._process is None:
            self._process = start_python(pathlib.Path(__file__), stdin=subprocess.PIPE)
        try:
            self._process.stdin.write(json.dumps([name, str(folder)]) + "\n")
            self._process.stdin.flush()
            return json.loads(self._process.stdout.readline())
        except (OSError, ValueError):
            self._process.kill()
            code, self._process = self._process.wait(), None
            return f"The process ended with {code}."

    def close(self):
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def _serve():
    """Answer folders until the input ends; files that take too long end the process."""
    tf.config.run_functions_eagerly(True)
    # What native code prints.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    # A size in a file must not reserve more.
    pages = int(pathlib.Path("/proc/self/statm").read_text("utf-8").split()[0])
    limit = pages * resource.getpagesize() + 4 * MOST_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    for line in sys.stdin:
        name, folder = json.loads(line)
        signal.alarm(MOST_WAITED)
        problem = find_problem(name, pathlib.Path(folder))
        signal.alarm(0)
        print(json.dumps(problem), file=answers, flush=True)
        if resident_bytes() > 2 * MOST_BYTES:
            release_models()


if __name__ == "__main__":
    _serve()
