"""The files of `deploy/` are read by the programs they are for."""

import json
import pathlib
import re
import sys
import types

import numpy as np
import pytest
from google.protobuf import text_format

ROOT = pathlib.Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"


def test_models_config_is_read_by_the_protocol_of_the_server():
    pytest.importorskip("tensorflow_serving", reason="needs the extra [serving]")
    from tensorflow_serving.config import model_server_config_pb2

    message = model_server_config_pb2.ModelServerConfig()
    models = text_format.Parse((DEPLOY / "models.config").read_text(), message)
    (model,) = models.model_config_list.config
    assert dict(model.version_labels) == {"stable": 1, "canary": 2}
    # A label of a version that is not served would not be found.
    assert set(model.version_labels.values()) <= set(
        model.model_version_policy.specific.versions
    )


def test_compose_mounts_what_its_command_names():
    yaml = pytest.importorskip("yaml")
    serving = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"][
        "serving"
    ]
    mounts = {x.split(":")[-2]: x.rsplit(":", 2)[0] for x in serving["volumes"]}
    for option in serving["command"]:
        path = option.partition("=")[2]
        if path.startswith("/config/"):
            assert (DEPLOY / mounts[path]).is_file()
    models = (DEPLOY / "models.config").read_text()
    assert re.findall(r'base_path: "(/\w+)/', models) == ["/models"]
    assert "/models" in mounts
    assert serving["image"] == "tensorflow/serving:2.20.0"


# --- Triton ---


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
    triton.triton_string_to_numpy = {
        "TYPE_STRING": np.object_,
        "TYPE_INT32": np.int32,
        "TYPE_FP32": np.float32,
    }.get
    triton.InferenceResponse = lambda tensors=None, error=None: tensors or error
    lite = types.ModuleType("albert_tf_lite")
    lite.OnnxModel = Answers
    monkeypatch.setitem(sys.modules, triton.__name__, triton)
    monkeypatch.setitem(sys.modules, "albert_tf_lite", lite)
    path = DEPLOY / "triton" / "reviews" / "1" / "model.py"
    module = types.ModuleType("model")
    exec(compile(path.read_text(), str(path), "exec"), module.__dict__)
    model = module.TritonPythonModel()
    config = DEPLOY / "triton" / "reviews" / "config.pbtxt"
    model.initialize(
        {
            "model_config": triton_json(config.read_text()),
            "model_repository": "/models/reviews",
            "model_version": "1",
        }
    )
    return model


def triton_json(text):
    """The parts of a config.pbtxt that the model reads, as JSON from Triton."""
    parts = {}
    for way in ("input", "output"):
        block = re.search(rf"^{way} \[(.*?)^\]", text, re.M | re.S).group(1)
        found = re.findall(r'name: "(\w+)"\s+data_type: (\w+)', block)
        parts[way] = [{"name": name, "data_type": kind} for name, kind in found]
    key, value = re.search(
        r'key: "(\w+)"\s+value: \{ string_value: "(.*?)"', text
    ).groups()
    return json.dumps({**parts, "parameters": {key: {"string_value": value}}})


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
