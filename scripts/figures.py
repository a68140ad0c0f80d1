"""Write the figures of README, docs and cards from their sources: `make figures`.

    python scripts/figures.py [--check]

In a page, `<!-- =NAME -->0.45<!-- -->` is a figure, whose source is in
`benchmarks/figures.toml`. `<!-- table NAME -->` and `<!-- end -->` enclose a table or
another generated text. `benchmarks/plots.py` has the plots. `--check` writes nothing
and fails if a page or a plot is stale; `make lint` runs it.
"""

import argparse
import json
import pathlib
import re
import statistics
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path += [str(ROOT), str(ROOT / "benchmarks")]

import generated_texts  # noqa: E402
import page_tables  # noqa: E402
import paper_page  # noqa: E402
import plots  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results"
IMPORTS = ("tensorflow", "tensorflow_text", "keras_hub")
# Units of processors for matrix products, the newest first, by flag.
UNITS = {
    "amx_bf16": "AMX",
    "avx512_bf16": "AVX512-BF16",
    "avx512f": "AVX-512",
    "avx2": "AVX2",
}
PAGES = ("*.md", "albert_tf_lite/*.md", "benchmarks/**/*.md", "docs/**/*.md")
PAGES += ("examples/**/*.md",)
FIGURE = re.compile(r"<!-- =(\w+) -->.*?<!-- -->", re.DOTALL)
TABLE = re.compile(r"(<!-- table (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
# Such a line is HTML to GitHub, and its Markdown would be shown as written.
AT_START = re.compile(r"^[ \t>*-]*<!-- =", re.MULTILINE)


def sources():
    """Return what figures and tables are written from, by the name of the file."""
    found = {x.stem: json.loads(x.read_text("utf-8")) for x in RESULTS.glob("*.json")}
    gain = found["pretraining_gain"]
    found["pretraining_gain"] = {"rows": _by_data(gain)}
    for name, file in found.items():
        jobs = {x: y["rows"] for x, y in file.get("jobs", {}).items()}
        found[name] = {**file.get("rows", {}), **jobs, **file}
    return found


def _by_data(scores):
    """Return the scores of the seeds by data set and labels, and by classifier."""
    rows = {}
    for key, score in sorted(scores.items()):
        name, size, start, _ = key.split("/")
        rows.setdefault(f"{name}, {size}", {}).setdefault(start, []).append(score)
    return rows


def figures(results):
    """Return the texts of the figures in sentences by their name."""
    values = {**results, **computed(results)}
    templates = tomllib.loads((ROOT / "benchmarks/figures.toml").read_text("utf-8"))
    return {name: template.format(**values) for name, template in templates.items()}


def computed(results):
    """Return what is computed from the results, and from other files."""
    classified = [results[x] for x in page_tables.CLASSIFIED]
    rates = [job["matrix_gflops"] for x in classified for job in x["jobs"].values()]
    pairs = [x["predict"] for x in classified]
    gains = [
        x["ONNX Runtime int8"]["ratio"] / x["ONNX Runtime float32"]["ratio"]
        for x in pairs
    ]
    start, convert = results["start"], results["convert"]
    memory = [
        convert["megabytes"] / 1e3 * row["memory / file"]
        for name, row in convert["rows"].items()
        if name != "numpy"
    ]
    trained = results["bundled_training"]
    imports = [start[f"import {x}"]["seconds"] for x in IMPORTS]
    seeds = {
        name: {x: y for x, y in row.items() if x.startswith("seed")}.values()
        for name, row in results["fit_accuracy"]["rows"].items()
    }
    return {
        "accuracy": {
            f"{name}, {size}": statistics.mean(scores)
            for name in page_tables.DATA
            for size in page_tables.SIZES
            if (scores := page_tables.scores(results, name, size))
        },
        "baseline": {
            name: best[0]
            for name in results["pretraining_gain"]["rows"]
            if (best := page_tables.best_baseline(results, *name.rsplit(", ", 1)))
        },
        "spread": {
            "int8": _spread(gains),
            "matrix_gflops": _spread(rates),
            "convert": _spread(memory),
            **{f"fit_accuracy of {x}": _spread(y) for x, y in seeds.items()},
        },
        "mean": {
            name: {x: statistics.mean(y) for x, y in row.items()}
            for name, row in results["pretraining_gain"]["rows"].items()
        },
        "imports": sum(imports),
        # The Chinese unit of large numbers.
        "trained_yi": 10 * trained["pretraining"]["billion tokens"],
        "machines": {
            name: _machine(file["machine"])
            for name, file in results.items()
            if "machine" in file
        },
        "bundled": generated_texts.bundled_checkpoints(),
        "releases": generated_texts.published_scores(),
    }


def _spread(values):
    return {"smallest": min(values), "largest": max(values)}


def _machine(found):
    """Return the processor and its newest units in both languages."""
    processor = re.sub(r"\(R\)| Processor", "", found["processor"])
    units = [name for flag, name in UNITS.items() if flag in found["flags"]][:1]
    english = f"{found['cores']} cores of an {processor}"
    chinese = f"{processor} 的 {found['cores']} 个核心"
    return {
        "english": " with ".join([english, *units]),
        "chinese": chinese + "".join(f"（{x}）" for x in units),
    }


def texts(results):
    """Return the functions of the generated texts: of whether a page is in Chinese."""
    paper = paper_page.tables(RESULTS / "paper")
    made = {
        name: lambda chinese, make=make: make(results, chinese)
        for name, make in page_tables.TABLES.items()
    }
    made |= {name: lambda chinese, x=text: x for name, text in paper.items()}
    return made | generated_texts.TEXTS


def filled(text, is_chinese, known, made):
    """Return a page with its figures and generated texts replaced."""
    if start := AT_START.search(text):
        line = text.count("\n", 0, start.start()) + 1
        raise ValueError(f"line {line} starts with a figure: break it elsewhere")

    def figure(match):
        return f"<!-- ={match[1]} -->{known[match[1]]}<!-- -->"

    def table(match):
        return f"{match[1]}\n{made[match[2]](is_chinese)}\n\n{match[3]}"

    return FIGURE.sub(figure, TABLE.sub(table, text))


def draw_plots(results, is_check):
    """Draw the plots that are stale; return the errors of a check."""
    failed = []
    for name, (show, draw) in plots.PLOTS.items():
        path, shown = ROOT / name, show(results)
        if plots.is_drawn(path, shown):
            continue
        if is_check:
            failed.append(f"{name}: run `make figures`")
        else:
            plots.save(draw(shown), path, shown)
            print(f"{name}: drawn")
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="fail if a page is stale")
    arguments = parser.parse_args()
    results = sources()
    known, made = figures(results), texts(results)
    failed = draw_plots(results, arguments.check)
    for page in sorted({x for pattern in PAGES for x in ROOT.glob(pattern)}):
        name, text = page.relative_to(ROOT), page.read_text("utf-8")
        try:
            new = filled(text, page.name.endswith(".zh.md"), known, made)
        except (KeyError, ValueError) as error:
            failed.append(f"{name}: {error}")
            continue
        if new == text:
            continue
        if arguments.check:
            pairs = zip(text.splitlines(), new.splitlines(), strict=False)
            old, line = next((x for x in pairs if x[0] != x[1]), ("", "more lines"))
            failed.append(f"{name}: run `make figures`\n- {old}\n+ {line}")
        else:
            page.write_text(new, "utf-8")
            print(f"{name}: written")
    if failed:
        sys.exit("\n".join(failed))


if __name__ == "__main__":
    main()
