"""Measure the memory and the seconds per step of fine-tuning, by size and length.

    python -m benchmarks.speed.recipes [--seconds 8] [--shared]

A row is a recipe of docs/guides/recipes.md. Each is a new process that runs `fit` of an
`AlbertTextClassifier` with random weights in float32, on random ids in full-length
sequences. Batches that need too much memory are smaller, and their gradients are
accumulated to the batch size of the others. The first batch, which is traced, is not
counted; the last is the first to end after `--seconds`. `seconds` is the mean of a
batch, `cpu_seconds` by processor time, which other programs hardly affect.
`core_minutes of N` are those of all epochs of N full-length examples, by processor
time. `megabytes` is the peak memory of the process. `--shared` notes that other
programs ran.
"""

import argparse
import json
import sys
import time

from benchmarks.lib.paths import EXAMPLES
from benchmarks.lib.processes import run

# Batches per update by size and length. Each update is of BATCH_SIZE examples.
ACCUMULATED = {
    "albert_micro_zh": {128: 1, 512: 1},
    "albert_tiny_zh": {128: 1, 512: 1},
    "albert_base_zh": {128: 1, 512: 2},
    "albert_large_zh": {128: 2, 512: 4},
}
BATCH_SIZE = 16
EXAMPLE_COUNTS = (1_000, 10_000)
MOST_BATCHES = 16


def measure(size, length, seconds):
    """Return the settings of a recipe, and the seconds and memory of its batches."""
    import albert_tf
    import keras
    import numpy as np
    import zh

    keras.utils.set_random_seed(1)
    sizes = {**zh.SIZES[size], "max_sequence_length": length}
    backbone = albert_tf.models.AlbertBackbone(**sizes)
    classifier = albert_tf.models.AlbertTextClassifier(backbone, num_classes=2)
    parts = ACCUMULATED[size][length]
    classifier.compile(gradient_accumulation_steps=parts if parts > 1 else None)
    rows = BATCH_SIZE // parts
    count = rows * (MOST_BATCHES + 1)
    random = np.random.default_rng(1)
    ids = random.integers(5, sizes["vocabulary_size"], (count, length), dtype="int32")
    times = []

    def end_batch(batch, logs):
        times.append((time.perf_counter(), time.process_time()))
        # The first batch is not measured: its end is the start.
        measured = times[-1][0] - times[0][0]
        classifier.stop_training = measured > seconds

    timer = keras.callbacks.LambdaCallback(on_train_batch_end=end_batch)
    x = {
        "token_ids": ids,
        "segment_ids": np.zeros_like(ids),
        "padding_mask": np.ones(ids.shape, bool),
    }
    y = np.arange(count) % 2
    classifier.fit(x, y, rows, epochs=1, verbose=0, callbacks=[timer])
    wall, cpu = (np.array(times[-1]) - times[0]) / (len(times) - 1)
    return {
        "size": size,
        "length": length,
        "batch_size": rows,
        "batches_per_update": parts,
        "learning_rate": learning_rate(size, sizes["hidden_dim"]),
        "batches": len(times) - 1,
        "seconds": float(wall),
        "cpu_seconds": float(cpu),
    }


def learning_rate(size, width):
    """Return the default rate: that of the bundled checkpoint, else by the width."""
    from albert_tf.training import fine_tuning_learning_rate

    config = EXAMPLES / size / "albert_config.json"
    if config.exists():
        return json.loads(config.read_text("utf-8"))["fine_tuning"]["learning_rate"]
    return fine_tuning_learning_rate(width)


def measured(size, length, seconds):
    """Measure a recipe in a separate process; return its row."""
    options = ("--one", size, str(length), "--seconds", str(seconds))
    done = run(sys.executable, "-m", "benchmarks.speed.recipes", *options)
    return {**json.loads(done.output.splitlines()[-1]), "megabytes": done.megabytes}


def add_minutes(row):
    """Add the epochs and processor time of trainings to a row."""
    from albert_tf.training import fine_tuning_epochs

    for examples in EXAMPLE_COUNTS:
        epochs = fine_tuning_epochs(examples)
        spent = epochs * examples / row["batch_size"] * row["cpu_seconds"]
        row[f"epochs of {examples}"] = epochs
        row[f"core_minutes of {examples}"] = spent / 60


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=8, help="of each recipe")
    parser.add_argument("--shared", action="store_true", help="other programs run")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        size, length = arguments.one
        print(json.dumps(measure(size, int(length), arguments.seconds)))
        return

    rows = {}
    for size, lengths in ACCUMULATED.items():
        for length in lengths:
            row = measured(size, length, arguments.seconds)
            rows[f"{size}, {length}"] = row
            print(f"{size}, {length}: {row['seconds']:.2f} s", flush=True)

    # Imported last: a process starts with the peak memory of its parent.
    from benchmarks.lib.harness import console, matrix_rate, table_of, write_results

    for row in rows.values():
        add_minutes(row)
    console.print(table_of(rows, ("seconds", "cpu_seconds", "megabytes")))
    settings = {
        "seconds": arguments.seconds,
        "shared": arguments.shared,
        "precision": "float32",
        "examples_per_update": BATCH_SIZE,
    }
    values = {"settings": settings, "matrix_gflops": matrix_rate(), "rows": rows}
    write_results("recipes", values)


if __name__ == "__main__":
    main()
