"""TensorFlow Serving's gRPC and REST in Python, to test clients and documented forms.

REST treats tensors as `tensorflow_serving/util/json_tensor.cc` does.
"""

import concurrent.futures
import http.server
import json
import threading

import numpy as np
import tensorflow as tf


class Model:
    """The versions of a model, by number, and their labels."""

    def __init__(self, name, versions, labels=None):
        self.name, self.labels = name, labels or {}
        self.versions = {
            number: tf.saved_model.load(str(path)) for number, path in versions.items()
        }

    def signature(self, name=None, label=None):
        number = self.labels[label] if label else max(self.versions)
        return self.versions[number].signatures[name or "serving_default"]


def grpc_server(model):
    """A running server with the PredictionService of a `Model`, and its port."""
    import grpc
    from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

    class Service(prediction_service_pb2_grpc.PredictionServiceServicer):
        def Predict(self, request, context):
            spec = request.model_spec
            assert spec.name == model.name
            ask = model.signature(spec.signature_name, spec.version_label)
            inputs = request.inputs.items()
            try:
                answers = ask(**{x: tf.constant(tf.make_ndarray(y)) for x, y in inputs})
            except tf.errors.InvalidArgumentError as error:
                context.abort(grpc.StatusCode.INVALID_ARGUMENT, error.message)
            response = predict_pb2.PredictResponse(model_spec=spec)
            for name, value in answers.items():
                proto = tf.make_tensor_proto(value.numpy())
                response.outputs[name].CopyFrom(proto)
            return response

    server = grpc.server(concurrent.futures.ThreadPoolExecutor(2))
    services = prediction_service_pb2_grpc
    services.add_PredictionServiceServicer_to_server(Service(), server)
    port = server.add_insecure_port("localhost:0")
    server.start()
    return server, port


def rest_answer(ask, body):
    """Return the REST answer to the body of a request, both as read from JSON."""
    columns = body.get("inputs")
    if columns is None:
        rows = body["instances"]
        columns = {name: [row[name] for row in rows] for name in rows[0]}
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
    """A running server of `/v1/models/NAME[/labels/LABEL]:predict`, and its port."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            path, _, verb = self.path.partition(":")
            _, _, models, name, *rest = path.split("/")
            assert (models, name, verb) == ("models", model.name, "predict")
            label = rest[1] if rest else None
            ask = model.signature(body.get("signature_name"), label)
            answer = json.dumps(rest_answer(ask, body)).encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("localhost", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, server.server_port
