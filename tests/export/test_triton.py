"""The model of deploy/triton with a stand-in for the module of Triton's process."""

import json
import pathlib
import runpy
import sys
import types

import numpy as np
import pytest
from lite_tasks import needs_onnx, small_task

import albert_tf

pytestmark = needs_onnx
MODEL = pathlib.Path(__file__).resolve().parents[2] / "deploy/triton/reviews/1/model.py"


class Tensor:
    def __init__(self, name, values):
        self.name, self.values = name, values

    def as_numpy(self):
        return self.values


@pytest.fixture
def start(monkeypatch, tmp_path):
    """Return a function that starts the model of a task."""
    triton = types.SimpleNamespace(
        Tensor=Tensor,
        get_input_tensor_by_name=lambda request, name: request[name],
        InferenceResponse=lambda tensors=(), error=None: (
            error or {x.name: x.values for x in tensors}
        ),
        TritonError=str,
        triton_string_to_numpy={"TYPE_STRING": np.object_, "TYPE_FP32": np.float32}.get,
    )
    monkeypatch.setitem(sys.modules, "triton_python_backend_utils", triton)

    def start(task, outputs, inputs=("text",), file="model.onnx", **config):
        (tmp_path / "1").mkdir(exist_ok=True)
        albert_tf.export.onnx(task, tmp_path / "1" / file)
        config |= {
            "input": [{"name": x, "dims": [1 - 2 * (x == "choices")]} for x in inputs],
            "output": [{"name": x, "data_type": y} for x, y in outputs.items()],
        }
        model = runpy.run_path(str(MODEL))["TritonPythonModel"]()
        folder = {"model_repository": str(tmp_path), "model_version": "1"}
        model.initialize({"model_config": json.dumps(config), **folder})
        opened = albert_tf.export.OnnxModel(tmp_path / "1" / file)

        def ask(*requests):
            return model.execute(
                [
                    {
                        name: Tensor(name, np.char.encode(x, "utf-8").astype(object))
                        for name, x in zip(inputs, request, strict=True)
                    }
                    for request in requests
                ]
            )

        return ask, opened

    return start


def test_requests_are_answered_together(start):
    task, _ = small_task("labels")
    outputs = {"label": "TYPE_STRING", "probabilities": "TYPE_FP32"}
    parameters = {"file": {"string_value": "other.onnx"}}
    ask, opened = start(task, outputs, file="other.onnx", parameters=parameters)
    texts = ["很好", "太差了", "不"]
    expected = opened.predict(texts)
    found = ask(([["很好"], ["太差了"]],), ([["不"]],))
    labels = [x.decode() for part in found for (x,) in part["label"]]
    assert labels == list(expected["label"])
    values = np.concatenate([part["probabilities"] for part in found])
    np.testing.assert_allclose(values, expected["probabilities"], atol=1e-6)


@pytest.mark.parametrize(
    ("kind", "inputs", "request_"),
    [
        ("tags", ("text",), ([["我想你"], ["好"]],)),
        (
            "choices",
            ("context", "question", "choices"),
            ([["很好"], ["不"]], [["好"], ["差"]], [["好", "差"], ["你", "我"]]),
        ),
    ],
)
def test_json_has_the_answer_of_every_task(start, kind, inputs, request_):
    ask, opened = start(small_task(kind)[0], {"json": "TYPE_STRING"}, inputs)
    (found,) = ask(request_)
    parts = [
        x if name == "choices" else [y for (y,) in x]
        for name, x in zip(inputs, request_, strict=True)
    ]
    expected = opened.answers(tuple(parts) if len(parts) > 1 else parts[0])
    assert [json.loads(x) for (x,) in found["json"]] == json.loads(json.dumps(expected))
