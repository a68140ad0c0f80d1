"""Measure an exported model under load: throughput, latency, memory, restarts.

    python -m benchmarks.speed.serving [--requests 100000] [--threads 8] [--size tiny]

A separate process without albert_tf loads the SavedModel and answers requests of one to
eight texts of 1 to 500 characters, mostly short ones. The benchmark has three parts:

1. load: `--threads` threads send all requests. Reports the memory of the process at the
   start (after 1,000 requests) and at the end.
2. kill: the process is killed under load and another one loads the model. Reports the
   seconds from the kill to the first answer.
3. swap: a second version is loaded under load and replaces the first. Every request
   must be answered by one of the two.

The benchmark measures the graph on this machine, without TensorFlow Serving's overhead.
"""

import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np

TEXTS = 4096


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--size", default="tiny", choices=["micro", "tiny", "base"])
    parser.add_argument("--work", metavar="MODEL", help=argparse.SUPPRESS)
    return parser.parse_args()


# --- Serving process ---


def resident():
    """Return the resident memory of this process in MB."""
    pages = pathlib.Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE") / 1e6


def texts_of_mixed_length():
    """Generate strings of 1 to 500 characters, median 30, a few empty or with NUL."""
    rng = np.random.default_rng(0)
    lengths = np.clip(np.exp(rng.normal(3.4, 1.0, TEXTS)), 1, 500).astype(int)
    texts = [
        "".join(map(chr, rng.integers(0x4E00, 0x9FA5, length))) for length in lengths
    ]
    texts[::97] = [""] * len(texts[::97])
    texts[1::97] = ["\x00a" * 9] * len(texts[1::97])
    return texts


class Load:
    """Threads that send `count` requests to the model that `ask` holds."""

    def __init__(self, ask, count, threads, on_answer=lambda number: None):
        self.ask, self.count, self.on_answer = ask, count, on_answer
        self.seconds, self.errors, self.texts = [], [], 0
        self.answered_by = collections.Counter()
        self._texts = texts_of_mixed_length()
        self._lock, self._next = threading.Lock(), 0
        self._threads = [threading.Thread(target=self._run) for _ in range(threads)]

    def run(self):
        start = time.perf_counter()
        for thread in self._threads:
            thread.start()
        for thread in self._threads:
            thread.join()
        self.elapsed = time.perf_counter() - start
        return self

    def _run(self):
        import tensorflow as tf

        while True:
            with self._lock:
                number, self._next = self._next, self._next + 1
            if number >= self.count:
                return
            size = 1 + number * 7919 % 8
            rows = [self._texts[(number * 31 + i) % TEXTS] for i in range(size)]
            version, ask = self.ask
            start = time.perf_counter()
            try:
                probabilities = ask(text=tf.constant(rows))["probabilities"].numpy()
                assert probabilities.shape == (size, 2), probabilities.shape
                assert np.isfinite(probabilities).all()
            except Exception as error:  # Counted and printed: no request may fail.
                self.errors.append(f"{type(error).__name__}: {error}"[:200])
            with self._lock:
                self.seconds.append(time.perf_counter() - start)
                self.texts += size
                self.answered_by[version] += 1
                done = len(self.seconds)
            self.on_answer(done)


def signature(path):
    import tensorflow as tf

    # Return the model, too: the signature alone does not hold the variables.
    served = tf.saved_model.load(str(path))
    return served, served.signatures["serving_default"]


def answer_load(folder, count, threads):
    """Run parts 1 and 3 in this process and print the results as JSON lines."""
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  registers the operations of the tokenizer

    served, ask = signature(folder / "1")
    ask(text=tf.constant(["好"]))
    print(json.dumps({"ready": time.time()}), flush=True)

    # By then, oneDNN's cache of shapes is full.
    start, memory = min(1000, max(count // 2, 1)), {}

    def measure(done):
        if done == start:
            memory["start"] = resident()
        if count >= 10 and done % (count // 10) == 0:
            print(json.dumps({"done": done, "mb": resident()}), flush=True)

    load = Load((1, ask), count, threads, measure).run()
    report = {
        "requests_a_second": count / load.elapsed,
        "texts_a_second": load.texts / load.elapsed,
        **percentiles(load.seconds),
        "mb_at_start": memory["start"],
        "mb_at_end": resident(),
        "errors": load.errors[:5],
    }
    print(json.dumps({"load": report}), flush=True)

    swap = Load((1, ask), max(count // 20, 40), threads)

    def take_over(done):
        if done == swap.count // 3:
            new = signature(folder / "2")
            swap.ask = (2, new[1])
            swap.kept = new

    swap.on_answer = take_over
    del served, ask
    swap.run()
    print(
        json.dumps(
            {
                "swap": {
                    "answered_by_version": dict(swap.answered_by),
                    "requests": swap.count,
                    **percentiles(swap.seconds),
                    "errors": swap.errors[:5],
                }
            }
        ),
        flush=True,
    )


def percentiles(seconds):
    names = {50: "p50_ms", 95: "p95_ms", 99: "p99_ms"}
    values = 1000 * np.percentile(seconds, list(names))
    return dict(zip(names.values(), map(float, values), strict=True))


# --- Measuring process ---


def export(folder, size):
    """Export two versions of a classifier with random weights and albert_zh's size."""
    import albert_tf
    import zh

    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *map(chr, range(97, 123))]
    sizes = zh.SIZES[f"albert_{size}_zh"]
    missing = sizes["vocabulary_size"] - len(tokens)
    tokens += map(chr, range(0x4E00, 0x4E00 + missing))
    for _ in range(2):
        backbone = albert_tf.models.AlbertBackbone(**sizes)
        classifier = albert_tf.models.AlbertTextClassifier.from_backbone(
            backbone, tokens, num_classes=2, labels=["差评", "好评"]
        )
        albert_tf.export.saved_model(classifier, folder, version="next")


def worker(folder, given):
    command = [sys.executable, "-m", "benchmarks.speed.serving"]
    command += ["--work", str(folder)]
    command += ["--requests", str(given.requests), "--threads", str(given.threads)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def lines_of(process):
    for line in process.stdout:
        if line.startswith("{"):
            yield json.loads(line)


def killed_and_reloaded(folder, given):
    """Kill a process under load; return the seconds until the next answer."""
    first = worker(folder, given)
    for line in lines_of(first):
        if "done" in line or "load" in line:
            break
    killed = time.time()
    first.kill()
    first.wait()
    second = worker(folder, given)
    ready = next(line["ready"] for line in lines_of(second) if "ready" in line)
    second.kill()
    second.wait()
    return ready - killed


def main():
    given = arguments()
    if given.work:
        answer_load(pathlib.Path(given.work), given.requests, given.threads)
        return
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder, "reviews")
        export(folder, given.size)
        process = worker(folder, given)
        failed = False
        for line in lines_of(process):
            for name, report in line.items():
                if name in ("load", "swap"):
                    print(f"{name}:")
                    for key, value in report.items():
                        text = f"{value:,.1f}" if isinstance(value, float) else value
                        print(f"  {key:22} {text}")
                    if report["errors"]:
                        failed = True
            if "done" in line:
                print(
                    f"  {line['done']:>9,} answered, {line['mb']:,.0f} MB", flush=True
                )
        if process.wait() != 0:
            failed = True
        print(
            f"kill:\n  seconds_to_next_answer {killed_and_reloaded(folder, given):.1f}"
        )
    sys.exit(int(failed))


if __name__ == "__main__":
    main()
