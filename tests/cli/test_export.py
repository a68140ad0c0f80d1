"""`albert-tf export --format`: a file, and a table that compares it with the model."""

import pytest
from command_line import run
from lite_tasks import needs_litert, needs_onnx, small_task
from small_classifier import TEXTS

from albert_tf.export import LiteRTModel, OnnxModel

pytestmark = pytest.mark.filterwarnings("ignore:.* texts are longer")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A saved classifier, and examples with its labels, but for the last."""
    folder = tmp_path_factory.mktemp("export")
    task, _ = small_task("labels")
    task.save_to_preset(folder / "model")
    labels = [task.class_names[i] for i in task.predict(TEXTS, verbose=0).argmax(-1)]
    labels[-1] = next(x for x in "坏中好" if x != labels[-1])
    rows = [f"{x}\t{text or '空'}\n" for x, text in zip(labels, TEXTS, strict=True)]
    (folder / "a.tsv").write_text("label\ttext\n" + "".join(rows), "utf-8")
    return folder / "model", folder / "a.tsv"


def table_rows(printed):
    """Return the cells of the rows of a table, by the first."""
    rows = [x.strip("│ ").split("│") for x in printed.splitlines() if x[0] in "│┃"]
    return {row[0].strip(): [cell.strip() for cell in row[1:]] for row in rows}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        pytest.param("onnx", OnnxModel, marks=needs_onnx),
        pytest.param("litert", LiteRTModel, marks=[needs_litert, pytest.mark.slow]),
    ],
)
def test_a_file_is_compared_with_the_model(model, tmp_path, name, kind):
    folder, examples = model
    path = tmp_path / f"model.{name}"
    options = ("--format", name, "--precision", "int8", "--check", examples)
    rows = table_rows(run("export", folder, path, *options).output)
    size, *times, difference, score = rows[f"{name} int8"]
    assert float(size) == round(path.stat().st_size / 1e6, 2)
    assert all(float(taken) > 0 for taken in times)
    assert 0 < float(difference) < 0.5
    assert abs(float(score) - float(rows["Keras"][-1])) < 0.2
    assert len(kind(path).predict(["好"])["label"]) == 1


@pytest.mark.slow
def test_a_saved_model_computes_the_same(model, tmp_path):
    folder, examples = model
    options = ("--format", "savedmodel", "--check", examples)
    rows = table_rows(run("export", folder, tmp_path / "1", *options).output)
    assert float(rows["savedmodel float32"][-2]) < 1e-6
    assert rows["savedmodel float32"][-1] == rows["Keras"][-1]


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
    task, _ = small_task(name)
    task.save_to_preset(tmp_path / "model")
    (tmp_path / file).write_text(content, "utf-8")
    options = ("--format", "onnx", "--check", tmp_path / file)
    printed = run("export", tmp_path / "model", tmp_path / "m", *options).output
    rows = table_rows(printed)
    assert rows["onnx float32"][-1] == rows["Keras"][-1]
