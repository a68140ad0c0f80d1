"""`exported`: a quantized file of a task, written once per state of its weights."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from lite_tasks import needs_onnx, small_task

import albert_tf
from albert_tf.export import OnnxModel, engines, exported

pytestmark = pytest.mark.filterwarnings("ignore:.* texts are longer")


@needs_onnx
def test_a_pipeline_exports_once_for_concurrent_calls(monkeypatch):
    written = []

    def counted(*args, **options):
        written.append(args)
        albert_tf.export.onnx(*args, **options)

    monkeypatch.setitem(engines.ENGINES, "onnx", (counted, OnnxModel))
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
