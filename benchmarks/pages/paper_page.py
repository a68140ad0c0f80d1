"""The tables of docs/about/paper_tables.md, from the results: `make figures`.

The paper's figures are those of arXiv 1909.11942v6. Cells without results are "not
measured".
"""

import json
import statistics

from benchmarks.lib.paths import RESULTS

# Rows of the tables: what differs, the run, and figures of the paper.
EMBEDDING = (
    ("64", "e64"),
    ("128", "base"),
    ("320 = H", "e320"),
    ("64, not shared", "e64_not_shared"),
    ("128, not shared", "not_shared"),
    ("320 = H, not shared", "e320_not_shared"),
)
SHARING = (
    ("all", "base"),
    ("attention", "shared_attention"),
    ("feed-forward", "shared_ffn"),
    ("none", "not_shared"),
)
MASKING = (("n-grams of words", "base"), ("single tokens", "single_tokens"))
DROPOUT = (("0", "base"), ("0.1", "dropout"))
# Accuracy in percent on NSP and SOP.
SENTENCES = (
    ("none", "none", 52.4, 53.3),
    ("NSP", "nsp", 90.5, 52.0),
    ("SOP", "base", 78.9, 86.5),
)
# Million parameters, and speed relative to BERT-large.
SPEED = (
    ("BERT-base", 108, 4.7),
    ("BERT-large", 334, 1.0),
    ("ALBERT-base", 12, 5.6),
    ("ALBERT-large", 18, 1.7),
    ("ALBERT-xlarge", 60, 0.6),
)
MISSING = "not measured"
COLUMNS = (
    "M parameters",
    "M tokens/s",
    "masked n-grams",
    "masked tokens",
    "ChnSentiCorp",
    "LCQMC",
)


def tables(folder):
    """Return the text of each table by its name."""
    runs = {x.stem: json.loads(x.read_text("utf-8")) for x in folder.glob("*.json")}
    return {
        "embedding": comparison("E", EMBEDDING, runs),
        "sharing": comparison("shared", SHARING, runs),
        "masking": comparison("masks", MASKING, runs),
        "dropout": comparison("dropout", DROPOUT, runs),
        "sentences": sentences(runs),
        "speed": speed(),
    }


def comparison(title, rows, runs):
    if not any(run in runs for _, run in rows):
        return "Not measured yet."
    return table((title, *COLUMNS), [(x, *cells(runs.get(run))) for x, run in rows])


def cells(run):
    """Return the cells of a run; scores are in percent."""
    if run is None:
        return (MISSING,) * len(COLUMNS)
    scores = run.get("scores", {})
    return (
        f"{run['parameters'] / 1e6:.2f}",
        f"{run['padded_tokens_per_second'] / 1e6:.2f}",
        percent(scores.get("ngrams")),
        percent(scores.get("tokens")),
        spread(test_scores(run, "ChnSentiCorp")),
        spread(test_scores(run, "LCQMC")),
    )


def test_scores(run, data):
    """Return the test scores of a data set in percent, one per seed."""
    scores = run.get("fine_tuned", {})
    return [100 * x for key, x in scores.items() if key.startswith(f"{data}/")]


def sentences(runs):
    rows = []
    for title, name, nsp, sop in SENTENCES:
        run = runs.get(name, {})
        scores = run.get("scores", {})
        ours = (percent(scores.get(x)) for x in ("nsp", "sop"))
        masked, _, *tuned = cells(run)[2:] if run else (MISSING,) * 4
        rows.append((title, nsp, sop, *ours, masked, *tuned))
    columns = ("trained on", "NSP, paper", "SOP, paper", "NSP, ours", "SOP, ours")
    return table((*columns, COLUMNS[2], *COLUMNS[-2:]), rows)


def speed():
    file = RESULTS / "model_sizes.json"
    ours = json.loads(file.read_text("utf-8"))["rows"] if file.exists() else {}
    rows = []
    for name, parameters, ratio in SPEED:
        measured, *others = speed_cells(ours.get(name))
        rows.append((name, parameters, measured, ratio, *others))
    columns = ("M parameters, paper", "ours", "speed, paper", "ours", "by CPU time")
    return table(("", *columns, "sequences/s", "GB"), rows)


def speed_cells(row):
    """Return the cells that a row of the benchmark fills."""
    if row is None:
        return [MISSING] * 5
    return [
        f"{row['parameters'] / 1e6:.1f}",
        f"{row['speedup']:.1f}",
        f"{row['cpu_ratio']:.1f}",
        f"{row['sequences/s']:.2f}",
        f"{row['megabytes'] / 1e3:.1f}",
    ]


def percent(value):
    return MISSING if value is None else f"{100 * value:.1f}"


def spread(values):
    """Return the score of a seed, or the mean with the smallest and the largest."""
    if not values:
        return MISSING
    mean = f"{statistics.mean(values):.1f}"
    if len(values) == 1:
        return mean
    return f"{mean} ({min(values):.1f}, {max(values):.1f})"


def table(columns, rows):
    """Return a table in Markdown."""
    lines = [columns, ("---",) * len(columns), *rows]
    return "\n".join(f"| {' | '.join(map(str, x))} |" for x in lines)
