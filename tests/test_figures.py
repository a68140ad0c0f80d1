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
    phrases, known = figures.figures(results)
    text = figures.filled(text, name.endswith(".zh.md"), figures.texts(results))
    return figures.corrected(text, phrases.get(name, ()), known)


def test_a_changed_digit_of_each_page_is_found(figures):
    """In each phrase with a figure, and in the first cell of each table."""
    results = figures.sources()
    phrases, known = figures.figures(results)
    assert len(phrases) > 30
    for name, of_page in phrases.items():
        text = (ROOT / name).read_text("utf-8")
        assert figures.corrected(text, of_page, known) == text
        for phrase in of_page:
            names = [x for x, _ in figures.fields(phrase)]
            for group, value in enumerate((known[x] for x in names), 1):
                start, end = figures.pattern(phrase, known).search(text).span(group)
                digit = next(i for i in range(end - 1, -1, -1) if text[i].isdigit())
                changed = f"{text[:digit]}{9 - int(text[digit])}{text[digit + 1 :]}"
                if isinstance(value, str):
                    with pytest.raises(ValueError, match="found 0 times"):
                        figures.corrected(changed, of_page, known)
                else:
                    assert start <= digit, phrase
                    assert figures.corrected(changed, of_page, known) == text


@pytest.mark.parametrize("name", ["README.md", "docs/about/benchmarks.zh.md"])
def test_a_changed_digit_of_a_table_is_written_again(figures, name):
    text, results = (ROOT / name).read_text("utf-8"), figures.sources()
    changed = re.sub(r"(<!-- table .*?\| )\d", r"\1x", text, count=1, flags=re.DOTALL)
    assert changed != text
    assert filled(figures, name, changed, results) == text


def test_a_changed_result_changes_the_pages_of_both_languages(figures):
    results = figures.sources()
    old = f"{results['lite']['first answer, seconds']:.2f}"
    results["lite"]["first answer, seconds"] += 70
    results["int8"]["jobs"]["lcqmc"]["rows"]["float32"]["MB"] += 70
    new = f"{results['lite']['first answer, seconds']:.2f}"
    for name in ("docs/install.md", "docs/install.zh.md"):
        text = (ROOT / name).read_text("utf-8")
        assert filled(figures, name, text, results) == text.replace(old, new, 1) != text
    for name in ("docs/guides/which_export.md", "docs/guides/which_export.zh.md"):
        text = (ROOT / name).read_text("utf-8")
        assert filled(figures, name, text, results) != text


def test_a_changed_result_makes_the_plots_stale(figures):
    results = figures.sources()
    scores = results["pretraining_gain"]["rows"]["ChnSentiCorp, all"]
    assert figures.draw_plots(results, is_check=True) == []
    scores["TF-IDF, logistic regression"] = [0.999]
    failed = figures.draw_plots(results, is_check=True)
    assert [x.partition(":")[0] for x in failed] == [*figures.plots.PLOTS]


def test_the_best_baseline_is_that_of_the_largest_mean(figures):
    results = figures.sources()
    row = {"naive Bayes": [0.9, 0.1], "TF-IDF, logistic regression": [0.6, 0.5]}
    results["pretraining_gain"]["A, 50"] = row
    found = best_baseline(results, "A", "50")
    assert found == (pytest.approx(0.55), "C")


def test_scores_and_speeds_are_generated_or_listed(figures):
    """A score with three digits, or a factor, that was typed by hand would get old."""
    phrases, known = figures.figures(figures.sources())
    generated = r"(?s)<!-- table .*?<!-- end -->|^```.*?^```|`[^`]+`"
    typed = r"\b0\.\d{3,4}\b|\b\d+\.\d+ (?:times|倍|ms|MB/s|MB|GB|s)\b"
    for page in {x for pattern in figures.PAGES for x in ROOT.glob(pattern)}:
        name, text = page.relative_to(ROOT).as_posix(), page.read_text("utf-8")
        assert "<!-- =" not in text, page
        listed = set()
        for phrase in phrases.get(name, ()):
            listed |= {*range(*figures.pattern(phrase, known).search(text).span())}
        text = "".join("_" if i in listed else x for i, x in enumerate(text))
        text = re.sub(generated, "", text, flags=re.MULTILINE)
        if name != "CHANGELOG.md":
            assert re.findall(typed, text) == [], page
