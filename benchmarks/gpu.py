"""Compare the speed on a GPU with transformers: fine-tuning, prediction, pretraining.

    python benchmarks/gpu.py [--rows "fit albert_base_zh"] [--output FILE] [--quick]

Runs Keras on JAX, and transformers on PyTorch with `torch.compile` and PyTorch's fused
attention, both in bfloat16 with weights of 32 bits (for `predict`, those of
transformers have 16). Weights and ids are random. The script needs no files and no
TensorFlow, which is hidden if installed: NumPy, JAX, Keras, KerasHub, PyTorch and
transformers.

`AlbertTextClassifier` needs TensorFlow, so `fit` and `predict` are those of a
`keras.Model` of the backbone and a dense layer, on arrays of one padded length per
batch: sequences as long as LCQMC's pairs (padded to 32 or 64 tokens) or of 512 tokens,
the same for both engines. `pretrain` is the function that `albert-tf pretrain` calls on
JAX, with its batches, masks and 25 steps per call, on sequences of 512 tokens.
transformers has its masks before, and scores the vocabulary at every position.

Each row runs in its own process, so that one that fails costs no other. `tokens/s` does
not count padding. `share` is the part of the GPU's peak that the matrix products of the
model reach, those of padding and of positions without a mask not counted. What the
first round takes longer, mostly to compile, is in `compile_seconds` only. Engines
besides `albert-tf`: `fused` with `AttentionBlock.fuses_on_jax`, `lamb` with the default
optimizer of `albert-tf pretrain`; the others train with AdamW.
"""

import argparse
import concurrent.futures
import functools
import importlib.metadata
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

import gpu_engines
from gpu_engines import BASE, FUSED, LAMB, MICRO, OURS, THEIRS, TINY

# Measured are machines without TensorFlow. Its import takes seconds.
sys.modules.update(dict.fromkeys(("tensorflow", "tensorflow_text")))
os.environ["KERAS_BACKEND"] = "jax"

# TFLOP/s of dense matrix products in bfloat16, of the SXM cards.
PEAKS = {"H100": 989.0, "H200": 989.0}
# Job, size, length and engine. The last rows are left out when the time is over.
ROWS = (
    *(("pretrain", BASE, "512", engine) for engine in (THEIRS, OURS, FUSED)),
    *(("pretrain", MICRO, "512", engine) for engine in (THEIRS, OURS)),
    *(
        (job, size, length, engine)
        for size in (BASE, TINY)
        for job in ("fit", "predict")
        for length in ("512", "lcqmc")
        for engine in (THEIRS, OURS)
    ),
    *((job, BASE, "512", FUSED) for job in ("fit", "predict")),
    ("pretrain", MICRO, "512", FUSED),
    ("pretrain", BASE, "512", LAMB),
)
NAMES = {" ".join(row): row for row in ROWS}
COLUMNS = ("tokens/s", "ratio", "share", "gigabytes", "compile_seconds", "error")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = pathlib.Path(__file__).parent / "results" / "gpu.json"
    parser.add_argument("--output", type=pathlib.Path, default=default)
    parser.add_argument("--rows", nargs="+", help="parts of the names of rows to run")
    parser.add_argument("--batches", type=int, default=64, help="per round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=8.0, help="of all rows")
    parser.add_argument("--row-seconds", type=float, default=120.0, help="limit of one")
    parser.add_argument("--peak-tflops", type=float, help="default: by the GPU's name")
    parser.add_argument("--quick", action="store_true", help="tiny sizes on a CPU")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.batches, arguments.rounds, arguments.row_seconds = 2, 1, 480.0
    if arguments.child:
        run_rows(arguments.child, arguments)
    else:
        run_all(arguments)


def run_all(arguments):
    """Run the rows in processes and write the results after each."""
    from albert_tf.files import write_json

    from harness import console, shown

    wanted = arguments.rows or [""]
    names = [name for name in NAMES if any(x in name for x in wanted)]
    gpu = describe_gpu()
    peak = arguments.peak_tflops or next(
        (peak for name, peak in PEAKS.items() if name in (gpu or "")), None
    )
    groups = [[name] for name in names]
    if arguments.quick:
        # A process per library, because imports and compiling take most of the time.
        os.environ |= {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1", "OMP_NUM_THREADS": "1"}
        theirs = [name for name in names if name.endswith(THEIRS)]
        groups = [[x for x in names if x not in theirs], theirs]
    results = {
        "gpu": gpu,
        "peak_tflops": peak,
        "versions": versions(),
        "settings": {x: y for x, y in vars(arguments).items() if x != "output"},
        "batch_tokens": gpu_engines.BATCH_TOKENS,
        "rows": {},
    }
    end = time.monotonic() + 60 * arguments.minutes
    run = functools.partial(run_process, arguments=arguments, end=end)
    threads = concurrent.futures.ThreadPoolExecutor(
        len(groups) if arguments.quick else 1
    )
    for found in threads.map(run, filter(None, groups)):
        results["rows"] |= found
        add_rates(results["rows"], peak, arguments)
        write_json(arguments.output, results)
        for name in found:
            cells = ((x, results["rows"][name].get(x)) for x in COLUMNS)
            told = [f"{x} {shown(y)}" for x, y in cells if y is not None]
            console.print(f"{name}: {', '.join(told)}", soft_wrap=True)
    console.print(f"Results written to {arguments.output}")


def run_process(names, arguments, end):
    """Return the results of rows that run in a process of their own."""
    limit = min(arguments.row_seconds, end - time.monotonic())
    if limit < 10:
        return {x: {"error": "Not run: the minutes were over."} for x in names}
    options = ["--batches", arguments.batches, "--rounds", arguments.rounds]
    options += ["--quick"] * arguments.quick
    command = [sys.executable, __file__, *options, "--child", *names]
    try:
        done = subprocess.run(
            [*map(str, command)], capture_output=True, text=True, timeout=limit
        )
        output = done.stdout
        lines = done.stderr.strip().splitlines() or [f"Exit code {done.returncode}."]
        error = lines[-1]
    except subprocess.TimeoutExpired as expired:
        # Bytes, whatever `text` is.
        output = (expired.stdout or b"").decode()
        error = f"Longer than {limit:.0f} seconds."
    found = [json.loads(x) for x in output.splitlines() if x.startswith('{"row"')]
    rows = {row.pop("row"): row for row in found}
    return {name: rows.get(name, {"error": error}) for name in names}


def run_rows(names, arguments):
    """Run rows in this process, and print each as a line of JSON."""
    for name in names:
        row = NAMES[name]
        is_torch = row[-1] == THEIRS
        run = gpu_engines.run_transformers if is_torch else gpu_engines.run_keras
        try:
            (first, *times), tokens, memory = run(row, arguments)
            seconds = statistics.median(times)
            found = {
                "seconds": seconds,
                "all_seconds": times,
                "compile_seconds": first - seconds,
                "tokens": tokens,
                "tokens/s": tokens / seconds,
                "gigabytes": memory and memory / 1e9,
            }
        except Exception as error:
            text = str(error).strip() or "no message"
            found = {"error": f"{type(error).__name__}: {text.splitlines()[0]}"}
        print(json.dumps({"row": name, **found}), flush=True)


def add_rates(rows, peak, arguments):
    """Add the ratio to transformers and the share of the peak to complete rows."""
    for name, row in rows.items():
        if "error" in row:
            continue
        *others, _ = NAMES[name]
        theirs = rows.get(" ".join([*others, THEIRS]), {}).get("tokens/s")
        row["ratio"] = theirs and row["tokens/s"] / theirs
        work = gflop(NAMES[name], row["tokens"], arguments)
        row["share"] = peak and work / row["seconds"] / (1000 * peak)


def gflop(row, tokens, arguments):
    """Return the GFLOP of a round of `tokens` tokens."""
    from harness import forward_gflop

    job, _, length, _ = row
    sizes = gpu_engines.sizes_of(row, arguments.quick)
    if length == "lcqmc":
        lengths = [x for _, y in gpu_engines.batches_of(row, arguments) for x in y]
    else:
        width = gpu_engines.full_length(arguments)
        lengths = [width] * (tokens // width)
    work = sum(forward_gflop(sizes, int(x), int(x)) for x in lengths)
    if job == "pretrain":
        # The head maps masked positions to the embedding width, then the vocabulary.
        head = sizes["embedding_dim"] * (sizes["hidden_dim"] + sizes["vocabulary_size"])
        work += 2 * gpu_engines.MASKED * tokens * head / 1e9
    # Backward is twice forward.
    return work if job == "predict" else 3 * work


def describe_gpu():
    """Return the name and the driver of the GPU, or `None`."""
    command = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        return subprocess.check_output(command, text=True).strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def versions():
    found = {}
    for package in ("jax", "keras", "keras-hub", "torch", "transformers"):
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = None
    return found


if __name__ == "__main__":
    main()
