"""Values of pages that are computed from the results of the benchmarks."""

import json
import re
import statistics

from benchmarks.lib.paths import KNOWN_MODELS
from benchmarks.pages import accuracy_tables

# Results of `benchmarks/speed/classify.py` that pages show.
CLASSIFIED = (
    "classify_lcqmc_albert_tiny_zh",
    "classify_chnsenticorp_albert_tiny_zh",
    "classify_long_albert_tiny_zh",
    "classify_lcqmc_albert_base_zh",
)
JOBS = ("predict", "fit")
OURS, OURS_BFLOAT16 = "albert-tf", "albert-tf, bfloat16"
IMPORTS = ("tensorflow", "tensorflow_text", "keras_hub")
# Units of processors for matrix products, the newest first, by flag.
UNITS = {
    "amx_bf16": "AMX",
    "avx512_bf16": "AVX512-BF16",
    "avx512f": "AVX-512",
    "avx2": "AVX2",
}
SPLITS = {"test": "测试集", "dev": "开发集"}


def computed(results):
    """Return the computed values by name, for the templates of figures and tables."""
    engines = by_engine(results)
    imports = [results["start"][f"import {x}"]["seconds"] for x in IMPORTS]
    gain = results["pretraining_gain"]["rows"]
    return {
        "accuracy": accuracies(results),
        "avx2": {file: avx2(results[f"{file}_avx2"]) for file in CLASSIFIED},
        "baseline": baselines(results),
        "by_engine": engines,
        "imports": sum(imports),
        "in_short": ratios_in_short(results["classify_lcqmc_albert_tiny_zh"]),
        "int8_rows": int8_rows(results["int8"]),
        "known_models": known_models(results["one_core"]["rows"]),
        "machines": {
            name: machine(file["machine"])
            for name, file in results.items()
            if "machine" in file
        },
        "mean": {
            name: {x: statistics.mean(y) for x, y in row.items()}
            for name, row in gain.items()
        },
        # For a million reviews.
        "million_minutes": 1e6 / engines["ONNX Runtime int8"]["chnsenticorp"] / 60,
        "pretrain_rates": pretrain_rates(results["pretrain_data"]["rows"]),
        "speeds": {file: speeds(results[file]) for file in CLASSIFIED},
        "read_billion": read_billion(results["bundled_training"]),
        "spread": spreads(results),
        # The Chinese unit of large numbers.
        "trained_yi": 10 * results["bundled_training"]["pretraining"]["billion tokens"],
    }


# === Speed ===


def speeds(file):
    """Return the speed relative to KerasHub as text, by job and engine."""
    return {
        job: {engine: _speed(engine, file[job]) for engine in file[job]} for job in JOBS
    }


def _speed(engine, rows):
    """Return the ratio of an engine, its smallest and its largest.

    That of transformers is in bold where it is faster than `fit` or `predict` of Keras
    in the same precision.
    """
    row = rows[engine]
    text = f"{row['ratio']:.1f}"
    ours = rows[OURS_BFLOAT16 if "bfloat16" in engine else OURS]
    if engine.startswith("transformers") and row["ratio"] > ours["ratio"]:
        text = f"**{text}**"
    return f"{text} ({row['smallest']:.1f}, {row['largest']:.1f})"


def ratios_in_short(file):
    """Return the ratios to KerasHub as text, by job and engine."""
    texts = {}
    for job in JOBS:
        ratios = {engine: f"{row['ratio']:.1f}" for engine, row in file[job].items()}
        # Without units for bfloat16, it is not measured.
        texts[job] = {OURS_BFLOAT16: "–", **ratios}
    return texts


def avx2(file):
    """Return the speed of Keras relative to transformers, by job."""
    peers = {"predict": "transformers, sorted", "fit": "transformers"}
    return {
        job: file[job][OURS]["examples/s"] / file[job][peer]["examples/s"]
        for job, peer in peers.items()
    }


def by_engine(results):
    """Return per engine the texts per second by data, and the ms of one text."""
    engines = {}
    for data in ("lcqmc", "chnsenticorp", "long"):
        rows = results[f"classify_{data}_albert_tiny_zh"]["predict"]
        for engine, row in rows.items():
            engines.setdefault(engine, {})[data] = row["examples/s"]
    for engine, row in results["latency_albert_tiny_zh"]["rows"].items():
        name = OURS if engine == "albert-tf predict" else engine
        engines.setdefault(name, {})["ms"] = row["ms"]
    return engines


def int8_rows(file):
    """Return the rows of all models in one dict."""
    return {
        f"{model}: {name}": row
        for model, job in file["jobs"].items()
        for name, row in job["rows"].items()
    }


def pretrain_rates(rows):
    """Return the MB/s of each row, and its ratio to jieba alone."""
    alone = rows["jieba alone, one core"]["MB/s"]
    return {
        name: {"MB/s": row["MB/s"], "to jieba": row["MB/s"] / alone}
        for name, row in rows.items()
    }


def spreads(results):
    """Return the smallest and the largest of several values."""
    classified = [results[file] for file in CLASSIFIED]
    rates = [job["matrix_gflops"] for x in classified for job in x["jobs"].values()]
    gains = [
        file["predict"]["ONNX Runtime int8"]["ratio"]
        / file["predict"]["ONNX Runtime float32"]["ratio"]
        for file in classified
    ]
    convert = results["convert"]
    memory = [
        convert["megabytes"] / 1e3 * row["memory / file"]
        for name, row in convert["rows"].items()
        if name != "numpy"
    ]
    values = {"int8": gains, "matrix_gflops": rates, "convert": memory}
    for engine, row in results["fit_accuracy"]["rows"].items():
        seeds = [y for x, y in row.items() if x.startswith("seed")]
        values[f"fit_accuracy of {engine}"] = seeds
    return {x: {"smallest": min(y), "largest": max(y)} for x, y in values.items()}


def machine(found):
    """Return the processor and its newest units in both languages."""
    processor = re.sub(r"\(R\)| Processor", "", found["processor"])
    english = f"{found['cores']} cores of an {processor}"
    chinese = f"{processor} 的 {found['cores']} 个核心"
    units = [name for flag, name in UNITS.items() if flag in found["flags"]]
    if units:
        english += f" with {units[0]}"
        chinese += f"（{units[0]}）"
    return {"english": english, "chinese": chinese}


def read_billion(training):
    """Return the billions of tokens that both pretraining runs read."""
    return sum(training[x]["billion tokens"] for x in ("pretraining", "continued"))


# === Accuracy ===


def accuracies(results):
    """Return the mean score of our model by data set and labels."""
    means = {}
    for name in accuracy_tables.DATA:
        for size in accuracy_tables.LABELS:
            if values := accuracy_tables.scores(results, name, size):
                means[f"{name}, {size}"] = statistics.mean(values)
    return means


def baselines(results):
    """Return the score of the best baseline by data set and labels."""
    best = {}
    for key in results["pretraining_gain"]["rows"]:
        name, size = key.rsplit(", ", 1)
        if baseline := accuracy_tables.best_baseline(results, name, size):
            best[key], _ = baseline
    return best


def read_known_models():
    return json.loads(KNOWN_MODELS.read_text("utf-8"))


def known_models(times):
    """Return the published models with the milliseconds of their shape."""
    known = read_known_models()
    return {
        name: {
            **model,
            "ms": times[name]["ms"],
            "url": known["pages"][model["page"]],
            "split in Chinese": SPLITS[model["split"]],
        }
        for name, model in known["models"].items()
    }
