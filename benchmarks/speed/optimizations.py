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
    measured = {}
    for title, (engine_cls, (job, size, data, count, _)) in columns().items():
        read, sequence_length = DATA[data]
        x, y = read(assets, count)
        engine = engine_cls(f"albert_{size}_zh", vocabulary, sequence_length)
        if job == "fit":
            run = functools.partial(engine.fit, x, y, batch_size=32)
        else:
            run = functools.partial(engine.predict, x, batch_size=32)
        run()
        seconds = min(timed(run)[0] for _ in range(REPEATS[job]))
        # In kilobytes on Linux.
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        measured[title] = {"seconds": seconds, "GB": peak}
    return measured


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = os.environ.get("ALBERT_TF_ASSETS", "../shared")
    parser.add_argument("--assets", default=default, help="folder with the data")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--without", choices=OFF, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.without:
        measured = measure(pathlib.Path(arguments.assets), arguments.without)
        print(json.dumps(measured))
        return
    rounds = {name: [] for name in OFF}
    for number in range(arguments.rounds):
        for name in list(OFF) if number % 2 == 0 else reversed(OFF):
            measured = measure_in_process(arguments.assets, name)
            rounds[name].append(measured)
            print(f"round {number + 1}, {name}: {measured}", flush=True)
    seconds = {name: least(rounds[name], "seconds") for name in OFF}
    gigabytes = {name: least(rounds[name], "GB") for name in OFF}
    rows = {}
    for name in OFF:
        rows[name] = {
            title: value / seconds[ALL][title] for title, value in seconds[name].items()
        }
        for title, value in gigabytes[name].items():
            if "fit" in title and "float32" in title:
                rows[name][f"{title}, GB"] = value

    from benchmarks.lib.harness import console, table_of, write_results

    console.print(table_of(rows, rows[ALL]))
    write_results("optimizations", {"seconds": seconds[ALL], "rows": rows})


def measure_in_process(assets, without):
    """Return what `measure` does, from a process of its own."""
    command = [sys.executable, "-m", "benchmarks.speed.optimizations"]
    printed = subprocess.run(
        [*command, "--assets", assets, "--without", without],
        env={**os.environ, **OFF[without]},
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return json.loads(printed.splitlines()[-1])


def least(rounds, unit):
    """Return the least value of the rounds in each column."""
    return {
        title: min(measured[title][unit] for measured in rounds) for title in rounds[0]
    }


if __name__ == "__main__":
    main()
