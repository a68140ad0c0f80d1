"""The loader that TensorFlow Serving uses, from C, without Python.

`tensorflow_model_server` is in no package registry. What it does with a SavedModel is
in TensorFlow's C library, which each wheel brings, as far as strings to answers.
"""

import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest
from tensorflow.core.protobuf import saved_model_pb2

SOURCE = pathlib.Path(__file__).with_suffix(".c")
# Of those that TensorFlow Serving links (`tensorflow_text:ops_lib`) what exports use.
TEXT_LIBRARIES = (
    "_fast_wordpiece_tokenizer",
    "_normalize_ops",
    "_sentencepiece_tokenizer",
)
DTYPES = {1: np.float32, 3: np.int32, 7: object, 9: np.int64, 10: bool}
FIND = """
import importlib.util as util
print(util.find_spec("tensorflow").submodule_search_locations[0])
print(util.find_spec("tensorflow_text").submodule_search_locations[0])
"""


class Loader:
    """The program, built for the TensorFlow of an environment.

    Args:
        folder: path to build in.
        python: path of the environment's Python.
    """

    def __init__(self, folder, python=sys.executable):
        compiler = shutil.which("gcc") or shutil.which("cc")
        if compiler is None:
            pytest.skip("there is no C compiler")
        found = subprocess.run(
            [python, "-c", FIND], capture_output=True, text=True, check=True
        )
        self.tensorflow, text = map(pathlib.Path, found.stdout.split("\n")[:2])
        operations = text / "python" / "ops"
        self.libraries = [operations / f"{name}.so" for name in TEXT_LIBRARIES]
        self.program = folder / "serving_loader"
        wheel = str(self.tensorflow)
        command = [compiler, "-O1", "-o", self.program, SOURCE, f"-I{wheel}/include"]
        command += [f"-L{wheel}", "-l:libtensorflow_cc.so.2"]
        command += ["-l:libtensorflow_framework.so.2", f"-Wl,-rpath,{wheel}"]
        subprocess.run(command, check=True)

    def ask(self, model, signature="serving_default", **inputs):
        """The answers to a request, dicts of arrays.

        Args:
            model: path of a SavedModel.
            signature: string, its name.
            **inputs: arrays or lists of strings or ints.
        """
        proto = saved_model_pb2.SavedModel.FromString(
            (pathlib.Path(model) / "saved_model.pb").read_bytes()
        )
        names = proto.meta_graphs[0].signature_def[signature]
        lines = []
        for name, value in inputs.items():
            value = np.asarray(value, object)
            is_text = names.inputs[name].dtype == 7
            sizes = (value.ndim, *value.shape)
            place = names.inputs[name].name.replace(":", " ")
            kind = "string" if is_text else "int32"
            lines.append(f"in {place} {kind} {' '.join(map(str, sizes))}")
            lines += [_hex(x) if is_text else str(x) for x in value.ravel()]
        for info in names.outputs.values():
            lines.append(f"out {info.name.replace(':', ' ')}")
        finished = subprocess.run(
            [self.program, model, *self.libraries],
            input="".join(f"{line}\n" for line in lines),
            capture_output=True,
            text=True,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"},
            timeout=300,
        )
        if finished.returncode:
            raise RuntimeError(finished.stderr)
        rows = iter(finished.stdout.split("\n"))
        return {name: _tensor(rows) for name in names.outputs}


def _hex(text):
    return (text if isinstance(text, bytes) else text.encode()).hex()


def _tensor(rows):
    kind, _, *shape = map(int, next(rows).split())
    values = [next(rows) for _ in range(int(np.prod(shape)))]
    if kind == 7:
        values = [bytes.fromhex(value) for value in values]
    elif kind == 10:
        values = [value == "1" for value in values]
    return np.array(values, DTYPES[kind]).reshape(shape)
