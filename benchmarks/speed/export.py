"""Compare the export formats with the SavedModel: size, latency, agreement.

    python -m benchmarks.speed.export VOCAB [--sizes albert_tiny_zh albert_base_zh]
        [--threads 1] [--seconds 10] [--model DIRECTORY --texts FILE ...]

For each size, exports a classifier with random weights to every format and runs single
texts of 32 and 128 tokens in turn, from ids to logits, on the given number of threads.
`difference` is the largest difference from the logits of Keras. With `--model`, a
directory written by `albert-tf finetune`, and labelled `--texts`, the script also
prints how often each format agrees with Keras, and its accuracy.
"""

import argparse
import os
import pathlib
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import albert_tf
from albert_tf.data import read_labelled_texts
from albert_tf.export import LiteRTModel, OnnxModel, litert, onnx, saved_model
from albert_tf.export.engines import largest_difference
from albert_tf_lite.cpus import available_cpus
import numpy as np
from rich.console import Console
from rich.table import Table
import tensorflow as tf
import zh

from benchmarks.lib.harness import machine

LENGTHS = (32, 128)


class ServedModel:
    """SavedModel of a classifier with methods of `LiteRTModel`."""

    def __init__(self, path, threads):
        self.model = tf.saved_model.load(str(path))
        self.signatures = self.model.signatures

    def call(self, features):
        tensors = {name: tf.constant(x) for name, x in features.items()}
        answers = self.signatures["tokens"](**tensors)
        return answers["probabilities"].numpy()

    def predict(self, texts):
        parts = texts if isinstance(texts, tuple) else (texts,)
        inputs = {
            name: tf.constant(part)
            for name, part in zip(("text", "text_b"), parts, strict=False)
        }
        labels = self.signatures["serving_default"](**inputs)["label"]
        return {"label": np.array([label.decode() for label in labels.numpy()])}


TEXTS = ["房间很干净，服务员也热情。", "太差了！", "今天天气不错，去公园走走。" * 9]

# Writer, options and reader (called with a path and a number of threads) per format.
FORMATS = {
    "SavedModel float32": (saved_model, {}, ServedModel),
    **{
        f"LiteRT {precision}": (litert, {"precision": precision}, LiteRTModel)
        for precision in ("float32", "float16", "int8")
    },
    **{
        f"ONNX {precision}": (onnx, {"precision": precision}, OnnxModel)
        for precision in ("float32", "int8")
    },
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("vocabulary", help="vocab.txt with 21,128 tokens")
    parser.add_argument("--sizes", nargs="*", default=["albert_tiny_zh"])
    parser.add_argument("--threads", type=int, default=available_cpus())
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--model", help="directory written by `albert-tf finetune`")
    parser.add_argument("--texts", nargs="*", default=[], help="labelled texts (files)")
    parser.add_argument("--examples", type=int, default=2000)
    arguments = parser.parse_args()
    tf.config.threading.set_intra_op_parallelism_threads(arguments.threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    console = Console(width=100)
    console.print(f"{machine()}; {arguments.threads} threads")
    for size in arguments.sizes:
        backbone = albert_tf.models.AlbertBackbone(**zh.SIZES[size])
        task = albert_tf.models.AlbertTextClassifier.from_backbone(
            backbone, arguments.vocabulary, num_classes=2, sequence_length=256
        )
        with tempfile.TemporaryDirectory() as folder:
            files = write_all(task, folder)
            console.print(speed_table(size, task, files, arguments))
    if arguments.model:
        task = albert_tf.models.AlbertTextClassifier.from_preset(arguments.model)
        with tempfile.TemporaryDirectory() as folder:
            files = write_all(task, folder)
            console.print(agreement_table(task, files, arguments))


def write_all(task, folder):
    """Export to every format; return a dict from format to path."""
    files = {}
    for name, (write, options, _) in FORMATS.items():
        files[name] = pathlib.Path(folder, name.replace(" ", "_"), "1")
        files[name].parent.mkdir()
        write(task, files[name], **options)
    return files


def bytes_of(path):
    files = [path] if path.is_file() else path.rglob("*")
    return sum(file.stat().st_size for file in files if file.is_file())


def opened(files, threads):
    return {name: FORMATS[name][2](path, threads) for name, path in files.items()}


def example_features(task, length):
    """Return the inputs of a task for one example of `length` random tokens."""
    features = {name: np.zeros((1, length), "int32") for name in task.input}
    rng = np.random.default_rng(0)
    features["token_ids"][:] = rng.integers(task.backbone.vocabulary_size, size=length)
    features["padding_mask"][:] = 1
    return features


def latencies(models, features, seconds):
    """Return the median milliseconds of models by name, which take turns."""
    times = {name: [] for name in models}
    rounds, end = 0, time.perf_counter() + seconds
    while rounds < 8 or time.perf_counter() < end:
        for name, model in models.items():
            start = time.perf_counter()
            model.call(features)
            times[name].append(1000 * (time.perf_counter() - start))
        rounds += 1
    # The first call prepares some engines.
    return {name: float(np.median(taken[1:])) for name, taken in times.items()}


def speed_table(size, task, files, arguments):
    weights = sum(weight.numpy().nbytes for weight in task.weights)
    table = Table(
        title=f"{size}, {weights / 1e6:.1f} MB of weights", title_justify="left"
    )
    for column in ("", "MB", "of weights", "difference"):
        table.add_column(column, no_wrap=True)
    models = opened(files, arguments.threads)
    # The milliseconds by length, then by model.
    times = {}
    for length in LENGTHS:
        table.add_column(f"ms, {length} tokens")
        table.add_column("ratio")
        features = example_features(task, length)
        times[length] = latencies(models, features, arguments.seconds * len(models))
    reference = next(iter(models))
    for name, model in models.items():
        cells = []
        for taken in times.values():
            ratio = taken[name] / taken[reference]
            cells += [f"{taken[name]:.1f}", f"{ratio:.2f}"]
        count = bytes_of(files[name])
        # A SavedModel returns probabilities, which are not compared.
        is_served = isinstance(model, ServedModel)
        difference = 0.0 if is_served else largest_difference(task, model, TEXTS)
        share = f"{count / weights:.3f}"
        table.add_row(name, f"{count / 1e6:.2f}", share, f"{difference:.1e}", *cells)
    return table


def agreement_table(task, files, arguments):
    texts, labels = read_sample(arguments.texts, arguments.examples)
    title = f"{arguments.model}, {len(labels)} examples"
    table = Table(
        "", "MB", "labels as Keras", "accuracy", title=title, title_justify="left"
    )
    logits = task.predict(texts, verbose=0)
    of_keras = np.array(task.class_names)[logits.argmax(-1)]
    table.add_row("Keras", "", "", f"{np.mean(of_keras == labels):.4f}")
    for name, model in opened(files, arguments.threads).items():
        answers = model.predict(texts)["label"]
        table.add_row(
            name,
            f"{bytes_of(files[name]) / 1e6:.2f}",
            f"{np.mean(answers == of_keras):.4f}",
            f"{np.mean(answers == labels):.4f}",
        )
    return table


def read_sample(paths, count):
    """Return texts, or two columns of pairs, and labels: a random sample of files."""
    labels, columns = [], []
    for path in paths:
        data = read_labelled_texts(path)
        labels += map(str, data.labels)
        parts = data.x if data.pairs else (data.x,)
        columns = columns or [[] for _ in parts]
        for column, part in zip(columns, parts, strict=True):
            column += part
    chosen = np.random.default_rng(1).permutation(len(labels))[:count]
    sample = [[column[i] for i in chosen] for column in columns]
    texts = sample[0] if len(sample) == 1 else tuple(sample)
    return texts, np.array(labels)[chosen]


if __name__ == "__main__":
    main()
