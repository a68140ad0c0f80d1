"""Measure the speed and peak memory of creating pretraining records.

Runs in turn, each in a separate process: jieba alone on one core, and
`make_pretraining_data` on one core and with one worker per core. The rate excludes the
first blocks, while the workers start. Writes `results/pretrain_data.json`, and with
--memory `results/pretrain_data_memory.json`.

Run: make benchmark-pretrain-data TEXTS='corpus/*.txt'
Memory: python -m benchmarks.speed.pretrain_data 'corpus/*.txt' --memory
"""

import argparse
import collections
import glob
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

JIEBA = """
import json, os, sys, time
os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[0]})
import jieba
jieba.setLogLevel(60)
jieba.initialize()
text = open(sys.argv[1], encoding="utf-8").read(2_000_000)
start = time.perf_counter()
for line in text.split("\\n"):
    jieba.lcut(line)
rate = len(text.encode()) / 1e6 / (time.perf_counter() - start)
print(json.dumps({"rate": rate}))
"""

RECORDS = """
import json, os, resource, sys, time
text, vocabulary, output, workers = sys.argv[1:]
if workers == "1":
    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[0]})
import zh
from albert_tf.pretraining import PretrainingData, make_pretraining_data

def memory(who):
    return resource.getrusage(who).ru_maxrss * 1024

if __name__ == "__main__":
    moments = []
    settings = PretrainingData(
        vocabulary, segmenter=zh.Jieba(), split_sentences=zh.split_sentences
    )
    make_pretraining_data(
        [text], output, settings, workers=int(workers),
        progress=lambda done, total: moments.append(time.perf_counter()),
    )
    # All blocks but those that were done when the first worker was ready.
    skipped = min(int(workers), len(moments) - 1)
    seconds = moments[-1] - moments[skipped - 1]
    size = os.path.getsize(text) * (1 - skipped / len(moments))
    print(json.dumps({
        "rate": size / 1e6 / seconds,
        "memory": memory(resource.RUSAGE_SELF),
        "worker": memory(resource.RUSAGE_CHILDREN),
    }))
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("texts", help="glob pattern of UTF-8 text files")
    parser.add_argument("--vocab", default="examples/albert_micro_zh/vocab.txt")
    parser.add_argument("--megabytes", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--memory", action="store_true", help="memory for 10 MB and 1 GB, not the speed"
    )
    arguments = parser.parse_args()
    # With fewer blocks of 4 MB the workers would only start and stop.
    least = 8 * len(os.sched_getaffinity(0))
    if arguments.megabytes < least and not arguments.memory:
        parser.error(f"--megabytes must be at least {least} on these cores")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        if arguments.memory:
            compare_memory(arguments, folder)
            return
        text = write_text(arguments.texts, arguments.megabytes, folder)
        compare(text, arguments.vocab, arguments.rounds, folder)


def write_text(pattern, megabytes, folder):
    """Write the files' text, repeated up to the given size; return the path."""
    files = sorted(glob.glob(pattern, recursive=True))
    content = b"\n\n".join(pathlib.Path(file).read_bytes() for file in files)
    path = folder / f"{megabytes}.txt"
    with open(path, "wb") as file:
        while file.tell() < megabytes * 1_000_000:
            file.write(content + b"\n\n")
            file.truncate(min(file.tell(), megabytes * 1_000_000))
            file.seek(0, os.SEEK_END)
    return path


def compare(text, vocabulary, rounds, folder):
    cores = len(os.sched_getaffinity(0))
    rates = collections.defaultdict(list)
    for turn in range(rounds):
        rates["jieba alone, one core"].append(measure(JIEBA, text)["rate"])
        for workers in sorted({1, cores}):
            output = folder / f"{workers}-{turn}"
            result = measure(RECORDS, text, vocabulary, output, workers)
            title = "one core" if workers == 1 else f"{workers} cores"
            rates[f"records, {title}"].append(result["rate"])
    rows = {name: {"MB/s": statistics.median(x)} for name, x in rates.items()}
    megabytes = os.path.getsize(text) / 1e6
    write("pretrain_data", {"megabytes": megabytes, "rounds": rounds, "rows": rows})


def write(name, values):
    # Imported last, so that the processes measured have the memory to themselves.
    from benchmarks.lib.harness import console, table_of, write_results

    console.print(table_of(values["rows"], list(next(iter(values["rows"].values())))))
    write_results(name, values)


def compare_memory(arguments, folder):
    rows = {}
    cores = len(os.sched_getaffinity(0))
    for title, megabytes in (("10 MB of text", 10), ("1 GB of text", 1000)):
        text = write_text(arguments.texts, megabytes, folder)
        output = folder / f"memory-{megabytes}"
        peaks = measure(RECORDS, text, arguments.vocab, output, cores)
        rows[title] = {
            "process, MB": peaks["memory"] / 1e6,
            "largest worker, MB": peaks["worker"] / 1e6,
        }
        subprocess.run(["rm", "-rf", str(output), str(text)], check=True)
    write("pretrain_data_memory", {"workers": cores, "rows": rows})


def measure(code, *arguments):
    # A file rather than `-c`, because the workers import it.
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".py") as script:
        script.write(code)
        script.flush()
        done = subprocess.run(
            [sys.executable, script.name, *map(str, arguments)],
            check=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    main()
