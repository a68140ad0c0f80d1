"""Measure training speed, memory and parameters of BERT and ALBERT, by size.

    python -m benchmarks.speed.model_sizes [--models ALBERT-base ...] [--rounds 2]

Table 2 of the ALBERT paper: BERT shares no weights and has E = H, ALBERT shares all and
has E = 128, both with the code of this package and 30,000 tokens. A step is one of
pretraining, with both losses and AdamW, on random ids in full-length sequences. Every
measurement is a new process, and each round measures all models in turn. `megabytes` is
the peak memory of the process, with about 900 for the imports. `speedup` is relative to
BERT-large, with the smallest and largest over the rounds; `cpu_ratio` is the same by
processor time, which other programs hardly affect. `--shared` notes that there were
such programs.
"""

import argparse
import json
import statistics
import sys
import time

from benchmarks.lib.processes import run

ROWS = {
    "BERT-base": ("albert_base_en", False),
    "BERT-large": ("albert_large_en", False),
    "ALBERT-base": ("albert_base_en", True),
    "ALBERT-large": ("albert_large_en", True),
    "ALBERT-xlarge": ("albert_xlarge_en", True),
}
REFERENCE = "BERT-large"


def sizes_of(name):
    """Return the arguments of the backbone of a row."""
    from albert_tf.backbone import SIZES

    size, is_shared = ROWS[name]
    if is_shared:
        return SIZES[size]
    layers, hidden = SIZES[size]["num_layers"], SIZES[size]["hidden_dim"]
    groups = {"num_attention_groups": layers, "num_ffn_groups": layers}
    return {**SIZES[size], "embedding_dim": hidden, **groups}


def measure(name, batch_size, length, steps):
    """Return the parameters of a model, and (wall, processor) seconds of its steps."""
    from benchmarks.speed.pretraining_step import Ours, random_batch

    sizes = sizes_of(name)
    job = Ours(sizes, *random_batch(sizes, batch_size, length))
    times = []
    # The first one is traced.
    for _ in range(steps + 1):
        wall, cpu = time.perf_counter(), time.process_time()
        job.step()
        times.append((time.perf_counter() - wall, time.process_time() - cpu))
    parameters = job.model.backbone.count_params()
    return {"parameters": parameters, "seconds": times[1:]}


def measured(name, arguments):
    """Measure a model in a process of its own, with its peak memory."""
    settings = (arguments.batch_size, arguments.sequence_length, arguments.steps)
    module = "benchmarks.speed.model_sizes"
    code = f"from {module} import report_one; report_one({name!r}, *{settings})"
    done = run(sys.executable, "-c", code)
    return {**json.loads(done.output.splitlines()[-1]), "megabytes": done.megabytes}


def report_one(*settings):
    print(json.dumps(measure(*settings)))


def row_of(rounds, reference, batch_size):
    """Summarize the rounds of a model relative to those of the reference."""
    wall, cpu = medians(rounds)
    row = {
        "parameters": rounds[0]["parameters"],
        "megabytes": max(x["megabytes"] for x in rounds),
        "seconds": statistics.median(wall),
        "sequences/s": batch_size / statistics.median(wall),
    }
    if reference:
        reference_wall, reference_cpu = medians(reference)
        ratios = [x / y for x, y in zip(reference_wall, wall, strict=True)]
        cpu_ratios = [x / y for x, y in zip(reference_cpu, cpu, strict=True)]
        row["speedup"] = statistics.median(ratios)
        row["smallest"] = min(ratios)
        row["largest"] = max(ratios)
        row["cpu_ratio"] = statistics.median(cpu_ratios)
    return row


def medians(rounds):
    """Return the median (wall, processor) seconds of each round, as two lists."""
    parts = (map(statistics.median, zip(*x["seconds"], strict=True)) for x in rounds)
    return [list(values) for values in zip(*parts, strict=True)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=list(ROWS), choices=ROWS)
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--sequence-length", type=int, default=128)
    parser.add_argument("--steps", type=int, default=2, help="steps per process")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--shared", action="store_true", help="other programs run")
    arguments = parser.parse_args()
    found = {name: [] for name in arguments.models}
    for _ in range(arguments.rounds):
        for name, rounds in found.items():
            rounds.append(measured(name, arguments))
            print(name, rounds[-1], flush=True)
    rows = {
        name: row_of(rounds, found.get(REFERENCE), arguments.batch_size)
        for name, rounds in found.items()
    }

    # Imported last, so that the processes measured have the memory to themselves.
    from benchmarks.lib.harness import console, table_of, write_results

    console.print(table_of(rows, list(next(iter(rows.values())))))
    write_results("model_sizes", {"settings": vars(arguments), "rows": rows})


if __name__ == "__main__":
    main()
