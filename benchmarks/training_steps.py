"""Measure how much each optimization adds to the speed of training.

    python benchmarks/training_steps.py [--assets ../shared] [--rounds 3]

In each round, one process trains with all optimizations and one process without each of
them. `ratio` is the time without it relative to the time with all, the median over the
rounds, on one line per optimization. The columns are the model and the texts:
`classify.py` describes them.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

ALL = "all"
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
    ("albert_base_zh", "lcqmc", 32),
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
    """Return the seconds of `fit` per column, the shortest of the repeats."""
    from classify import DATA
    from engines import Ours

    switch_off(without)
    vocabulary = str(assets / "released/vocab/vocab_zh_21128.txt")
    seconds = []
    for size, data, count in COLUMNS:
        read, sequence_length = DATA[data]
        x, y = read(assets, count)
        engine = Ours(size, vocabulary, sequence_length)
        engine.fit(x, y, 32)
        times = []
        for _ in range(REPEATS):
            start = time.perf_counter()
            engine.fit(x, y, 32)
            times.append(time.perf_counter() - start)
        seconds.append(min(times))
    return seconds


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
    names = [f"{size} {data}" for size, data, _ in COLUMNS]
    rounds = []
    for number in range(arguments.rounds):
        command = [sys.executable, __file__, "--assets", arguments.assets]
        rounds.append({})
        for name, switches in OFF.items():
            environment = {**os.environ, **switches}
            printed = subprocess.run(
                [*command, "--without", name],
                env=environment,
                check=True,
                capture_output=True,
                text=True,
            ).stdout
            rounds[-1][name] = json.loads(printed.splitlines()[-1])
            print(f"round {number + 1}, {name}: {rounds[-1][name]}", flush=True)
    rows = {
        name: {
            column: statistics.median(
                found[name][i] / found[ALL][i] for found in rounds
            )
            for i, column in enumerate(names)
        }
        for name in OFF
        if name != ALL
    }
    fastest = [min(found[ALL][i] for found in rounds) for i in range(len(names))]

    from harness import console, table_of, write_results

    console.print(table_of(rows, names))
    values = {"texts": {x: y for x, (*_, y) in zip(names, COLUMNS, strict=True)}}
    values |= {"seconds": dict(zip(names, fastest, strict=True)), "rows": rows}
    write_results("training_steps", values)


if __name__ == "__main__":
    main()
