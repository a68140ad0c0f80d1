"""Query TensorFlow Serving: serving_client.py [--rest] ADDRESS MODEL TEXT...

    python examples/serving_client.py localhost:8500 reviews 房间很干净 早餐太差了
    python examples/serving_client.py --rest localhost:8501 reviews 房间很干净

gRPC requires tensorflow-serving-api (`pip install albert-tf[serving]`); REST requires
only Python. For a model of text pairs, separate the two texts of a TEXT by a tab.
`--label` selects the model version with that label, for example "stable".
"""

import argparse
import json
import urllib.request

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("address")
parser.add_argument("model")
parser.add_argument("texts", nargs="+", metavar="text")
parser.add_argument("--rest", action="store_true")
parser.add_argument("--label")
parser.add_argument("--timeout", type=float, default=10.0, help="seconds")
arguments = parser.parse_args()

if any("\t" in text for text in arguments.texts):
    first, second = zip(*[x.partition("\t")[::2] for x in arguments.texts], strict=True)
    inputs = {"text": list(first), "text_b": list(second)}
else:
    inputs = {"text": arguments.texts}

if arguments.rest:
    # "instances" has one object per example; "inputs" would have one list per input.
    rows = zip(*inputs.values(), strict=True)
    body = {"instances": [dict(zip(inputs, row, strict=True)) for row in rows]}
    label = f"/labels/{arguments.label}" if arguments.label else ""
    request = urllib.request.Request(
        f"http://{arguments.address}/v1/models/{arguments.model}{label}:predict",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=arguments.timeout) as response:
        answers = json.load(response)["predictions"]
else:
    import grpc
    import tensorflow as tf
    from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

    request = predict_pb2.PredictRequest()
    request.model_spec.name = arguments.model
    request.model_spec.signature_name = "serving_default"
    if arguments.label:
        request.model_spec.version_label = arguments.label
    for name, texts in inputs.items():
        request.inputs[name].CopyFrom(tf.make_tensor_proto(texts))
    with grpc.insecure_channel(arguments.address) as channel:
        service = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        response = service.Predict(request, timeout=arguments.timeout)
    columns = {key: tf.make_ndarray(x).tolist() for key, x in response.outputs.items()}
    answers = [
        {key: column[i] for key, column in columns.items()}
        for i in range(len(arguments.texts))
    ]

for text, answer in zip(arguments.texts, answers, strict=True):
    answer = json.dumps(answer, ensure_ascii=False, default=bytes.decode)
    print(f"{text}\t{answer}")
