"""Measure how much each optimization adds to the speed of training.

    python benchmarks/training_steps.py [--assets ../shared] [--rounds 3]

In each round, one process trains with all optimizations and one process without each of
them, every second round in the opposite order. The table has the shortest time without
an optimization relative to the shortest with all, and the memory that the process had
needed at most by then. The columns are the model and the texts: `classify.py` describes
them.
"""

import argparse
import functools
import json
import os
import pathlib
import resource
import subprocess
import sys

ALL = "nothing"
# Optimizations, and the variables of the environment that switch them off. Code does
# for those without any: see `switch_off`.
OFF = {
    ALL: {},
    "oneDNN": {"TF_ENABLE_ONEDNN_OPTS": "0"},
    # Any option of glibc does. This one is its default.
    "memory kept in the process": {"MALLOC_PERTURB_": "0"},
    "GELU compiled by XLA": {},
    "attention by example": {},
}
# Size, data and number of texts.
COLUMNS = (
    ("albert_tiny_zh", "lcqmc", 128),
    ("albert_tiny_zh", "long", 16),
    ("albert_base_zh", "lcqmc", 16),
)
REPEATS = 2


def switch_off(name):
    """Replace an optimization in this process."""
    from albert_tf.layers import attend, common, fused_gelu

    if name == "GELU compiled by XLA":
        fused_gelu.fused_gelu = common.gelu_approximate
    if name == "attention by example":
        attend.LONG = 1 << 30


def train(assets, without):
    """Return per column the shortest seconds of `fit`, and the GB of the process."""
    from classify import DATA
    from engines import Ours
    from harness import timed

    switch_off(without)
    vocabulary = str(assets / "released/vocab/vocab_zh_21128.txt")
    found = []
    for size, data, count in COLUMNS:
        read, sequence_length = DATA[data]
        x, y = read(assets, count)
        engine = Ours(size, vocabulary, sequence_length)
        fit = functools.partial(engine.fit, x, y, 32)
        fit()
        seconds = min(timed(fit)[0] for _ in range(REPEATS))
        # In kilobytes on Linux.
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        found.append((seconds, peak))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = os.environ.get("ALBERT_TF_ASSETS", "../shared")
    parser.add_argument("--assets", default=default, help="folder with the data")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--without", choices=OFF, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.without:
        found = train(pathlib.Path(arguments.assets), arguments.without)
        print(json.dumps(found))
        return
    names = [f"{size}, {count} {data}" for size, data, count in COLUMNS]
    found = {name: [] for name in OFF}
    for number in range(arguments.rounds):
        command = [sys.executable, __file__, "--assets", arguments.assets]
        for name in list(OFF) if number % 2 == 0 else reversed(OFF):
            printed = subprocess.run(
                [*command, "--without", name],
                env={**os.environ, **OFF[name]},
                check=True,
                capture_output=True,
                text=True,
            ).stdout
            found[name].append(json.loads(printed.splitlines()[-1]))
            print(f"round {number + 1}, {name}: {found[name][-1]}", flush=True)
    # The least seconds and gigabytes by column.
    least = {
        name: {
            column: [min(values) for values in zip(*runs, strict=True)]
            for column, runs in zip(names, zip(*rounds, strict=True), strict=True)
        }
        for name, rounds in found.items()
    }
    rows = {
        name: {column: row[column][0] / least[ALL][column][0] for column in names}
        | {f"{column}, GB": row[column][1] for column in names}
        for name, row in least.items()
    }

    from harness import console, table_of, write_results

    console.print(table_of(rows, rows[ALL]))
    seconds = {column: least[ALL][column][0] for column in names}
    write_results("training_steps", {"seconds": seconds, "rows": rows})


if __name__ == "__main__":
    main()
