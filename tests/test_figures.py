"""Figures of README, docs and cards are written from their sources."""

import importlib
import pathlib
import re
import sys

import pytest

from benchmarks.pages.accuracy_tables import best_baseline

ROOT = pathlib.Path(__file__).parents[1]


@pytest.fixture
def figures(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    path = [*sys.path]
    yield importlib.import_module("figures")
    sys.path[:] = path


def filled(figures, name, text, results):
    known, made = figures.figures(results), figures.texts(results)
    return figures.filled(text, name.endswith(".zh.md"), known, made)


@pytest.mark.parametrize("name", ["README.md", "docs/about/benchmarks.zh.md"])
def test_a_changed_digit_of_a_page_is_written_again(figures, name):
    text, results = (ROOT / name).read_text("utf-8"), figures.sources()
    for pattern in (r"<!-- =\w+ -->\d", r"\| \d\.\d"):
        changed = re.sub(pattern, lambda x: x[0][:-1] + "x", text, count=1)
        assert changed != text
        assert filled(figures, name, changed, results) == text


def test_a_changed_result_changes_the_pages_of_both_languages(figures):
    results = figures.sources()
    row = results["classify_lcqmc_albert_tiny_zh"]["predict"]["albert-tf"]
    row["ratio"] += 70
    old, new = f"{row['ratio'] - 70:.1f}", f"{row['ratio']:.1f}"
    for name in ("README", "README.zh"):
        text = (ROOT / f"{name}.md").read_text("utf-8")
        expected = text
        # In the table and in a sentence.
        for before in ("| ", "<!-- =short_predict -->"):
            expected = expected.replace(before + old, before + new, 1)
        assert filled(figures, f"{name}.md", text, results) == expected
        assert expected.count(new) == text.count(new) + 2


def test_a_changed_result_makes_the_plots_stale(figures):
    results = figures.sources()
    scores = results["pretraining_gain"]["rows"]["ChnSentiCorp, all"]
    assert figures.draw_plots(results, is_check=True) == []
    scores["TF-IDF, logistic regression"] = [0.999]
    failed = figures.draw_plots(results, is_check=True)
    assert [x.partition(":")[0] for x in failed] == [*figures.plots.PLOTS]


def test_a_figure_at_the_start_of_a_line_is_refused(figures):
    results = figures.sources()
    with pytest.raises(ValueError, match="line 2 starts with a figure"):
        filled(figures, "a.md", "of\n- <!-- =rounds -->5<!-- -->", results)


def test_the_best_baseline_is_that_of_the_largest_mean(figures):
    results = figures.sources()
    row = {"naive Bayes": [0.9, 0.1], "TF-IDF, logistic regression": [0.6, 0.5]}
    results["pretraining_gain"]["A, 50"] = row
    found = best_baseline(results, "A", "50")
    assert found == (pytest.approx(0.55), "C")


def test_scores_and_speeds_stand_in_generated_text(figures):
    """A score with three digits, or a factor, that was typed by hand would get old."""
    generated = r"(?s)<!-- (=\w+ -->.*?<!-- |table .*?<!-- end )-->|^```.*?^```|`[^`]+`"
    typed = r"\b0\.\d{3,4}\b|\b\d+\.\d+ (?:times|倍|ms|MB/s|MB|GB|s)\b"
    for page in {x for pattern in figures.PAGES for x in ROOT.glob(pattern)}:
        if page.name != "CHANGELOG.md":
            text = re.sub(generated, "", page.read_text("utf-8"), flags=re.MULTILINE)
            assert re.findall(typed, text) == [], page
