"""The benchmark of pretraining, on a few examples."""

import importlib.util
import json
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture
def benchmark(monkeypatch, tmp_path):
    """Run it with some options; gives what it has written."""
    path = ROOT / "benchmarks" / "pretraining_gain.py"
    spec = importlib.util.spec_from_file_location("pretraining_gain", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "LEAST_EXAMPLES", 40)
    output = tmp_path / "gain.json"

    def run(*options):
        start = ("--start", "shipped", str(ROOT / "examples" / "albert_micro_zh"))
        argv = [str(path), *start, "--epochs", "1", "--output", str(output), *options]
        monkeypatch.setattr(sys, "argv", argv)
        module.main()
        return json.loads(output.read_text())

    return run


@pytest.mark.slow
def test_every_start_is_scored_and_what_is_done_is_kept(benchmark, tmp_path, capsys):
    headlines = [
        f"{text}{i}\t{i % 2}\n" for i in range(40) for text in ("球赛", "股价")
    ]
    (tmp_path / "dev.tsv").write_text("".join(headlines))
    for part, count in (("train", 61), ("test", 31)):
        lines = (ROOT / "examples" / "reviews" / f"{part}.tsv").read_text().splitlines()
        (tmp_path / f"{part}.tsv").write_text("\n".join(lines[:count]) + "\n")
    data = (
        *("--data", "reviews", str(tmp_path)),
        *("--data", "headlines", str(tmp_path / "dev.tsv")),
    )
    first = benchmark(*data, "--sizes", "20", "--seeds", "1")
    starts = {key.split("/")[2] for key in first}
    assert starts == {"shipped", "random weights", "TF-IDF, logistic regression"}
    assert len(first) == 6 and all(0 < score <= 1 for score in first.values())
    assert "reviews: accuracy on test" in capsys.readouterr().out
    assert (tmp_path / "gain.png").stat().st_size > 10_000
    second = benchmark(*data, "--sizes", "20", "all", "--seeds", "1")
    assert first.items() < second.items()
    assert "/20/" not in capsys.readouterr().out
