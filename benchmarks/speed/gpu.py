"""Compare the speed on a GPU with transformers: fine-tuning, prediction, pretraining.

    python -m benchmarks.speed.gpu [--rows "fit albert_base_zh"]
        [--output FILE] [--quick]

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

Each row runs in its own process, so that one that fails costs no other. The processes
of a job start and compile at once, and then measure one after another. `tokens/s` does
not count padding. `share` is the part of the GPU's peak that the matrix products of the
model reach, those of padding and of positions without a mask not counted. What the
first round takes longer, mostly to compile beside others, is only in
`compile_seconds`. Engines besides `albert-tf`: `fused` with
`AttentionBlock.fuses_on_jax`, `lamb` with the default optimizer of
`albert-tf pretrain`; the others train with AdamW.
"""

import argparse
import concurrent.futures
import contextlib
import functools
import importlib.metadata
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from benchmarks.lib import gpu_engines
from benchmarks.lib.gpu_engines import BASE, FUSED, LAMB, MICRO, OURS, THEIRS, TINY
from benchmarks.lib.paths import RESULTS

# Measured are machines without TensorFlow. Its import takes seconds.
sys.modules.update(dict.fromkeys(("tensorflow", "tensorflow_text")))
os.environ["KERAS_BACKEND"] = "jax"

# TFLOP/s of dense matrix products in bfloat16, of the SXM cards.
PEAKS = {"H100": 989.0, "H200": 989.0}
LENGTHS = [(size, length) for size in (BASE, TINY) for length in ("512", "lcqmc")]
# Rows (job, size, length and engine) that compile at once, as the memory of an H200
# allows. The last are left out when the time is over.
WAVES = (
    [("pretrain", BASE, "512", engine) for engine in (THEIRS, OURS, FUSED)],
    [
        *(("fit", *row, engine) for row in LENGTHS for engine in (THEIRS, OURS)),
        ("fit", BASE, "512", FUSED),
    ],
    [
        *(("predict", *row, engine) for row in LENGTHS for engine in (THEIRS, OURS)),
        ("predict", BASE, "512", FUSED),
    ],
    [
        *(("pretrain", MICRO, "512", engine) for engine in (THEIRS, OURS, FUSED)),
        ("pretrain", BASE, "512", LAMB),
    ],
)
NAMES = {" ".join(row): row for wave in WAVES for row in wave}
COLUMNS = ("tokens/s", "ratio", "share", "gigabytes", "compile_seconds", "error")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=pathlib.Path, default=RESULTS / "gpu.json")
    parser.add_argument("--rows", nargs="+", help="parts of the names of rows to run")
    parser.add_argument("--batches", type=int, default=64, help="per round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=8.0, help="of all rows")
    parser.add_argument("--row-seconds", type=float, default=120.0, help="limit of one")
    parser.add_argument("--peak-tflops", type=float, help="default: by the GPU's name")
    parser.add_argument("--quick", action="store_true", help="tiny sizes on a CPU")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.batches, arguments.rounds, arguments.row_seconds = 2, 1, 480.0
    if arguments.child:
        run_row(arguments.child, arguments)
    else:
        run_all(arguments)


def run_all(arguments):
    """Run the rows in processes and write the results after each wave."""
    from albert_tf.files import write_json

    from benchmarks.lib.cells import shown
    from benchmarks.lib.harness import console

    gpu = describe_gpu()
    peak = arguments.peak_tflops or known_peak(gpu)
    # Each process of JAX would take three quarters of the GPU's memory.
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    if arguments.quick:
        os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"
        os.environ["OMP_NUM_THREADS"] = "1"
    settings = dict(vars(arguments))
    del settings["output"]
    results = {
        "gpu": gpu,
        "peak_tflops": peak,
        "versions": versions(),
        "settings": settings,
        "batch_tokens": gpu_engines.BATCH_TOKENS,
        "rows": {},
    }
    end = time.monotonic() + 60 * arguments.minutes
    for wave in WAVES:
        names = [" ".join(row) for row in wave]
        if arguments.rows:
            names = [x for x in names if any(part in x for part in arguments.rows)]
        results["rows"].update(run_wave(names, arguments, end))
        add_rates(results["rows"], peak, arguments)
        write_json(arguments.output, results)
        for name in names:
            row = results["rows"][name]
            cells = [
                f"{column} {shown(row[column])}"
                for column in COLUMNS
                if row.get(column) is not None
            ]
            console.print(f"{name}: {', '.join(cells)}", soft_wrap=True)
    console.print(f"Results written to {arguments.output}")


def known_peak(gpu):
    """Return the TFLOP/s of a GPU, `None` if they are unknown."""
    for name, peak in PEAKS.items():
        if gpu is not None and name in gpu:
            return peak
    return None


def run_wave(names, arguments, end):
    """Return the results of rows that compile at once and measure in turn."""
    if not names:
        return {}
    compiled = threading.Barrier(len(names))
    turn = threading.Lock()
    run = functools.partial(
        run_process, arguments=arguments, end=end, compiled=compiled, turn=turn
    )
    with concurrent.futures.ThreadPoolExecutor(len(names)) as threads:
        return dict(zip(names, threads.map(run, names), strict=True))


def run_process(name, arguments, end, compiled, turn):
    """Return the results of a row that runs in a process of its own."""
    options = ["--batches", arguments.batches, "--rounds", arguments.rounds]
    if arguments.quick:
        options.append("--quick")
    command = [sys.executable, "-m", "benchmarks.speed.gpu", *map(str, options)]
    command += ["--child", name]
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as errors,
        subprocess.Popen(command, stderr=errors, **streams) as child,
    ):
        # `row_seconds` to compile, and as many to measure.
        with killed_after(child, arguments.row_seconds, end):
            output = child.stdout.readline()
        compiled.wait()
        if output == gpu_engines.READY:
            with turn, killed_after(child, arguments.row_seconds, end):
                output, _ = child.communicate("\n")
        if output.startswith("{"):
            return json.loads(output)
        child.kill()
        if child.wait() == -signal.SIGKILL:
            return {"error": "It took too long, or the minutes were over."}
        errors.seek(0)
        return {"error": ([*errors] or [f"Exit code {child.returncode}."])[-1].strip()}


@contextlib.contextmanager
def killed_after(child, seconds, end):
    """Kill a process after some seconds, and at the time `end`."""
    timer = threading.Timer(max(0, min(seconds, end - time.monotonic())), child.kill)
    timer.start()
    yield
    timer.cancel()


def run_row(name, arguments):
    """Run a row in this process, and print its results as JSON."""
    is_torch = NAMES[name][-1] == THEIRS
    run = gpu_engines.run_transformers if is_torch else gpu_engines.run_keras
    try:
        with contextlib.redirect_stdout(sys.stderr):
            (first, *times), tokens, memory = run(NAMES[name], arguments)
        seconds = statistics.median(times)
        results = {
            "seconds": seconds,
            "all_seconds": times,
            "compile_seconds": first - seconds,
            "tokens": tokens,
            "tokens/s": tokens / seconds,
            "gigabytes": memory / 1e9 if memory else None,
        }
    except Exception as error:
        text = str(error).strip() or "no message"
        results = {"error": f"{type(error).__name__}: {text.splitlines()[0]}"}
    print(json.dumps(results), flush=True)


def add_rates(rows, peak, arguments):
    """Add the ratio to transformers and the share of the peak to complete rows."""
    for name, row in rows.items():
        if "error" in row:
            continue
        *others, _ = NAMES[name]
        theirs = rows.get(" ".join([*others, THEIRS]), {}).get("tokens/s")
        row["ratio"] = row["tokens/s"] / theirs if theirs else None
        work = gflop(NAMES[name], row["tokens"], arguments)
        row["share"] = work / row["seconds"] / (1000 * peak) if peak else None


def gflop(row, tokens, arguments):
    """Return the GFLOP of a round of `tokens` tokens."""
    from benchmarks.lib.harness import forward_gflop

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
