"""Run all benchmarks and write a table and a plot: `make benchmark`.

    python benchmarks/run_all.py [--assets ../shared] [--quick]

Each script writes `results/NAME.json` and overwrites the previous one. `--report` only
draws the table and the plot from the existing files. For figures to publish, run
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
LEGEND = """\
`ratio` is the median speed over the rounds, relative to the row with ratio 1, with the
smallest and the largest. `cpu_ratio` is the same by processor time. `share` is the rate
of operations relative to that of a matrix product, measured just before and after.
`of KerasHub` is the time relative to KerasHub, and `90%` the 90th percentile.
"""
# Script, its arguments, and additional ones for `--quick`. About half an hour.
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
            ("--size", size, "--data", data, "--examples", count),
            ("--examples", "16", "--rounds", "1"),
        )
        for size, data, count in (
            ("albert_tiny_zh", "lcqmc", "160"),
            ("albert_tiny_zh", "chnsenticorp", "80"),
            ("albert_tiny_zh", "long", "8"),
            ("albert_base_zh", "lcqmc", "12"),
        )
    ),
    *(
        ("pretraining_step.py", ("--size", size), ("--steps", "1", "--rounds", "1"))
        for size in ("albert_micro_zh", "albert_tiny_zh")
    ),
)


def report():
    """Write `results/README.md` and `results/ratios.png` from the existing files."""
    import matplotlib
    from harness import shown

    matplotlib.use("agg")
    from matplotlib import pyplot

    lines, bars = ["# Results", "", LEGEND], {}
    files = {x.stem: json.loads(x.read_text("utf-8")) for x in RESULTS.glob("*.json")}
    for name, found in sorted(files.items()):
        jobs = found.get("jobs") or {"": found}
        for job, part in jobs.items():
            title = " ".join(filter(None, (name, job)))
            lines += _table(title, found, part, shown)
            if job:
                ratios = {engine: row["ratio"] for engine, row in part["rows"].items()}
                bars[title.removeprefix("classify_")] = ratios
    (RESULTS / "README.md").write_text("\n".join(lines), "utf-8")
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


def _table(title, found, part, shown):
    rows = part["rows"]
    columns = list(dict.fromkeys(name for row in rows.values() for name in row))
    machine = found["machine"]
    told = f"{machine['processor']}, {machine['cores']} cores, load {found['load']:.1f}"
    if "matrix_gflops" in part:
        told += f", matrix product at {part['matrix_gflops']:.0f} GFLOP/s"
    yield from (f"## {title}", "", f"{told}.", "")
    yield "| | " + " | ".join(columns) + " |"
    yield "|---" * (len(columns) + 1) + "|"
    for name, row in rows.items():
        cells = (shown(row.get(column)) for column in columns)
        yield f"| {name} | " + " | ".join(cells) + " |"
    yield ""


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
