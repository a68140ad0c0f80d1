# %% [markdown]
# # Serve a model: SavedModel, and ONNX without TensorFlow
#
# > 中文教程：[部署模型](../docs/tutorials/serving.zh.md)
#
# A trained classifier leaves Python in two ways: as a SavedModel for TensorFlow
# Serving, which takes strings and returns labels, and as an ONNX file that answers with
# NumPy and ONNX Runtime alone. This notebook writes both, runs each in a process of its
# own, and compares them. It takes a few minutes on one core.
#
# Start it in the folder `notebooks/`, after
# `pip install ./albert_tf_lite '.[cli,notebooks]'` in the folder above.
# The data are toy reviews, written for this repository.

# %%
import albert_tf  # first, because it hides TensorFlow's log lines

# isort: split
import json
import logging
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import keras
import numpy as np
import pandas

from albert_tf.data import read_labelled_texts

EXAMPLES = Path("../examples")
OUTPUT = Path(tempfile.mkdtemp())
logging.getLogger("tensorflow").setLevel(logging.WARNING)

# %% [markdown]
# ## 1. A classifier
#
# Trained on toy reviews, for a minute or two:

# %%
train = read_labelled_texts(EXAMPLES / "reviews/train.tsv")
test = read_labelled_texts(EXAMPLES / "reviews/test.tsv")
keras.utils.set_random_seed(1)
classifier = albert_tf.models.AlbertTextClassifier.from_checkpoint(
    "albert_micro_zh", labels=["差评", "好评"]
)
classifier.fit(train.x, train.labels, verbose=0)
outputs = classifier.predict(test.x, verbose=0)
loss, accuracy = classifier.evaluate(test.x, test.labels, verbose=0)
print(f"test accuracy {accuracy:.3f}")

# %% [markdown]
# ## 2. A SavedModel that takes strings
#
# `version="next"` numbers the versions as TensorFlow Serving expects, and never
# overwrites one. The folder is complete: graph, weights, vocabulary, labels, an example
# request, and requests to warm up the server.

# %%
path = albert_tf.export.saved_model(classifier, OUTPUT / "reviews", version="next")
for file in sorted(x for x in Path(path).rglob("*") if x.is_file()):
    print(f"{file.stat().st_size:>10,}  {file.relative_to(OUTPUT).as_posix()}")

# %% [markdown]
# `examples/serve.py` loads it with `tensorflow` and `tensorflow_text` only. A
# SavedModel returns bytes, as every TensorFlow graph does, and the script decodes them.


# %%
def run(*command):
    """Run a Python program and return its output and the seconds it took."""
    start = time.perf_counter()
    command = [sys.executable, *map(str, command)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout, time.perf_counter() - start


texts = ["房间很干净，下次还住", "等了一个小时，菜还是冷的"]
output, seconds_tensorflow = run(EXAMPLES / "serve.py", path, *texts)
print(output, end="")

# %% [markdown]
# To serve it, mount the folder into the container of TensorFlow Serving:
#
# ```sh
# MODELS=/path/to/serving docker compose -f deploy/compose.yaml up
# ```
#
# A client then sends this to `http://localhost:8501/v1/models/reviews:predict`, and
# receives strings (`examples/serving_client.py` does so by REST and gRPC):

# %%
print(json.dumps({"instances": [{"text": x} for x in texts]}, ensure_ascii=False))

# %% [markdown]
# ## 3. An ONNX file, without TensorFlow
#
# The file contains the network, the vocabulary and the labels. `albert_tf_lite`
# tokenizes in Python and runs it with ONNX Runtime. `precision="int8"` makes it less
# than half as large.

# %%
for precision in ("float32", "int8"):
    file = OUTPUT / f"{precision}.onnx"
    albert_tf.export.onnx(classifier, file, precision=precision)
    found = albert_tf.export.OnnxModel(file).predict(test.x)
    same = np.mean(found["label"] == np.array(classifier.labels)[outputs.argmax(-1)])
    print(f"{precision}: {file.stat().st_size:,} bytes, {same:.1%} of labels as Keras")

# %% [markdown]
# In a new process, nothing imports TensorFlow:

# %%
program = """
import sys
import albert_tf_lite
classify = albert_tf_lite.pipeline(sys.argv[1])
for text, answer in zip(sys.argv[2:], classify(sys.argv[2:])):
    print(answer["label"], f"{answer['score']:.3f}", text, sep="\\t")
print("TensorFlow is imported:", "tensorflow" in sys.modules)
"""
output, seconds_onnx = run("-c", program, OUTPUT / "int8.onnx", *texts)
print(output, end="")

# %% [markdown]
# From the start of the process to the answer:

# %%
seconds = {"TensorFlow": seconds_tensorflow, "ONNX Runtime": seconds_onnx}
pandas.Series(seconds, name="seconds").round(1).to_frame()

# %% [markdown]
# ## Next
#
# - [Which export](../docs/guides/which_export.md) fits: TensorFlow Serving, Triton, a
#   phone (LiteRT), or a plain Python process.
# - [TensorFlow Serving](../docs/guides/tensorflow_serving.md): versions, batching,
#   health.
# - `albert-tf export my_model OUTPUT` and `albert-tf predict my_model TEXT` do the same
#   on the command line.
