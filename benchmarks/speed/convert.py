"""Measure the time and memory of converting the largest ALBERT.

Writes a checkpoint with the shape of albert_xxlarge, random weights and both
pretraining heads. Then it runs, in turn and each in a separate process, a baseline that
reads all tensors by `tf.train.load_checkpoint` and writes them by NumPy, and
`convert_checkpoint` to every layout. Writes `results/convert.json`: the seconds, their
ratio to the baseline, and the peak memory above that of the imported libraries, as a
multiple of the checkpoint's size.

Run: make benchmark-convert
Smaller: python -m benchmarks.speed.convert --size albert_base_en
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

LAYOUTS = ("google", "huggingface", "kerashub", "keras")

# Takes the checkpoint, the layout and the output as arguments. The libraries are
# imported and initialized before the measurement starts.
MEASURED = """
import json, pathlib, resource, sys, time
import numpy as np
import tensorflow as tf

checkpoint, layout, output = sys.argv[1:]
if layout == "numpy":
    def run():
        reader = tf.train.load_checkpoint(checkpoint)
        names = reader.get_variable_to_shape_map()
        np.savez(output + ".npz", **{name: reader.get_tensor(name) for name in names})
else:
    from albert_tf import convert_checkpoint
    def run():
        convert_checkpoint(checkpoint, output, layout)

tf.ones(1) + tf.ones(1)
pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
before = pages * resource.getpagesize()
start = time.perf_counter()
run()
seconds = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps({"seconds": seconds, "memory": max(peak - before, 0)}))
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", default="albert_xxlarge_en")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        prefix = write_checkpoint(arguments.size, folder / "source")
        size = pathlib.Path(f"{prefix}.data-00000-of-00001").stat().st_size
        print(f"{arguments.size}, {size / 1e6:.0f} MB, {arguments.rounds} rounds")
        measured = {name: [] for name in ("numpy", *LAYOUTS)}
        for turn in range(arguments.rounds):
            for name in measured:
                output = folder / f"{name}_{turn}"
                measured[name].append(measure(prefix, name, output))
                subprocess.run(["rm", "-rf", str(output), f"{output}.npz"], check=True)

    # Imported last, so that the processes measured have the memory to themselves.
    from benchmarks.lib.harness import console, table_of, write_results

    rows = rows_of(measured, size)
    console.print(table_of(rows, list(rows["numpy"])))
    settings = {"megabytes": size / 1e6, "settings": vars(arguments)}
    write_results("convert", {**settings, "rows": rows})


def write_checkpoint(size, folder):
    """Write random weights in Google's layout and return the prefix."""
    code = (
        "import sys, albert_tf; from albert_tf import models as m; "
        "albert_tf.save_checkpoint(m.AlbertPretrainer(m.AlbertBackbone("
        "**m.SIZES[sys.argv[1]])), sys.argv[2], layout='google')"
    )
    subprocess.run([sys.executable, "-c", code, size, str(folder)], check=True)
    return folder / "albert_model.ckpt"


def measure(prefix, layout, output):
    command = [sys.executable, "-c", MEASURED, str(prefix), layout, str(output)]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environment)
    return json.loads(done.stdout.splitlines()[-1])


def rows_of(found, size):
    """Summarize the runs of each layout relative to those of NumPy."""
    rows = {}
    base = [run["seconds"] for run in found["numpy"]]
    for name, runs in found.items():
        seconds = [run["seconds"] for run in runs]
        ratios = [s / b for s, b in zip(seconds, base, strict=True)]
        rows[name] = {
            "seconds": statistics.median(seconds),
            "ratio": statistics.median(ratios),
            "smallest": min(ratios),
            "largest": max(ratios),
            "memory / file": max(run["memory"] for run in runs) / size,
        }
    return rows


if __name__ == "__main__":
    main()
