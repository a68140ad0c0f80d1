"""`predict(engine=...)`: answers of a quantized file, from the model itself."""

import re

import numpy as np
import pytest
from lite_tasks import needs_litert, needs_onnx, small_task
from small_classifier import predict

import albert_tf
from albert_tf.export import LiteRTModel, OnnxModel, engines

pytestmark = pytest.mark.filterwarnings("ignore:.* texts are longer")
ENGINES = [
    pytest.param("onnx", OnnxModel, marks=needs_onnx),
    pytest.param("litert", LiteRTModel, marks=[needs_litert, pytest.mark.slow]),
]


@pytest.mark.parametrize("engine, opens", ENGINES)
def test_answers_are_those_of_the_int8_file(engine, opens, tmp_path):
    task, texts = small_task("google pairs")
    getattr(albert_tf.export, engine)(task, tmp_path / "model", precision="int8")
    expected = opens(tmp_path / "model").outputs(texts)
    found = predict(task, texts, engine=engine)
    exact = predict(task, texts)
    assert found.shape == exact.shape
    np.testing.assert_allclose(found, expected.reshape(exact.shape), atol=1e-5)
    assert not np.array_equal(found, exact)
    assert np.corrcoef(found.ravel(), exact.ravel())[0, 1] > 0.98


@needs_onnx
def test_the_file_is_exported_again_when_weights_change(monkeypatch):
    written = []
    write, opens = engines._FORMATS["onnx"]

    def counted(*args, **options):
        written.append(args)
        write(*args, **options)

    monkeypatch.setitem(engines._FORMATS, "onnx", (counted, opens))
    task, texts = small_task("labels")
    first, again = (predict(task, texts, engine="onnx") for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert len(written) == 1
    bias = task.output_dense.bias
    bias.assign(bias + 5.0)
    moved = predict(task, texts, engine="onnx")
    np.testing.assert_allclose(moved, first + 5.0, atol=1e-4)
    assert len(written) == 2


@needs_onnx
def test_no_text_and_a_pipeline():
    task, texts = small_task("labels")
    assert predict(task, [], engine="onnx").shape == (0, 3)
    answers = albert_tf.pipeline("text-classification", task, engine="onnx")(texts)
    classes = predict(task, texts, engine="onnx").argmax(axis=1)
    assert [x["label"] for x in answers] == [task.class_names[i] for i in classes]


def test_options_and_tasks_without_an_engine():
    for name, options, error, message in (
        ("labels", {"engine": "torch"}, ValueError, "one of onnx, litert"),
        ("labels", {"engine": "onnx", "max_tokens": 64}, ValueError, "max_tokens=64"),
        ("labels", {"engine": "onnx", "windows": "mean"}, ValueError, "as lists"),
        ("tags", {"engine": "onnx"}, ValueError, "one output a text"),
    ):
        task, texts = small_task(name)
        with pytest.raises(error, match=re.escape(message)):
            predict(task, texts, **options)
