"""Run all benchmarks, and write the figures of all pages and a plot: `make benchmark`.

    python benchmarks/run_all.py [--assets ../shared] [--quick]

Each script writes `results/NAME.json` and overwrites the previous one. `--report` only
writes the pages and draws the plot from the existing files. For figures to publish, run
nothing else at the same time and name the machine, which each file records.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
RESULTS = HERE / "results"
# Script, its arguments, and additional ones for `--quick`. A quarter of an hour.
RUNS = (
    ("tokenizers_rate.py", (), ("--rounds", "2")),
    ("start.py", (), ("--rounds", "1")),
    *(
        ("latency.py", ("--size", size), ("--calls", "5", "--rounds", "1"))
        for size in ("albert_tiny_zh", "albert_base_zh")
    ),
    *(
        (
            "classify.py",
            ("--size", size, "--data", data, "--examples", count, "--rounds", "2"),
            ("--examples", "16", "--rounds", "1"),
        )
        for size, data, count in (
            ("albert_tiny_zh", "lcqmc", "96"),
            ("albert_tiny_zh", "chnsenticorp", "24"),
            ("albert_tiny_zh", "long", "8"),
            ("albert_base_zh", "lcqmc", "8"),
        )
    ),
    *(
        ("pretraining_step.py", ("--size", size), ("--steps", "1", "--rounds", "1"))
        for size in ("albert_micro_zh", "albert_tiny_zh")
    ),
)


def report():
    """Write the figures of all pages and `results/ratios.png` from the results."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    subprocess.run(
        [sys.executable, str(HERE.parent / "scripts/figures.py")], check=True
    )
    bars = {}
    for file in sorted(RESULTS.glob("classify_*.json")):
        for job, part in json.loads(file.read_text("utf-8"))["jobs"].items():
            ratios = {engine: row["ratio"] for engine, row in part["rows"].items()}
            bars[f"{file.stem.removeprefix('classify_')} {job}"] = ratios
    if not bars:
        return
    engines = sorted({engine for ratios in bars.values() for engine in ratios})
    figure, axes = pyplot.subplots(figsize=(8, 0.8 * len(bars) + 1.5))
    height = 0.8 / len(engines)
    for i, engine in enumerate(engines):
        places = [y + i * height for y in range(len(bars))]
        widths = [ratios.get(engine, 0) for ratios in bars.values()]
        axes.barh(places, widths, height, label=engine)
    axes.set_yticks([y + 0.4 for y in range(len(bars))], list(bars))
    axes.set_xlabel("times as fast as KerasHub")
    axes.legend()
    figure.tight_layout()
    figure.savefig(RESULTS / "ratios.png", dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = os.environ.get("ALBERT_TF_ASSETS", "../shared")
    parser.add_argument("--assets", default=default, help="folder with the data")
    parser.add_argument("--quick", action="store_true", help="few texts and rounds")
    parser.add_argument("--report", action="store_true", help="only draw results")
    arguments = parser.parse_args()
    environment = {**os.environ, "ALBERT_TF_ASSETS": arguments.assets}
    failed = []
    for script, usual, quick in () if arguments.report else RUNS:
        command = [sys.executable, str(HERE / script), *usual]
        command += quick if arguments.quick else ()
        print(*command[1:], flush=True)
        # A separate process per script, so that none inherits memory from another.
        if subprocess.run(command, env=environment).returncode:
            failed.append(script)
    report()
    if failed:
        sys.exit(f"Failed benchmarks: {', '.join(failed)}")


if __name__ == "__main__":
    main()
