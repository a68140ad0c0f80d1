"""Measure the memory, errors and log lines of a service of two workers.

    python -m benchmarks.speed.service FILE [--requests 20000]

FILE is an exported ONNX or LiteRT file. Each worker is a process that answers requests
one by one and logs a line for each to standard error. One request in ten is hostile:
words of 100,000 characters, megabytes of text, control characters, invalid UTF-8, other
types. `megabytes` is the memory of a worker after the warm-up and at the end.
"""

import argparse
import base64
import collections
import concurrent.futures
import contextlib
import functools
import multiprocessing
import os
import pathlib
import random
import re
import tempfile
import time

import albert_tf_lite
from albert_tf_lite.errors import AlbertError

HOSTILE = {
    "long word": lambda x: base64.b64encode(x.randbytes(75_000)).decode(),
    "addresses": lambda x: " ".join(f"https://a.b/{x.random()}" for _ in range(500)),
    "megabyte": lambda x: "".join(x.choices("房间很干净饕餮", k=350_000)),
    "all of Unicode": lambda x: "".join(map(chr, x.sample(range(0x110000), 20_000))),
    "control characters": lambda x: "\x00\x1b[2J\u202e\r\n很好\x9b31m" * 50,
    "invalid UTF-8": lambda x: x.randbytes(20_000),
    "surrogates": lambda x: "\ud800\udfff" * x.randrange(1, 100),
    "number": lambda x: x.random(),
    "nothing": lambda x: {},
}


def request(number):
    """Return the kind of a request and its content."""
    draw = random.Random(number)
    if number % 10:
        return "text", f"房间{draw.choice('很不')}干净，{draw.randrange(10**6)} 号房。"
    kind = list(HOSTILE)[number // 10 % len(HOSTILE)]
    return kind, HOSTILE[kind](draw)


@functools.cache
def model(path):
    return albert_tf_lite.pipeline(path, threads=1)


def answer(path, number):
    """Return the kind of a request, its error, and this worker's memory in MB."""
    (kind, text), error = request(number), None
    try:
        model(path)(text)
    except AlbertError as refused:
        error = type(refused).__name__
    os.write(2, f"request {number} {error}\n".encode())
    status = pathlib.Path("/proc/self/status").read_text(encoding="utf-8")
    resident = int(re.search(r"VmRSS:\s*(\d+)", status)[1]) / 1e3
    return kind, error, os.getpid(), resident


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--requests", type=int, default=20_000)
    arguments = parser.parse_args()
    warm, count = arguments.requests // 20, arguments.requests
    refused = collections.Counter()
    memory = collections.defaultdict(list)
    start = time.perf_counter()
    with tempfile.TemporaryFile() as log, contextlib.ExitStack() as stack:
        stack.callback(os.dup2, os.dup(2), 2)
        os.dup2(log.fileno(), 2)  # The workers inherit it.
        context = multiprocessing.get_context("spawn")
        with concurrent.futures.ProcessPoolExecutor(2, context) as workers:
            call = functools.partial(answer, arguments.file)
            answers = workers.map(call, range(count), chunksize=20)
            for kind, error, worker, resident in answers:
                if error:
                    refused[kind] += 1
                memory[worker].append(resident)
        log.seek(0)
        numbers = re.findall(rb"request (\d+) ", log.read())
    rows = {
        f"worker {i}": {"megabytes": round(x[warm // 2]), "at the end": round(x[-1])}
        for i, x in enumerate(memory.values(), 1)
    }
    values = {
        "requests": count,
        "per second": round(count / (time.perf_counter() - start)),
        "refused": dict(refused),
        "lost log lines": count - len({*numbers}),
    }

    # Imported last, because it imports TensorFlow.
    from benchmarks.lib.harness import console, table_of, write_results

    console.print(table_of(rows, ("megabytes", "at the end")), values)
    write_results("service", {**values, "rows": rows})


if __name__ == "__main__":
    main()
