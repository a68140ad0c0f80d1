"""The code blocks of README and docs: which of them run, and how.

    python pages.py PAGE

runs the blocks of a page in this Python and in the current folder, and fails if an
output differs. It needs the standard library only, so that an environment with nothing
but the wheels can run it; `test_shipped.py` starts it so. There, blocks that install
and serve run, too.
"""

import contextlib
import decimal
import importlib.util
import io
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("README*.md"), *(ROOT / "docs").rglob("*.md")])
# Names of releases in the pages. A folder of the name comes before the release.
RELEASES = ("albert_tiny_zh", "albert_base_zh", "albert_base_zh_google")
# What runs in `test_shipped.py` only.
INSTALLS = r"pip install|^python3 -m venv|^git clone"
SERVES = r"service/service\.py"
# Blocks that other tests run, or that need a network, a server or hours. Each is a
# pattern and the reason.
NOT_RUN = {
    r"^make ": "is a target of the Makefile",
    r"docker |tensorflow/serving": "starts a container",
    r"albert-tf demo ": "serves a page until Ctrl-C; tests/cli/test_demo.py",
    r"serving_client\.py": "needs a server; tests/examples/test_serving_client.py",
    r"RAY_ADDRESS|--coordinator": "needs a cluster; nightly tests",
    r"albert-tf download [a-z]|hf://|HF_ENDPOINT": "downloads; test_download.py",
    r"^gunicorn ": "serves until Ctrl-C",
    r"^hf upload ": "uploads to an account",
    r"corpus/\*\.txt|--steps 10000": "pretrains for hours",
    r"ALBERT_TF_RELEASED": "needs released weights",
    r"^python -m benchmarks\.": "measures for minutes",
    r"albert_star_rating|StarRating|star-rating": "tests/test_new_task.py",
    r"^from optimum": "optimum is not installed for the tests",
    r"^from cleanlab": "cleanlab is not installed for the tests",
    r"^import faiss": "faiss is not installed for the tests",
    r"KERAS_BACKEND": "needs JAX; tests/test_docs.py, where it is installed",
}
if importlib.util.find_spec("optuna") is None:
    NOT_RUN[r"^import optuna"] = "Optuna is not installed"
IN_A_CHECKOUT = {
    INSTALLS: "installs; tests/test_shipped.py",
    rf"{SERVES}|^curl ": "serves; tests/examples/test_service.py",
    r"^pip download": "needs a network",
}
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?")
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def name_of(page):
    return page.relative_to(ROOT).as_posix().removeprefix("docs/")


def blocks_of(page, not_run=(*NOT_RUN, *IN_A_CHECKOUT)):
    """Return `[language, code, expected output or None]` of each block that runs."""
    blocks = []
    for language, code in FENCE.findall(page.read_text("utf-8")):
        if language in ("python", "sh"):
            reasons = [x for x in not_run if re.search(x, code, re.MULTILINE)]
            blocks.append([language, code, None] if not reasons else None)
        elif (language == "text" or code.startswith('{"answers"')) and any(blocks[-1:]):
            blocks[-1][2] = code
    return [x for x in blocks if x]


def run(language, code, namespace):
    """Run a block and return what it prints to standard output."""
    if language == "sh":
        command = ["bash", "-euo", "pipefail", "-c", code]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, f"{code}\n{done.stdout}\n{done.stderr}"
        return done.stdout
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(code, "block", "exec"), namespace)
    return output.getvalue()


def words(text):
    """Return the lines of an output without numbers and spaces."""
    lines = [re.sub(r"\s+", "", NUMBER.sub("#", x)) for x in text.splitlines()]
    return [x for x in lines if x]


def is_close(found, printed):
    """Compare integers exactly, floats within one unit of the last printed digit."""
    if re.fullmatch(r"[\d,]+", printed):
        return found == printed
    *_, exponent = decimal.Decimal(printed).as_tuple()
    return abs(float(found) - float(printed)) < 1.01 * 10**exponent


def check_output(output, expected, code):
    """Raise unless an output is the one that the page shows."""
    assert words(output) == words(expected), f"{code}\n{output}"
    numbers = zip(NUMBER.findall(output), NUMBER.findall(expected), strict=True)
    differ = [x for x in numbers if not is_close(*x)]
    assert differ == [], f"{code}\n{differ}"


@contextlib.contextmanager
def serving(code, environment=None):
    """Run a block that serves until it is interrupted."""
    command = ["bash", "-euo", "pipefail", "-c", code]
    with subprocess.Popen(command, env=environment, start_new_session=True) as process:
        try:
            # Port 8000 is the default of services on the pages.
            for _ in range(600):
                with contextlib.suppress(OSError), socket.socket() as connection:
                    connection.connect(("127.0.0.1", 8000))
                    break
                assert process.poll() is None, code
                time.sleep(0.1)
            yield
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)


def main():
    page = pathlib.Path(sys.argv[1])
    namespace = {"__name__": "__main__"}
    with contextlib.ExitStack() as servers:
        for language, code, expected in blocks_of(page, NOT_RUN):
            # `test_shipped.py` has a test of what pages install.
            is_source = language == "sh" and re.search(INSTALLS, code, re.MULTILINE)
            if is_source and not re.search(SERVES, code):
                continue
            print(code, flush=True)
            if re.search(SERVES, code):
                before, _, served = code.rstrip().rpartition("\n")
                run("sh", before, namespace)
                servers.enter_context(serving(served))
                continue
            output = run(language, code, namespace)
            print(output, flush=True)
            if expected is not None:
                check_output(output, expected, code)


if __name__ == "__main__":
    main()
