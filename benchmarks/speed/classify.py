"""Compare inference and training speed with other libraries on the same texts.

    python -m benchmarks.speed.classify [--assets ../shared] [--size albert_tiny_zh]
        [--data lcqmc] [--examples 1024] [--rounds 5] [--avx2]

ASSETS is a folder with data/lcqmc/dev.tsv, data/chnsenticorp_clean.zip,
data/cmrc2018/cmrc2018_dev.json and released/vocab/vocab_zh_21128.txt. All engines of
`benchmarks/lib/compared_engines.py` run in turn, with the same model size, random
weights, vocabulary, batch size and texts. Each has its own process, so that none uses
memory or threads that another left behind. A warm-up run of each engine, which traces
and compiles, is not counted. `--avx2` compares what a processor with AVX2 alone would
run: Keras and transformers in float32.
"""

import argparse
import concurrent.futures
import functools
import multiprocessing
import os
import pathlib

import numpy as np
import zh

from benchmarks.lib.compared_engines import (
    Ours,
    SortedTransformers,
    Transformers,
    installed,
)
from benchmarks.lib.compared_texts import DATA
from benchmarks.lib.harness import (
    compared,
    console,
    forward_gflop,
    in_turn,
    matrix_rate,
    table_of,
    timed,
    write_results,
)

# Variables that keep oneDNN, XLA and PyTorch from newer instructions.
AVX2 = {
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "XLA_FLAGS": "--xla_cpu_max_isa=AVX2",
    "ATEN_CPU_CAPABILITY": "avx2",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
}


class Worker:
    """An engine in a process of its own, which waits while others run."""

    def __init__(self, engine, *arguments):
        spawn = multiprocessing.get_context("spawn")
        start = functools.partial(_start, engine, *arguments)
        self.process = concurrent.futures.ProcessPoolExecutor(1, spawn, start)

    def call(self, function, *arguments):
        """Return what a function of the engine and the arguments returns there."""
        return self.process.submit(_call, function, *arguments).result()


def _start(engine, *arguments):
    Worker.engine = engine(*arguments)


def _call(function, *arguments):
    return function(Worker.engine, *arguments)


def _lengths(engine, x):
    return engine.model.preprocessor.pack_texts(x).lengths.numpy()


def _seconds(engine, job, x, y, batch_size):
    """Return the shorter of two runs in a row: others leave the caches cold."""
    runs = {
        "predict": lambda: engine.predict(x, batch_size),
        "fit": lambda: engine.fit(x, y, batch_size),
    }
    return min(timed(runs[job]), timed(runs[job]))


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = os.environ.get("ALBERT_TF_ASSETS", "../shared")
    parser.add_argument("--assets", default=default, help="folder with the data")
    parser.add_argument("--size", default="albert_tiny_zh", choices=zh.SIZES)
    parser.add_argument("--data", default="lcqmc", choices=DATA)
    parser.add_argument("--examples", type=int, default=1024)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--jobs", nargs="+", default=["predict", "fit"])
    parser.add_argument("--avx2", action="store_true", help="no newer instructions")
    return parser.parse_args()


def main():
    arguments = read_arguments()
    assets = pathlib.Path(arguments.assets)
    read, sequence_length = DATA[arguments.data]
    x, y = read(assets, arguments.examples)
    vocabulary = str(assets / "released/vocab/vocab_zh_21128.txt")
    engines = installed()
    if arguments.avx2:
        # Before the processes start, which inherit it.
        os.environ.update(AVX2)
        obey = (Ours, Transformers, SortedTransformers)
        engines = [engine for engine in engines if engine in obey]
    workers = {
        engine.name: Worker(engine, arguments.size, vocabulary, sequence_length)
        for engine in engines
    }
    # They start at once, while nothing is measured.
    for started in [worker.process.submit(int) for worker in workers.values()]:
        started.result()
    lengths = workers[Ours.name].call(_lengths, x)
    console.print(
        f"{arguments.data}, {len(y):,} examples of {lengths.mean():.1f} tokens, "
        f"{arguments.size}, batch {arguments.batch_size}"
    )
    results = {}
    for number, job in enumerate(arguments.jobs):
        for engine in engines:
            # Free the memory of those that are done.
            if not any(getattr(engine, x, None) for x in arguments.jobs[number:]):
                workers[engine.name].process.shutdown()
        inputs = _seconds, job, x, y, arguments.batch_size
        calls = {
            engine.name: functools.partial(workers[engine.name].call, *inputs)
            for engine in engines
            if getattr(engine, job, None)
        }
        before = matrix_rate()
        times = in_turn(calls, arguments.rounds, timed=lambda call: call())
        rows = compared(times, to="transformers" if arguments.avx2 else "KerasHub")
        rate = float(np.mean([before, matrix_rate()]))
        work = sum(forward_gflop(zh.SIZES[arguments.size], n, n) for n in lengths)
        # Backward is twice forward.
        work *= {"predict": 1, "fit": 3}[job]
        for row in rows.values():
            row["examples/s"] = len(y) / row["seconds"]
            row["share"] = work / row["seconds"] / rate
        columns = ("examples/s", "ratio", "smallest", "largest", "share")
        console.print(f"{job}; matrix product at {rate:.0f} GFLOP/s")
        console.print(table_of(rows, columns))
        results[job] = {"matrix_gflops": rate, "rows": rows}
    settings = dict(vars(arguments))
    del settings["assets"]
    settings["mean_tokens"] = float(lengths.mean())
    name = f"classify_{arguments.data}_{arguments.size}"
    if arguments.avx2:
        name += "_avx2"
    write_results(name, {"settings": settings, "jobs": results})


if __name__ == "__main__":
    main()
