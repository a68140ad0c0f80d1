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
        self.inputs = {part["name"]: part["dims"] for part in config["input"]}
        self.outputs = {
            part["name"]: pb_utils.triton_string_to_numpy(part["data_type"])
            for part in config["output"]
        }
        given = config.get("parameters", {}).get("file", {})
        folder = pathlib.Path(args["model_repository"], args["model_version"])
        self.model = OnnxModel(str(folder / given.get("string_value", "model.onnx")))

    def execute(self, requests):
        columns = [
            [self._column(request, name) for request in requests]
            for name in self.inputs
        ]
        bounds = np.cumsum([0, *map(len, columns[0])])
        joined = [sum(parts, []) for parts in columns]
        # All requests at once: Triton has gathered them, the model groups by length.
        try:
            answers = self._answers(joined[0] if len(joined) == 1 else tuple(joined))
        except ValueError as error:
            failed = pb_utils.TritonError(str(error))
            return [pb_utils.InferenceResponse(error=failed) for _ in requests]
        return [
            pb_utils.InferenceResponse(
                [pb_utils.Tensor(x, y[begin:end]) for x, y in answers.items()]
            )
            for begin, end in zip(bounds[:-1], bounds[1:], strict=True)
        ]

    def _column(self, request, name):
        """Return a text per example, or a list of texts for dims other than [1]."""
        values = pb_utils.get_input_tensor_by_name(request, name).as_numpy()
        rows = [
            [value.decode("utf-8", "ignore") for value in row]
            for row in values.reshape(len(values), -1)
        ]
        return [row[0] for row in rows] if self.inputs[name] == [1] else rows

    def _answers(self, texts):
        """Return an array [examples, values] per output."""
        if "json" in self.outputs:
            answers = {"json": list(map(to_json, self.model.answers(texts)))}
        else:
            answers = self.model.predict(texts)
        return {
            name: as_rows(answers[name]).astype(dtype)
            for name, dtype in self.outputs.items()
        }


def to_json(answer):
    return json.dumps(answer, ensure_ascii=False)


def as_rows(values):
    """One value per example is a row of one."""
    values = np.asarray(values)
    values = values[:, None] if values.ndim == 1 else values
    return np.char.encode(values, "utf-8") if values.dtype.kind == "U" else values
