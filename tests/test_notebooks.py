"""The notebooks belong to their sources, have clean outputs, and run."""

import base64
import json
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[1]
SOURCES = sorted((ROOT / "notebooks").glob("*.py"))
CELL = re.compile(r"^# %%( \[markdown\])?\n(.*?)(?=^# %%|\Z)", re.DOTALL | re.MULTILINE)
# Log lines, and names of folders outside the repository.
UNCLEAN = re.compile(
    r"warning|deprecat|traceback|tensorflow/core|site-packages|/(root|home|work|tmp)\b",
    re.IGNORECASE,
)
sources = pytest.mark.parametrize("source", SOURCES, ids=lambda x: x.stem)


def outputs_of(notebook):
    return [x for cell in notebook["cells"] for x in cell.get("outputs", [])]


@sources
def test_a_notebook_has_the_cells_of_its_source_and_clean_outputs(source):
    notebook = json.loads(source.with_suffix(".ipynb").read_text("utf-8"))
    expected = [
        ("markdown", re.sub("^# ?", "", text, flags=re.MULTILINE))
        if kind
        else ("code", text)
        for kind, text in CELL.findall(source.read_text("utf-8"))
    ]
    cells = [(x["cell_type"], "".join(x["source"])) for x in notebook["cells"]]
    assert cells == [(kind, text.strip("\n")) for kind, text in expected]
    outputs = outputs_of(notebook)
    assert len(outputs) > 5
    for output in outputs:
        image = output.get("data", {}).pop("image/png", "")
        assert len(base64.b64decode(image)) < 60_000
        assert output.get("name") != "stderr"
        assert not UNCLEAN.search(json.dumps(output))


@pytest.mark.nightly
@sources
def test_a_notebook_runs(source, monkeypatch):
    pytest.importorskip("jupytext", reason="The extra [notebooks] is not installed")
    monkeypatch.syspath_prepend(ROOT / "scripts")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    from notebooks import execute

    assert all(x.get("name") != "stderr" for x in outputs_of(execute(source)))
