"""A SavedModel loaded as TensorFlow Serving does, by a TensorFlow of choice.

`tensorflow_model_server` is in no package registry. It restores the variables and runs
the signature by its tensor names, as the loader of TensorFlow 1 still does.
"""

import pickle
import subprocess
import sys

SCRIPT = """
import pickle, sys
import tensorflow as tf
import tensorflow_text

path, inputs = pickle.load(sys.stdin.buffer)
with tf.compat.v1.Session(graph=tf.Graph()) as session:
    graph = tf.compat.v1.saved_model.load(session, ["serve"], path)
    signature = graph.signature_def["serving_default"]
    feeds = {signature.inputs[name].name: x for name, x in inputs.items()}
    names = {name: x.name for name, x in signature.outputs.items()}
    pickle.dump(session.run(names, feeds), sys.stdout.buffer)
"""


def ask(path, python=sys.executable, **inputs):
    """Return the answers of the TensorFlow of `python`, a dict of arrays."""
    finished = subprocess.run(
        [python, "-c", SCRIPT],
        input=pickle.dumps((str(path), inputs)),
        capture_output=True,
        timeout=300,
    )
    assert finished.returncode == 0, finished.stderr.decode()
    return pickle.loads(finished.stdout)
