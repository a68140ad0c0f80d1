"""Measure the latency of one text per call, from a string to its label.

    python -m benchmarks.speed.latency [--assets ../shared] [--size albert_tiny_zh]

Prints the median over many calls with a text of 32 tokens. The engines take turns, with
several calls in a row, because the threads of some wait busily after each call. The
first call of a turn does not count.
`SavedModel` is the export that TensorFlow Serving runs. KerasHub is measured by
`predict_on_batch` of a compiled model. ONNX Runtime, LiteRT and transformers are
included if they are installed.
"""

import argparse
import functools
import os
import pathlib
import statistics
import tempfile
import time

import albert_tf
import tensorflow as tf
import zh

from benchmarks.lib.compared_engines import (
    KerasHub,
    LiteRTInt8,
    OnnxInt8,
    OnnxModel,
    Ours,
    Transformers,
    installed,
)
from benchmarks.lib.harness import console, matrix_rate, table_of, write_results


def calls(size, vocabulary, text):
    """Return one function per engine that predicts the text, and the SavedModel."""
    ours = Ours(size, vocabulary).model
    directory = pathlib.Path(tempfile.mkdtemp(), "1")
    albert_tf.export.saved_model(ours, directory)
    loaded = tf.saved_model.load(str(directory))
    serve = loaded.signatures["serving_default"]
    texts = tf.constant([text])
    theirs = KerasHub(size, vocabulary).model
    predictions = {
        "SavedModel": lambda: serve(text=texts)["probabilities"].numpy(),
        "albert-tf predict": lambda: ours.predict([text], verbose=0),
        # Takes strings because the model includes its preprocessor.
        "KerasHub predict_on_batch": lambda: theirs.predict_on_batch(texts),
    }
    for engine in installed():
        if engine in (Transformers, OnnxModel, OnnxInt8, LiteRTInt8):
            model = engine(size, vocabulary)
            predictions[engine.name] = functools.partial(model.predict, [text], 1)
    return predictions, loaded


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = os.environ.get("ALBERT_TF_ASSETS", "../shared")
    parser.add_argument("--assets", default=default, help="folder with the vocabulary")
    parser.add_argument("--size", default="albert_tiny_zh", choices=zh.SIZES)
    parser.add_argument("--calls", type=int, default=20, help="per round")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    vocabulary = f"{arguments.assets}/released/vocab/vocab_zh_21128.txt"
    text = "今天天气很好我们一起去公园里走走然后再回家吃饭好不好呀朋友"[:30]
    # Keep the SavedModel alive: its signature does not hold the variables.
    predictions, _alive = calls(arguments.size, vocabulary, text)
    times = {name: [] for name in predictions}
    rate = matrix_rate()
    # The first round is a warm-up.
    for number in range(arguments.rounds + 1):
        for name, call in predictions.items():
            call()
            for _ in range(arguments.calls if number else 4):
                start = time.perf_counter()
                call()
                if number:
                    times[name].append(1000 * (time.perf_counter() - start))
    slow = statistics.median(times["KerasHub predict_on_batch"])
    rows = {
        name: {
            "ms": statistics.median(values),
            "of KerasHub": statistics.median(values) / slow,
            "fastest": min(values),
            "90%": sorted(values)[int(0.9 * len(values))],
        }
        for name, values in times.items()
    }
    console.print(table_of(rows, ("ms", "of KerasHub", "fastest", "90%")))
    calls_of_each = arguments.calls * arguments.rounds
    settings = {"size": arguments.size, "calls": calls_of_each, "tokens": 32}
    name = f"latency_{arguments.size}"
    write_results(name, {"settings": settings, "matrix_gflops": rate, "rows": rows})


if __name__ == "__main__":
    main()
