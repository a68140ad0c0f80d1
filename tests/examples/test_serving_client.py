"""The example's client and the examples of the docs against servers in Python.

They speak the gRPC and REST of TensorFlow Serving; REST treats tensors as
`tensorflow_serving/util/json_tensor.cc` does.
"""

import concurrent.futures
import http.server
import json
import pathlib
import re
import runpy
import sys
import threading

import numpy as np
import pytest
import tensorflow as tf
from small_classifier import small_classifier

import albert_tf

ROOT = pathlib.Path(__file__).parents[2]
DOCS = (ROOT / "docs/reference/serving.md").read_text()
pytestmark = [pytest.mark.text_ops, pytest.mark.traced]
TEXTS = ["房间很干净", "早餐太差了", ""]


def grpc_server(model):
    """A running server with the PredictionService of a model, and its port."""
    pytest.importorskip("tensorflow_serving", reason="needs the extra [serving]")
    import grpc
    from tensorflow_serving.apis import predict_pb2
    from tensorflow_serving.apis import prediction_service_pb2_grpc as services

    class Service(services.PredictionServiceServicer):
        def Predict(self, request, context):
            spec, inputs = request.model_spec, request.inputs.items()
            assert (spec.name, spec.version_label) == ("reviews", "stable")
            inputs = {name: tf.constant(tf.make_ndarray(x)) for name, x in inputs}
            response = predict_pb2.PredictResponse(model_spec=spec)
            for name, x in model.signatures[spec.signature_name](**inputs).items():
                response.outputs[name].CopyFrom(tf.make_tensor_proto(x.numpy()))
            return response

    server = grpc.server(concurrent.futures.ThreadPoolExecutor(2))
    services.add_PredictionServiceServicer_to_server(Service(), server)
    port = server.add_insecure_port("localhost:0")
    server.start()
    return server, port


def rest_answer(model, body):
    """Return the REST answer to the body of a request, both as read from JSON."""
    columns = body.get("inputs")
    if columns is None:
        rows = body["instances"]
        columns = {name: [row[name] for row in rows] for name in rows[0]}
    ask = model.signatures[body.get("signature_name", "serving_default")]
    answers = {}
    for name, x in ask(**{name: tf.constant(x) for name, x in columns.items()}).items():
        x = x.numpy()
        is_text = x.dtype == object
        answers[name] = (np.char.decode(x.astype("S")) if is_text else x).tolist()
    if "inputs" in body:
        return {"outputs": answers}
    rows = zip(*answers.values(), strict=True)
    return {"predictions": [dict(zip(answers, row, strict=True)) for row in rows]}


def rest_server(model):
    """A running server that answers requests for the label "stable", and its port."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            assert self.path == "/v1/models/reviews/labels/stable:predict"
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(rest_answer(model, body)).encode())

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("localhost", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, server.server_port


@pytest.fixture(scope="module")
def classifier():
    return small_classifier(num_classes=2, labels=["差评", "好评"])


@pytest.fixture(scope="module")
def model(classifier, tmp_path_factory):
    path = albert_tf.export.saved_model(classifier, tmp_path_factory.mktemp("serving"))
    return tf.saved_model.load(str(path))


@pytest.mark.parametrize("door", ["grpc", "rest"])
def test_the_example_asks_a_server(model, classifier, door, monkeypatch, capsys):
    server, port = (grpc_server if door == "grpc" else rest_server)(model)
    script = str(ROOT / "examples" / "serving_client.py")
    options = ["--label", "stable"]
    if door == "rest":
        options.append("--rest")
    arguments = [*options, f"localhost:{port}", "reviews", *TEXTS]
    monkeypatch.setattr(sys, "argv", [script, *arguments])
    try:
        runpy.run_path(script)
    finally:
        server.stop(None) if door == "grpc" else server.shutdown()
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [text for text, _ in lines] == TEXTS
    rows = [json.loads(answer) for _, answer in lines]
    expected = classifier.serve((tf.constant(TEXTS),), classifier)
    labels = [label.decode() for label in expected["label"].numpy()]
    assert [row["label"] for row in rows] == labels
    assert [row["label_id"] for row in rows] == expected["label_id"].numpy().tolist()
    given = [row["probabilities"] for row in rows]
    np.testing.assert_allclose(given, expected["probabilities"], atol=1e-5)


def keys(value):
    """The form of JSON: its names, and the types of what stands under them."""
    if isinstance(value, dict):
        return {name: keys(x) for name, x in value.items()}
    if isinstance(value, list):
        return [keys(value[0])] if value else []
    return type(value).__name__


def test_the_examples_of_the_docs_have_the_form_of_the_server(model):
    blocks = re.findall(r"```json\n(.*?)```", DOCS, re.DOTALL)
    pairs = [json.loads(block) for block in blocks]
    assert len(pairs) >= 4 and len(pairs) % 2 == 0
    for request, answer in zip(pairs[::2], pairs[1::2], strict=True):
        assert keys(rest_answer(model, request)) == keys(answer)
