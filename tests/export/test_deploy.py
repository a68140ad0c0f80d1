"""The Triton backend of `deploy/` answers requests in batches."""

import json
import pathlib
import runpy
import sys
import types

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).parents[2]


class Answers:
    """A replacement for `albert_tf_lite.OnnxModel` that reverses texts."""

    def __init__(self, path):
        self.path, self.asked = path, []

    def predict(self, texts):
        self.asked.append(texts)
        if "boom" in texts:
            raise ValueError("no such text")
        return {
            "label": np.array([text[::-1] for text in texts]),
            "label_id": np.array([len(text) for text in texts]),
            "probabilities": np.array([[len(text), 1.0] for text in texts]),
        }


class Tensor:
    def __init__(self, name, array):
        self.name, self.array = name, array

    def as_numpy(self):
        return self.array


@pytest.fixture
def backend(monkeypatch):
    triton = types.ModuleType("triton_python_backend_utils")
    triton.Tensor, triton.TritonError = Tensor, str
    triton.get_input_tensor_by_name = lambda request, name: request[name]
    kinds = {"TYPE_STRING": np.object_, "TYPE_INT32": np.int32, "TYPE_FP32": np.float32}
    triton.triton_string_to_numpy = kinds.get
    triton.InferenceResponse = lambda tensors=None, error=None: tensors or error
    lite = types.ModuleType("albert_tf_lite")
    lite.OnnxModel = Answers
    monkeypatch.setitem(sys.modules, triton.__name__, triton)
    monkeypatch.setitem(sys.modules, "albert_tf_lite", lite)
    path = ROOT / "deploy" / "triton" / "reviews" / "1" / "model.py"
    model = runpy.run_path(str(path))["TritonPythonModel"]()
    place = {"model_repository": "/models/reviews", "model_version": "1"}
    model.initialize({"model_config": json.dumps(CONFIG), **place})
    return model


CONFIG = {
    "input": [{"name": "text"}],
    "output": [
        {"name": "label", "data_type": "TYPE_STRING"},
        {"name": "label_id", "data_type": "TYPE_INT32"},
        {"name": "probabilities", "data_type": "TYPE_FP32"},
    ],
    "parameters": {"file": {"string_value": "model.onnx"}},
}


def request(*texts):
    return {"text": Tensor("text", np.array([[x.encode()] for x in texts], object))}


def test_triton_answers_each_request(backend):
    assert backend.model.path == "/models/reviews/1/model.onnx"
    responses = backend.execute([request("好", "很好"), request("", "abc", "差")])
    # All at once.
    assert backend.model.asked == [["好", "很好", "", "abc", "差"]]
    found = [{x.name: x.array for x in response} for response in responses]
    assert [len(x["label"]) for x in found] == [2, 3]
    assert found[1]["label"].tolist() == [[b""], [b"cba"], ["差".encode()]]
    assert found[0]["label_id"].tolist() == [[1], [2]]
    assert found[0]["label_id"].dtype == np.int32
    assert found[1]["probabilities"].tolist() == [[0, 1], [3, 1], [1, 1]]
    assert found[1]["probabilities"].dtype == np.float32
    assert backend.execute([request("boom")]) == ["no such text"]
