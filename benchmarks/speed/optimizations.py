"""Measure how much each optimization adds to the speed of `predict` and `fit`.

    python -m benchmarks.speed.optimizations [--assets ../shared] [--rounds 3]

In each round, one process works with all optimizations and one process without each of
them, every second round in the opposite order. The table has the shortest time without
an optimization relative to the shortest with all, and for `fit` the memory that the
process had needed at most by then. `classify.py` describes the texts.
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
    "LayerNorm in one operation": {},
    "GELU with its product": {},
    # Any option of glibc does. This one is its default.
    "memory kept in the process": {"MALLOC_PERTURB_": "0"},
    "GELU compiled by XLA": {},
    "attention by example": {},
}
# Job, size, data, number of texts and precision; the last only where a processor has
# units for it.
COLUMNS = (
    ("predict", "tiny", "lcqmc", 256, "float32"),
    ("predict", "base", "lcqmc", 24, "float32"),
    ("fit", "tiny", "lcqmc", 128, "float32"),
    ("fit", "tiny", "long", 16, "float32"),
    ("fit", "base", "lcqmc", 16, "float32"),
    ("predict", "tiny", "lcqmc", 256, "bfloat16"),
    ("fit", "tiny", "lcqmc", 128, "bfloat16"),
)
REPEATS = {"predict": 8, "fit": 3}


def columns():
    """Return the engine and the column by title, those that this processor can run."""
    from benchmarks.lib.compared_engines import BFloat16, Ours, installed

    precisions = {"float32": Ours, "bfloat16": BFloat16}
    return {
        "{0}, {1}, {3} {2}, {4}".format(*column): (engine, column)
        for column in COLUMNS
        if (engine := precisions[column[-1]]) in installed()
    }


def switch_off(name):
    """Replace an optimization in this process."""
    from albert_tf.layers import FeedForwardBlock, attend, common, fused_gelu
    import keras

    if name == "LayerNorm in one operation":
        common.LayerNormalization.call = keras.layers.LayerNormalization.call
    if name == "GELU with its product":
        activate = FeedForwardBlock._activate
        FeedForwardBlock._activate = lambda block, x, training: (
            activate(block, x, training) if training else block.activation(x)
        )
    if name == "GELU compiled by XLA":
        fused_gelu.fused_gelu = common.gelu_approximate
    if name == "attention by example":
        attend.LONG = 1 << 30


def measure(assets, without):
    """Return per column the shortest seconds, and the GB of the process."""
    from benchmarks.lib.compared_texts import DATA
    from benchmarks.lib.harness import timed

    switch_off(without)
    vocabulary = str(assets / "released/vocab/vocab_zh_21128.txt")
    found = []
    for engine_cls, (job, size, data, count, _) in columns().values():
        read, sequence_length = DATA[data]
        x, y = read(assets, count)
        engine = engine_cls(f"albert_{size}_zh", vocabulary, sequence_length)
        given = (x, y) if job == "fit" else (x,)
        run = functools.partial(getattr(engine, job), *given, batch_size=32)
        run()
        seconds = min(timed(run)[0] for _ in range(REPEATS[job]))
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
        found = measure(pathlib.Path(arguments.assets), arguments.without)
        print(json.dumps(found))
        return
    names = list(columns())
    found = {name: [] for name in OFF}
    for number in range(arguments.rounds):
        command = [sys.executable, "-m", "benchmarks.speed.optimizations"]
        command += ["--assets", arguments.assets]
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
        | {f"{x}, GB": row[x][1] for x in names if "fit" in x and "float32" in x}
        for name, row in least.items()
    }

    from benchmarks.lib.harness import console, table_of, write_results

    console.print(table_of(rows, rows[ALL]))
    seconds = {column: least[ALL][column][0] for column in names}
    write_results("optimizations", {"seconds": seconds, "rows": rows})


if __name__ == "__main__":
    main()
