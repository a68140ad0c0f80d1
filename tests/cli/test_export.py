"""`albert-tf export`: a file, and a table that compares it with the model."""

import pytest
from command_line import run
from lite_tasks import needs_litert, needs_onnx, small_task
from small_classifier import TEXTS

from albert_tf.export import LiteRTModel, OnnxModel

pytestmark = pytest.mark.filterwarnings("ignore:.* texts are longer")


def export(task, examples, path, *options):
    """Export a task; return the file and the cells of the table by its first column."""
    task.save_to_preset(path / "model")
    options = (path / "file", *options, "--check", examples)
    printed = run("export", path / "model", *options).output
    rows = [x.strip("│ ").split("│") for x in printed.splitlines() if x[0] in "│┃"]
    cells = {row[0].strip(): [cell.strip() for cell in row[1:]] for row in rows}
    return path / "file", cells


@pytest.mark.parametrize(
    ("name", "precision", "kind"),
    [
        pytest.param("onnx", "int8", OnnxModel, marks=[needs_onnx, pytest.mark.slow]),
        pytest.param(
            "litert", "int8", LiteRTModel, marks=[needs_litert, pytest.mark.slow]
        ),
    ],
)
def test_a_file_is_compared_with_the_model(name, precision, kind, tmp_path):
    task, _ = small_task("labels")
    labels = [task.class_names[i] for i in task.predict(TEXTS, verbose=0).argmax(-1)]
    labels[-1] = next(x for x in "坏中好" if x != labels[-1])
    rows = [f"{x}\t{text or '空'}\n" for x, text in zip(labels, TEXTS, strict=True)]
    (tmp_path / "a.tsv").write_text("label\ttext\n" + "".join(rows), "utf-8")
    options = ("--format", name, "--precision", precision)
    path, rows = export(task, tmp_path / "a.tsv", tmp_path, *options)
    size, *times, difference, score = rows[f"{name} {precision}"]
    assert all(float(taken) > 0 for taken in times)
    assert float(difference) < 0.5
    assert abs(float(score) - float(rows["Keras"][-1])) < 0.2
    assert float(size) == round(path.stat().st_size / 1e6, 2)
    assert len(kind(path).predict(["好"])["label"]) == 1
