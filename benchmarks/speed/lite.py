"""Measure an environment with albert-tf-lite alone: its size and its first answer.

    python -m benchmarks.speed.lite FILE [--rounds 5]

FILE is an exported ONNX file. The environment is new, without pip: the wheel of
`albert_tf_lite/`, NumPy and onnxruntime. Each round is a new process that imports the
package, opens the file and answers one string. `megabytes` is its peak memory.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import venv

from benchmarks.lib.paths import ROOT
from benchmarks.lib.processes import run

ANSWER = "import albert_tf_lite, sys; albert_tf_lite.pipeline(sys.argv[1])('很好')"


def size(folder):
    """Return the megabytes of the files below a folder."""
    files = (x for x in folder.rglob("*") if x.is_file() and not x.is_symlink())
    return sum(x.stat().st_size for x in files) / 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        environment = pathlib.Path(folder, "environment")
        venv.create(environment, symlinks=True)
        python = environment / "bin" / "python"
        install = (sys.executable, "-m", "pip", "--python", python, "install", "-q")
        subprocess.run([*install, f"{ROOT / 'albert_tf_lite'}[onnx]"], check=True)
        file = os.path.abspath(arguments.file)
        # The first process compiles the package, and reads it from the disk.
        run(python, "-c", ANSWER, file, cwd="/")
        rounds = [
            run(python, "-c", ANSWER, file, cwd="/") for _ in range(arguments.rounds)
        ]
        values = {
            "environment, MB": size(environment),
            "first answer, seconds": statistics.median(x.seconds for x in rounds),
            "memory, MB": statistics.median(x.megabytes for x in rounds),
        }

    # Imported last, because it imports TensorFlow.
    from benchmarks.lib.harness import console, write_results

    console.print({name: round(x, 3) for name, x in values.items()})
    write_results("lite", values)


if __name__ == "__main__":
    main()
