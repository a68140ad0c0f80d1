"""Measure the milliseconds of one text on one core, for models of published accuracy.

    python -m benchmarks.speed.one_core [--calls 30] [--shared]

The bundled classifier, TF-IDF with logistic regression, and the shapes of
`benchmarks/pages/known_models.json` with random weights, as ONNX files in float32 with
one thread of ONNX Runtime. Each layer has its weights, as in BERT. The vocabulary is
that of the bundled checkpoint, which does not change the time. TF-IDF is trained on
`examples/reviews`. Each call is one text of 100 tokens, from the string to the label.
All take turns. `ms` is the median processor time of a call, which other programs hardly
affect, `wall_ms` that by the clock. `--shared` notes that other programs ran.

`make figures` draws `results/accuracy.png` from these times.
"""

import argparse
import csv
import json
import os
import pathlib
import statistics
import tempfile
import time

from benchmarks.lib.paths import EXAMPLES, KNOWN_MODELS, MICRO

TRAIN = EXAMPLES / "reviews" / "train.tsv"
OURS, BASELINE = "albert_micro_zh", "TF-IDF"
TOKENS = 100


def read_reviews():
    with TRAIN.open(encoding="utf-8", newline="") as file:
        rows = [*csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)]
    return [row["text"] for row in rows], [row["label"] for row in rows]


def exported(task, folder):
    """Return the prediction of a task in ONNX Runtime on one thread, and its size."""
    import albert_tf

    path = pathlib.Path(folder, "model.onnx")
    albert_tf.export.onnx(task, path)
    model = albert_tf.export.OnnxModel(path, threads=1)

    def predict(text):
        return model.predict([text])

    return predict, task.backbone.count_params()


def classifier(shape):
    """Return a classifier of a shape of BERT, with random weights."""
    from albert_tf import models
    import zh

    layers, width, heads, inner, embedding = shape
    backbone = models.AlbertBackbone(
        vocabulary_size=zh.SIZES[OURS]["vocabulary_size"],
        num_layers=layers,
        hidden_dim=width,
        num_heads=heads,
        intermediate_dim=inner,
        embedding_dim=embedding,
        num_attention_groups=layers,
        num_ffn_groups=layers,
    )
    return models.AlbertTextClassifier.from_backbone(
        backbone, str(MICRO / "vocab.txt"), num_classes=2, sequence_length=128
    )


def baseline(texts, labels):
    """Return the prediction of TF-IDF with logistic regression, and its size."""
    from sklearn.pipeline import make_pipeline

    from benchmarks.lib.baselines import REGRESSION, TFIDF

    model = make_pipeline(TFIDF, REGRESSION).fit(texts, labels)

    def predict(text):
        return model.predict([text])

    return predict, int(model[-1].coef_.size)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=30, help="of each model")
    parser.add_argument("--shared", action="store_true", help="other programs run")
    arguments = parser.parse_args()
    # Before ONNX Runtime and NumPy count the cores.
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

    from albert_tf import models

    from benchmarks.lib.harness import console, table_of, write_results

    texts, labels = read_reviews()
    # A Chinese character is a token, and two are added.
    text = "，".join(x for x in texts if x.isalpha())[: TOKENS - 2]
    known = json.loads(KNOWN_MODELS.read_text("utf-8"))["models"]
    # The function of each model, and the number of its parameters.
    models_by_name = {BASELINE: baseline(texts, labels)}
    with tempfile.TemporaryDirectory() as folder:
        ours = models.AlbertTextClassifier.from_checkpoint(f"{OURS}:sentiment")
        models_by_name[OURS] = exported(ours, folder)
        for name, model in known.items():
            models_by_name[name] = exported(classifier(model["shape"]), folder)
    cpu_seconds = {name: [] for name in models_by_name}
    wall_seconds = {name: [] for name in models_by_name}
    # The first call of each is a warm-up.
    for number in range(arguments.calls + 1):
        for name, (call, _) in models_by_name.items():
            wall, cpu = time.perf_counter(), time.process_time()
            call(text)
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
            if number:
                cpu_seconds[name].append(cpu)
                wall_seconds[name].append(wall)
    rows = {
        name: {
            "ms": 1000 * statistics.median(cpu_seconds[name]),
            "wall_ms": 1000 * statistics.median(wall_seconds[name]),
            "parameters": parameters,
        }
        for name, (_, parameters) in models_by_name.items()
    }
    console.print(table_of(rows, ("ms", "wall_ms", "parameters")))
    settings = {**vars(arguments), "tokens": TOKENS}
    write_results("one_core", {"settings": settings, "rows": rows})


if __name__ == "__main__":
    main()
