"""Timing, machine information and result files shared by the benchmarks."""

import importlib.metadata
import importlib.util
import os
import pathlib
import platform
import statistics
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from albert_tf.files import write_json
from albert_tf_lite.cpus import available_cpus
import keras
import keras_hub
from rich.console import Console
from rich.table import Table

from benchmarks.lib.cells import shown
from benchmarks.lib.paths import RESULTS

console = Console(highlight=False)


def timed(job):
    """Run a job; return its wall clock and processor seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    job()
    return time.perf_counter() - wall, time.process_time() - cpu


def in_turn(jobs, rounds, timed=timed):
    """Time the jobs in turn; return a list of (wall, processor) seconds per job.

    Every round runs each job once, so that other load on the machine affects all jobs
    alike. An uncounted warm-up run comes first. Other processes hardly affect processor
    time, but it is only comparable between single-threaded jobs. Jobs that run in
    another process are timed there: `timed` then only calls them.
    """
    times = {name: [] for name in jobs}
    for job in jobs.values():
        timed(job)
    for number in range(rounds):
        for name, job in jobs.items():
            times[name].append(timed(job))
        last = ", ".join(f"{name} {times[name][-1][0]:.3g} s" for name in times)
        console.print(f"  round {number + 1}: {last}")
    return times


def compared(times, to):
    """Compute the median seconds of each job and its speed relative to the job `to`.

    The ratio is the median over the rounds; the smallest and largest are also returned.
    """
    rows = {}
    for name, spent in times.items():
        ratios, cpu_ratios = [], []
        for (wall, cpu), (other_wall, other_cpu) in zip(spent, times[to], strict=True):
            ratios.append(other_wall / wall)
            cpu_ratios.append(other_cpu / cpu)
        rows[name] = {
            "seconds": statistics.median(wall for wall, _ in spent),
            "ratio": statistics.median(ratios),
            "smallest": min(ratios),
            "largest": max(ratios),
            "cpu_ratio": statistics.median(cpu_ratios),
        }
    return rows


def matrix_rate():
    """Measure the GFLOP/s of a matrix product, the machine's current upper limit."""
    import tensorflow as tf

    size = 1024
    a = tf.random.stateless_normal([size, size], [1, 2])
    product = tf.function(lambda a: tf.linalg.matmul(a, a))
    product(a).numpy()
    times, end = [], time.perf_counter() + 1.0
    while time.perf_counter() < end or len(times) < 3:
        start = time.perf_counter()
        product(a).numpy()
        times.append(time.perf_counter() - start)
    return 2 * size**3 / statistics.median(times) / 1e9


def forward_gflop(sizes, tokens, length):
    """Return the billions of operations of the encoder for `tokens` tokens.

    Counts matrix products only, 2 operations per multiply-add: the embedding projection
    and, in each layer, four projections of attention, two products of its scores
    (proportional to the text `length`) and two of the feed-forward half.
    """
    hidden = sizes["hidden_dim"]
    layer = 4 * hidden**2 + 2 * length * hidden + 2 * hidden * sizes["intermediate_dim"]
    projection = sizes["embedding_dim"] * hidden
    return 2 * tokens * (sizes["num_layers"] * layer + projection) / 1e9


def machine():
    """Describe the processor, the GPUs and the package versions as a dict."""
    import tensorflow as tf

    flags = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16", "amx_int8")
    told = pathlib.Path("/proc/cpuinfo")
    lines = told.read_text(encoding="utf-8").splitlines() if told.exists() else []
    fields = dict(line.split(":", 1) for line in reversed(lines) if ":" in line)
    fields = {name.strip(): value.strip() for name, value in fields.items()}
    has = fields.get("flags", "").split()
    return {
        "processor": fields.get("model name", platform.processor()),
        "cores": available_cpus(),
        "flags": [flag for flag in flags if flag in has],
        "gpus": len(tf.config.list_physical_devices("GPU")),
        "python": platform.python_version(),
        "tensorflow": tf.__version__,
        "keras": keras.__version__,
        "keras_hub": keras_hub.__version__,
        **{name: _version(name) for name in ("onnxruntime", "ai-edge-litert")},
    }


def _version(package):
    found = importlib.util.find_spec(package.replace("-", "_"))
    return found and importlib.metadata.version(package)


def load_average():
    """Return the mean number of runnable processes of the last minute, or None."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def write_results(name, values):
    """Write `results/NAME.json`, including the machine and its load."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{name}.json"
    write_json(path, {"machine": machine(), "load": load_average(), **values})
    console.print(f"Results written to {path}")


def table_of(rows, columns):
    """Build a table with one row per name and the given columns."""
    table = Table("", *columns)
    for name, row in rows.items():
        cells = (row.get(column) for column in columns)
        table.add_row(name, *(shown(cell) for cell in cells))
    return table
