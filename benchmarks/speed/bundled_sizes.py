"""Write the sizes of the files that a bundled checkpoint is exported to.

    python -m benchmarks.speed.bundled_sizes [--model albert_micro_zh:sentiment]

The results are in `results/bundled_sizes.json`, in megabytes.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

from benchmarks.lib.harness import console, table_of, write_results

# Output, and options of `albert-tf export`.
EXPORTS = {
    "model.onnx": (),
    "int8.onnx": ("--precision", "int8"),
    "int8.tflite": ("--precision", "int8"),
    "web": ("--format", "transformers.js"),
}


def sizes_of(path):
    """Return the megabytes of a file, or of each file in a directory."""
    files = [x for x in path.rglob("*") if x.is_file()] if path.is_dir() else [path]
    return {
        x.relative_to(path.parent).as_posix(): {"megabytes": x.stat().st_size / 1e6}
        for x in sorted(files)
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="albert_micro_zh:sentiment")
    model, rows = parser.parse_args().model, {}
    with tempfile.TemporaryDirectory() as folder:
        for name, options in EXPORTS.items():
            path = pathlib.Path(folder, name)
            command = [sys.executable, "-m", "albert_tf_cli", "export", model, path]
            subprocess.run([*command, *options], check=True, stdout=subprocess.DEVNULL)
            rows.update(sizes_of(path))
    console.print(table_of(rows, ("megabytes",)))
    write_results("bundled_sizes", {"model": model, "rows": rows})


if __name__ == "__main__":
    main()
