"""Pipelines of exported files: pairs of an embedder, and files beside a model."""

import pytest
from lite_tasks import near, needs_onnx, small_task, write_onnx

import albert_tf
import albert_tf_lite

pytestmark = [needs_onnx, pytest.mark.filterwarnings("ignore:.* texts are longer")]


def test_pairs_of_an_embedder_are_compared(tmp_path):
    task, texts = small_task("embedding")
    model = write_onnx(task, tmp_path / "model.onnx")
    pairs = list(zip(texts, texts[::-1], strict=True))
    expected = albert_tf.pipeline(model.task, task)(pairs)
    assert near(model.answers((texts, texts[::-1]))) == expected


def test_the_network_beside_a_model_answers_for_it(tmp_path):
    task, texts = small_task("labels")
    task.save_to_preset(tmp_path)
    with pytest.raises(ValueError, match="has no model.onnx"):
        albert_tf_lite.pipeline(tmp_path)
    albert_tf.export.onnx(task, tmp_path / "model.onnx", preset=tmp_path)
    assert albert_tf.models.AlbertTextClassifier.from_checkpoint(tmp_path).labels
    answer = albert_tf_lite.pipeline(tmp_path, top_k=2)
    expected = albert_tf.pipeline(path=task, top_k=2)
    assert near(answer(texts)) == expected(texts)
    assert near(answer("很好", top_k=1)) == expected("很好", top_k=1)
    with pytest.raises(ValueError, match="no option targets. Its .* batch_size, top_k"):
        answer("很好", targets=[])
    other, _ = small_task("google pairs")
    other.save_to_preset(tmp_path / "other")
    weights = "model.weights.h5"
    (tmp_path / "other" / weights).replace(tmp_path / weights)
    with pytest.raises(ValueError, match="is not of the model beside it"):
        albert_tf_lite.pipeline(tmp_path)
