"""`exported`: a quantized file of a task, written once per state of its weights."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from lite_tasks import needs_litert, needs_onnx, small_task
from small_classifier import VOCABULARY, predict, small_backbone

import albert_tf
from albert_tf.export import LiteRTModel, OnnxModel, engines, exported
from albert_tf.models import AlbertSpellingCorrector

pytestmark = pytest.mark.filterwarnings("ignore:.* texts are longer")
ENGINES = [
    pytest.param("onnx", OnnxModel, marks=needs_onnx),
    pytest.param("litert", LiteRTModel, marks=[needs_litert, pytest.mark.slow]),
]


@pytest.mark.parametrize("engine, opens", ENGINES)
def test_outputs_are_those_of_the_int8_file(engine, opens, tmp_path):
    task, texts = small_task("google pairs")
    getattr(albert_tf.export, engine)(task, tmp_path / "model", precision="int8")
    expected = opens(tmp_path / "model").outputs(texts)
    model = exported(task, engine)
    assert type(model) is opens
    found = model.outputs(texts)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    # Activations are quantized per batch.
    np.testing.assert_allclose(model.outputs(texts, 2), expected, atol=0.1)
    exact = predict(task, texts)
    assert not np.array_equal(found, exact)
    assert np.corrcoef(found.ravel(), exact.ravel())[0, 1] > 0.98


@needs_onnx
def test_a_pipeline_exports_once_for_concurrent_calls(monkeypatch):
    written = []

    def counted(*args, **options):
        written.append(args)
        albert_tf.export.onnx(*args, **options)

    monkeypatch.setitem(engines._ENGINES, "onnx", (counted, OnnxModel))
    task, texts = small_task("labels")
    pipeline = albert_tf.pipeline("text-classification", task, engine="onnx")
    with ThreadPoolExecutor(3) as pool:
        first, *others = pool.map(pipeline, [texts] * 3)
    assert others == [first] * 2
    assert len(written) == 1


@needs_onnx
def test_an_export_has_the_weights_of_the_moment():
    task, texts = small_task("labels")
    before = exported(task)
    task.output_dense.bias.assign(task.output_dense.bias + 5.0)
    moved = exported(task).outputs(texts)
    np.testing.assert_allclose(moved, before.outputs(texts) + 5.0, atol=1e-4)


def test_engines_and_tasks_without_a_file():
    with pytest.raises(albert_tf.AlbertError, match="one of onnx, litert"):
        exported(small_task("labels")[0], "torch")
    backbone = small_backbone(num_layers=1)
    task = AlbertSpellingCorrector.from_backbone(backbone, VOCABULARY)
    with pytest.raises(albert_tf.AlbertError, match="regression.*AlbertSpelling"):
        exported(task)
