"""`albert-tf export --format`: a file, and a table that compares it with the model."""

import pytest
from command_line import run
from lite_tasks import needs_litert, needs_onnx, small_task
from small_classifier import TEXTS

from albert_tf.export import LiteRTModel, OnnxModel

pytestmark = pytest.mark.filterwarnings("ignore:.* texts are longer")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("export") / "model"
    task, _ = small_task("labels")
    task.save_to_preset(folder)
    return folder, task


@pytest.fixture
def examples(model, tmp_path):
    """Labelled as the model labels them, but for the last."""
    labels = [model[1].class_names[i] for i in model[1].predict(TEXTS).argmax(-1)]
    labels[-1] = next(x for x in "坏中好" if x != labels[-1])
    rows = [f"{x}\t{text or '空'}" for x, text in zip(labels, TEXTS, strict=True)]
    file = tmp_path / "examples.tsv"
    file.write_text("\n".join(["label\ttext", *rows]) + "\n", "utf-8")
    return file


def table_rows(printed):
    """The cells of the rows of a table, by the first."""
    rows = [x.strip("│ ").split("│") for x in printed.splitlines() if x[0] in "│┃"]
    return {row[0].strip(): [cell.strip() for cell in row[1:]] for row in rows}


def check(printed, name, path, kind):
    rows = table_rows(printed)
    size, *times, difference, score = rows[name]
    assert float(size) == round(path.stat().st_size / 1e6, 2)
    assert all(float(taken) > 0 for taken in times)
    assert 0 < float(difference) < 0.2
    assert float(rows["Keras"][-1]) <= 1
    assert abs(float(score) - float(rows["Keras"][-1])) < 0.2
    assert len(kind(path).predict(["好"])["label"]) == 1


@needs_onnx
def test_onnx(model, examples, tmp_path):
    path = tmp_path / "model.onnx"
    options = ("--format", "onnx", "--precision", "int8", "--check", examples)
    result = run("export", model[0], path, *options)
    check(result.output, "onnx int8", path, OnnxModel)


@pytest.mark.slow
@needs_litert
def test_litert(model, examples, tmp_path):
    path = tmp_path / "model.tflite"
    options = ("--format", "litert", "--precision", "int8", "--check", examples)
    result = run("export", model[0], path, *options)
    check(result.output, "litert int8", path, LiteRTModel)


@pytest.mark.slow
def test_saved_model(model, examples, tmp_path):
    options = ("--format", "savedmodel", "--check", examples)
    result = run("export", model[0], tmp_path / "1", *options)
    rows = table_rows(result.output)
    assert float(rows["savedmodel float32"][-2]) < 1e-6
    assert rows["savedmodel float32"][-1] == rows["Keras"][-1]


@pytest.mark.slow
@needs_onnx
@pytest.mark.parametrize("name", ["tags", "multi-label", "embedding"])
def test_scores_of_other_tasks(name, tmp_path):
    task, _ = small_task(name)
    task.save_to_preset(tmp_path / "model")
    files = {
        "tags": '{"text": "你好吗", "label": {"PER": {"你好": [[0, 1]]}}}\n' * 2,
        "multi-label": "label\ttext\n0|1\t好吃\n\t天地\n3\t想吃鸡蛋\n",
        "embedding": "text_a,text_b,score\n你好,你好吗,5\n你好,天地,1\n好,蛋,2\n",
    }
    ending = {"tags": "jsonl", "multi-label": "tsv", "embedding": "csv"}[name]
    file = tmp_path / f"examples.{ending}"
    file.write_text(files[name], "utf-8")
    options = ("--format", "onnx", "--check", file)
    rows = table_rows(
        run("export", tmp_path / "model", tmp_path / "m", *options).output
    )
    assert rows["onnx float32"][-1] == rows["Keras"][-1]


def test_refusals(model, examples, tmp_path):
    with pytest.raises(ValueError, match="--check needs --format"):
        run("export", model[0], tmp_path / "1", "--check", examples)
    with pytest.raises(ValueError, match="int8: savedmodel has float32"):
        options = ("--format", "savedmodel", "--precision", "int8")
        run("export", model[0], tmp_path / "1", *options)
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "mine").touch()
    with pytest.raises(FileExistsError, match="or --overwrite to replace it"):
        run("export", model[0], tmp_path / "1")
    assert sorted(tmp_path.iterdir()) == sorted([examples, tmp_path / "1"])
