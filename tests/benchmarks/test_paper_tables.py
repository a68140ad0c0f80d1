"""The small repetition of the paper's tables: its runs, scores and page."""

import json

import numpy as np
import pytest
from made_records import write
from processes import run_python

from benchmarks.pages import paper_page

SCRIPT = "from benchmarks.quality.paper_tables import main; main()"
OPTIONS = ("--steps", 4, "--batch-tokens", 448, "--steps-per-call", 2)
OPTIONS += ("--intervals", 2)


@pytest.mark.nightly
def test_runs_are_pretrained_scored_and_shown(tmp_path):
    pytest.importorskip("jax")
    train, dev = write(tmp_path / "train"), write(tmp_path / "dev", 60, 1, seed=9)
    out = tmp_path / "runs"
    command = ("--records", train, "--output", out, *OPTIONS, "--runs")

    def pretrain(*names):
        return run_python(SCRIPT, *command, *names, KERAS_BACKEND="jax")

    # A run that takes too long is left, and the next one starts.
    late = run_python(SCRIPT, *command, "none", "--minutes", 1e-6, KERAS_BACKEND="jax")
    assert "none: Interrupted at step 2 of 4" in late and not [*out.glob("*.json")]
    pretrain("none", "dropout")
    before = (out / "dropout.json").read_bytes()
    pretrain("dropout", "nsp")
    assert (out / "dropout.json").read_bytes() == before
    assert not [*out.glob("*.state")]
    with np.load(out / "nsp.npz") as weights:
        kinds = {weights[x].dtype.name for x in weights.files if x != "config"}
    assert kinds == {"float16"}

    run_python(SCRIPT, "--score", "--dev", dev, "--output", out)
    found = {x.stem: json.loads(x.read_text()) for x in out.glob("*.json")}
    assert found.keys() == {"none", "dropout", "nsp"}
    for run in found.values():
        assert run["tokens"] <= run["padded_tokens"] == 4 * 448
        assert run["scores"].keys() == {"sop", "nsp", "ngrams", "tokens"}
    assert len({run["tokens"] for run in found.values()}) == 1
    tables = paper_page.tables(out)
    row = tables["dropout"].splitlines()[-1].split(" | ")
    assert float(row[3]) == round(100 * found["dropout"]["scores"]["ngrams"], 1)
    assert tables["dropout"].splitlines()[-2].count("not measured") == 6
