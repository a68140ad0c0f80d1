"""Run the scripts of `examples/` whose scores the pages show, and write the scores.

    python -m benchmarks.quality.example_scores [--only distillation ...]

Each script runs in a process without arguments: one run from examples/albert_micro_zh
with seed 1. The scores are read from its output. `--only` keeps the other scores of
`results/examples.json`. They depend on the processor in the last digits.
"""

import argparse
import json
import re
import subprocess
import sys

from benchmarks.lib.paths import EXAMPLES, RESULTS

NUMBER = r"([\d.,]+)"
# By script: parts of its output, and the names of the numbers in it.
SCORES = {
    "sentence_embeddings": {
        f"accuracy before {NUMBER}, after {NUMBER}, TF-IDF of characters {NUMBER}": (
            "before",
            "after",
            "baseline",
        )
    },
    "spelling_correction": {f"correction_f1 {NUMBER}": ("after",)},
    "summarization": {
        f"model .*?rouge_l {NUMBER}": ("after",),
        f"TF-IDF centroid .*?rouge_l {NUMBER}": ("baseline",),
        f"first sentence .*?rouge_l {NUMBER}": ("first sentence",),
    },
    "distillation": {
        f"teacher  accuracy {NUMBER}": ("teacher",),
        f"before  accuracy {NUMBER}  agreement {NUMBER}": (
            "before",
            "agreement before",
        ),
        f"after  accuracy {NUMBER}  agreement {NUMBER}": ("after", "agreement"),
        f"{NUMBER} of {NUMBER} parameters": ("parameters", "of teacher"),
    },
    "multiple_choice": {
        f"accuracy {NUMBER} of .*? by chance {NUMBER}": ("after", "baseline")
    },
    "question_answering": {
        f"ALBERT  EM {NUMBER}  F1 {NUMBER}": ("exact match, %", "after, F1 in %"),
        f"first characters  EM .*?F1 {NUMBER}": ("baseline, F1 in %",),
    },
}


def scores_of(name):
    """Run a script and return its scores."""
    command = [sys.executable, str(EXAMPLES / f"{name}.py")]
    printed = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ).stdout
    row = {}
    for pattern, names in SCORES[name].items():
        match = re.search(pattern, printed)
        if not match:
            sys.exit(f"{name}.py: no {pattern!r} in its output:\n{printed}")
        for score, text in zip(names, match.groups(), strict=True):
            row[score] = float(text.rstrip(".,").replace(",", ""))
    if name == "distillation":
        row["times as large"] = row.pop("of teacher") / row.pop("parameters")
    if name == "spelling_correction":
        # Whoever changes nothing.
        row["baseline"] = 0.0
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=SCORES, default=list(SCORES))
    names = parser.parse_args().only

    from benchmarks.lib.harness import console, write_results

    path = RESULTS / "examples.json"
    rows = json.loads(path.read_text("utf-8"))["rows"] if path.exists() else {}
    for name in names:
        rows[name] = scores_of(name)
        console.print(name, rows[name])
    write_results("examples", {"rows": {x: rows[x] for x in SCORES if x in rows}})


if __name__ == "__main__":
    main()
