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


@pytest.mark.slow
@needs_onnx
@pytest.mark.parametrize(
    ("name", "file", "content"),
    [
        (
            "tags",
            "a.jsonl",
            '{"text": "你好吗", "label": {"PER": {"你好": [[0, 1]]}}}\n',
        ),
        ("multi-label", "a.tsv", "label\ttext\n0|1\t好吃\n\t天地\n3\t想吃鸡蛋\n"),
        (
            "embedding",
            "a.csv",
            "text_a,text_b,score\n你好,你好吗,5\n你好,天地,1\n好,蛋,2\n",
        ),
    ],
)
def test_other_tasks_have_the_scores_of_the_model(name, file, content, tmp_path):
    (tmp_path / file).write_text(content, "utf-8")
    task, _ = small_task(name)
    _, rows = export(task, tmp_path / file, tmp_path, "--format", "onnx")
    assert rows["onnx float32"][-1] == rows["Keras"][-1]
