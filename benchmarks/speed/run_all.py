"""Run the benchmarks of speed that pages show, and write the pages: `make benchmark`.

    python -m benchmarks.speed.run_all [--assets ../shared] [--quick]

Each script writes `results/NAME.json` and overwrites the previous one. For figures to
publish, run nothing else at the same time and name the machine, which each file
records. `make figures` writes the pages from existing files.
"""

import argparse
import os
import subprocess
import sys

from benchmarks.lib.paths import ROOT

# Script, its arguments, and those that `--quick` adds. A quarter of an hour.
RUNS = (
    ("tokenizers_rate", "", "--rounds 2"),
    ("start", "", "--rounds 1"),
    ("latency", "--size albert_tiny_zh", "--calls 5 --rounds 1"),
    ("latency", "--size albert_base_zh", "--calls 5 --rounds 1"),
    (
        "classify",
        "--size albert_tiny_zh --data lcqmc --examples 96 --rounds 2",
        "--examples 16 --rounds 1",
    ),
    (
        "classify",
        "--size albert_tiny_zh --data chnsenticorp --examples 24 --rounds 2",
        "--examples 16 --rounds 1",
    ),
    (
        "classify",
        "--size albert_tiny_zh --data long --examples 8 --rounds 2",
        "--examples 16 --rounds 1",
    ),
    (
        "classify",
        "--size albert_base_zh --data lcqmc --examples 8 --rounds 2",
        "--examples 16 --rounds 1",
    ),
    ("pretraining_step", "--size albert_micro_zh", "--steps 1 --rounds 1"),
    ("pretraining_step", "--size albert_tiny_zh", "--steps 1 --rounds 1"),
)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = os.environ.get("ALBERT_TF_ASSETS", "../shared")
    parser.add_argument("--assets", default=default, help="folder with the data")
    parser.add_argument("--quick", action="store_true", help="few texts and rounds")
    arguments = parser.parse_args()
    environment = {**os.environ, "ALBERT_TF_ASSETS": arguments.assets}
    failed = []
    for script, usual, quick in RUNS:
        command = [sys.executable, "-m", f"benchmarks.speed.{script}", *usual.split()]
        if arguments.quick:
            command += quick.split()
        print(*command[1:], flush=True)
        # A separate process per script, so that none inherits memory from another.
        if subprocess.run(command, env=environment).returncode:
            failed.append(script)
    subprocess.run([sys.executable, ROOT / "scripts" / "figures.py"], check=True)
    if failed:
        sys.exit(f"Failed benchmarks: {', '.join(failed)}")


if __name__ == "__main__":
    main()
