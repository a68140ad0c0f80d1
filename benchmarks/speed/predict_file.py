"""Measure the speed and peak memory of `albert-tf predict` on files of two sizes.

The rows of a labelled .tsv file are repeated. Each run is a separate process. The peak
is that of the main process, and of the largest worker.

Run: python -m benchmarks.speed.predict_file my_model examples/reviews/train.tsv
"""

import argparse
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from albert_tf_lite.lines import split_lines

CODE = """
import json, resource, sys
import albert_tf_cli

def memory(who):
    return resource.getrusage(who).ru_maxrss / 1000

if __name__ == "__main__":
    try:
        albert_tf_cli.main()
    except SystemExit as error:
        assert not error.code
    peaks = map(memory, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print("\\n" + json.dumps(list(peaks)))
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="a model directory or an exported file")
    parser.add_argument("texts", help="a .tsv file with a header")
    parser.add_argument("--counts", type=int, nargs="+", default=[20_000, 200_000])
    parser.add_argument("--ending", default="csv", help="format of the answers")
    arguments = parser.parse_args()
    lines = split_lines(pathlib.Path(arguments.texts).read_text("utf-8"))
    header, *rows = (f"{line}\n" for line in lines)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        script = folder / "predict.py"
        script.write_text(CODE, "utf-8")
        for count in arguments.counts:
            texts = folder / f"{count}.tsv"
            with texts.open("w", encoding="utf-8") as file:
                file.write(header)
                file.writelines(itertools.islice(itertools.cycle(rows), count))
            output = folder / f"{count}.{arguments.ending}"
            command = [sys.executable, script, "predict", arguments.model, texts]
            seconds, own, worker = run_measured([*command, "--output", output])
            print(
                f"{count:,} texts: {count / seconds:,.0f} texts per s, "
                f"main process {own:.0f} MB, largest worker {worker:.0f} MB"
            )


def run_measured(command):
    """Return the seconds of a command, its MB and those of its largest worker."""
    path = os.pathsep.join([os.getcwd(), os.environ.get("PYTHONPATH", "")])
    start = time.perf_counter()
    printed = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": path},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    seconds = time.perf_counter() - start
    own, worker = json.loads(printed.splitlines()[-1])
    return seconds, own, worker


if __name__ == "__main__":
    main()
