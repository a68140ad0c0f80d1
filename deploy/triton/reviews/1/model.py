"""Triton's Python backend: strings to answers, by the ONNX file that lies beside it.

It needs `albert_tf_lite` and onnxruntime in the Python of the backend, and neither
TensorFlow nor Keras.
"""

import json
import pathlib

import numpy as np
import triton_python_backend_utils as pb_utils

from albert_tf_lite import OnnxModel


class TritonPythonModel:
    def initialize(self, args):
        config = json.loads(args["model_config"])
        self.inputs = [part["name"] for part in config["input"]]
        self.outputs = {
            part["name"]: pb_utils.triton_string_to_numpy(part["data_type"])
            for part in config["output"]
        }
        folder = pathlib.Path(args["model_repository"], args["model_version"])
        file = config["parameters"]["file"]["string_value"]
        self.model = OnnxModel(str(folder / file))

    def execute(self, requests):
        columns = [[self._texts(x, name) for x in requests] for name in self.inputs]
        counts = [len(texts) for texts in columns[0]]
        joined = [sum(texts, []) for texts in columns]
        # All requests at once: Triton has gathered them, the model groups by length.
        try:
            answers = self.model.predict(
                joined[0] if len(joined) == 1 else tuple(joined)
            )
        except ValueError as error:
            failed = pb_utils.TritonError(str(error))
            return [pb_utils.InferenceResponse(error=failed) for _ in requests]
        bounds = np.cumsum([0, *counts])
        return [
            pb_utils.InferenceResponse(self._tensors(answers, begin, end))
            for begin, end in zip(bounds[:-1], bounds[1:], strict=True)
        ]

    def _texts(self, request, name):
        values = pb_utils.get_input_tensor_by_name(request, name).as_numpy()
        return [value.decode("utf-8", "ignore") for value in values.reshape(-1)]

    def _tensors(self, answers, begin, end):
        return [
            pb_utils.Tensor(
                name, _as_rows(np.asarray(answers[name])[begin:end]).astype(dtype)
            )
            for name, dtype in self.outputs.items()
        ]


def _as_rows(values):
    """One value an example is a row of one."""
    values = values[:, None] if values.ndim == 1 else values
    if values.dtype.kind == "U":
        values = np.char.encode(values, "utf-8")
    return values
