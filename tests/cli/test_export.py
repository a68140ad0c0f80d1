"""`albert-tf export`: a file, and a summary that compares it with the model."""

import pytest
from command_line import refused, run
from lite_tasks import needs_litert, needs_onnx, small_task
from small_classifier import TEXTS

from albert_tf.export import LiteRTModel, OnnxModel

pytestmark = pytest.mark.filterwarnings("ignore:.* texts are longer")


@pytest.mark.parametrize(
    ("name", "precision", "kind", "difference"),
    [
        pytest.param("onnx", "float32", OnnxModel, 1e-5, marks=needs_onnx),
        pytest.param(
            "litert",
            "int8",
            LiteRTModel,
            0.5,
            marks=[needs_litert, pytest.mark.slow],
        ),
    ],
)
def test_a_file_is_compared_with_the_model(name, precision, kind, difference, tmp_path):
    task, _ = small_task("labels")
    labels = [task.class_names[i] for i in task.predict(TEXTS, verbose=0).argmax(-1)]
    labels[-1] = next(x for x in "坏中好" if x != labels[-1])
    rows = [f"{x}\t{text or '空'}\n" for x, text in zip(labels, TEXTS, strict=True)]
    (tmp_path / "a.tsv").write_text("label\ttext\n" + "".join(rows), "utf-8")
    task.save_to_preset(tmp_path / "model")
    path = tmp_path / "file"
    command = ("export", tmp_path / "model", path, "--format", name)
    command += ("--precision", precision, "--check", tmp_path / "a.tsv")
    if name == "litert":
        # The texts of the comparison are longer.
        command += ("--lengths", "8,12")
    printed = run(*command).stdout
    found = dict(x.split(maxsplit=1) for x in printed.splitlines() if x[0] != " ")
    assert found["size"].startswith(f"{path.stat().st_size / 1e6:.2f} MB (weights")
    assert float(found["difference"].split()[0]) < difference
    score, of_model = found["accuracy"].split(", of the model ")
    assert abs(float(score) - float(of_model)) < 0.2
    exported = kind(path)
    assert name != "litert" or exported.lengths == [8, 12]
    assert len(exported.predict(["好"])["label"]) == 1
    assert "pass --overwrite" in refused(*command)
    assert "needs --format" in refused("export", ".", path, "--precision", "int8")


@needs_onnx
def test_a_directory_for_transformers_js_is_compared_with_the_model(tmp_path):
    task, _ = small_task("google pairs")
    task.save_to_preset(tmp_path / "model")
    command = ("export", tmp_path / "model", tmp_path / "web")
    command += ("--format", "transformers.js")
    printed = " ".join(run(*command).stdout.split())
    assert float(printed.split("difference, float32")[1].split()[0]) < 1e-5
    assert float(printed.split("difference, int8")[1].split()[0]) < 0.5
    assert "README.md shows its use" in printed
    assert (tmp_path / "web/onnx/model_quantized.onnx").exists()
    assert "pass --overwrite" in refused(*command)
    assert "needs --format" in refused(*command, "--precision", "int8", "--overwrite")
