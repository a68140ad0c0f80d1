"""`answers` of exported files are those of `albert_tf.pipeline` of the model."""

import json

import pytest
from lite_tasks import TASKS, needs_onnx, small_task, write_onnx

import albert_tf

pytestmark = [needs_onnx, pytest.mark.filterwarnings("ignore:.* texts are longer")]


class Near(float):
    """A float that equals all within 1e-4 of it."""

    def __eq__(self, other):
        return abs(self - other) < 1e-4


def near(answers):
    """Answers after a round trip through JSON."""
    return json.loads(json.dumps(answers), parse_float=Near)


@pytest.mark.parametrize("name", TASKS)
def test_they_are_those_of_the_pipeline(name, tmp_path):
    task, texts = small_task(name)
    model = write_onnx(task, tmp_path / "model.onnx")
    x = list(zip(*texts, strict=True)) if isinstance(texts, tuple) else texts
    pipeline = albert_tf.pipeline(model.task, task)
    assert near(model.answers(texts)) == pipeline(x)
    assert model.pairs == getattr(task, "pairs", False)
    if model.task not in ("text-classification", "multi-label"):
        return
    for top_k in (1, 2, None):
        assert near(model.answers(texts, top_k=top_k)) == pipeline(x, top_k=top_k)
    with pytest.raises(ValueError, match="from 1 on"):
        model.answers(texts, top_k=0)


def test_pairs_of_an_embedder_are_compared(tmp_path):
    task, texts = small_task("embedding")
    model = write_onnx(task, tmp_path / "model.onnx")
    pairs = list(zip(texts, texts[::-1], strict=True))
    expected = albert_tf.pipeline(model.task, task)(pairs)
    assert near(model.answers((texts, texts[::-1]))) == expected
