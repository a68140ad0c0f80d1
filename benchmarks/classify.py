"""Strings in, labels out: ours and KerasHub in turn, on LCQMC pairs.

    python benchmarks/classify.py [--assets ../shared] [--examples 1024] [--rounds 3]

Both have the shape of albert_tiny, random weights, the same vocabulary, batch size
and texts. KerasHub is used as its guide documents it: `AlbertTextClassifier` with
its default `compile`, texts padded to a fixed length of 128. (Its ALBERT tokenizer
reads SentencePiece only; its BERT preprocessor is what reads a Chinese vocabulary.)
A first run of each, which traces and compiles, is not counted.
"""

import argparse
import os
import pathlib
import statistics
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import keras_hub
import numpy as np
from rich.console import Console
from rich.table import Table

import albert_tf
import zh

SEQUENCE_LENGTH = 128


def ours(vocabulary):
    backbone = albert_tf.models.AlbertBackbone(**zh.SIZES["albert_tiny_zh"])
    return albert_tf.models.AlbertTextClassifier.from_backbone(
        backbone, vocabulary, num_classes=2, sequence_length=SEQUENCE_LENGTH
    )


def keras_hub_guide(vocabulary):
    names = ("num_layers", "num_heads", "embedding_dim", "hidden_dim")
    size = zh.SIZES["albert_tiny_zh"]
    backbone = keras_hub.models.AlbertBackbone(
        **{name: size[name] for name in names},
        vocabulary_size=size["vocabulary_size"],
        intermediate_dim=size["intermediate_dim"],
    )
    preprocessor = keras_hub.models.BertTextClassifierPreprocessor(
        keras_hub.models.BertTokenizer(vocabulary=vocabulary, lowercase=True),
        sequence_length=SEQUENCE_LENGTH,
    )
    return keras_hub.models.AlbertTextClassifier(
        backbone, num_classes=2, preprocessor=preprocessor
    )


def read_pairs(path, examples, seed=1):
    lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines]
    chosen = np.random.default_rng(seed).permutation(len(rows))[:examples]
    first, second, labels = zip(*(rows[row] for row in chosen), strict=True)
    return (list(first), list(second)), np.array(labels, "int32")


def seconds(function):
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def compare(models, job, rounds, console):
    """The median seconds of each model, run in turn, and all ratios."""
    times = {name: [] for name in models}
    for model in models.values():
        job(model)
    for number in range(rounds):
        for name, model in models.items():
            times[name].append(seconds(lambda model=model: job(model)))
        console.print(
            f"  round {number + 1}: "
            + ", ".join(f"{name} {times[name][-1]:.2f} s" for name in times)
        )
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = os.environ.get("ALBERT_TF_ASSETS", "../shared")
    parser.add_argument("--assets", default=default, help="folder with the data")
    parser.add_argument("--examples", type=int, default=1024)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    assets = pathlib.Path(arguments.assets)
    x, y = read_pairs(assets / "data/lcqmc/dev.tsv", arguments.examples)
    vocabulary = str(assets / "released/vocab/vocab_zh_21128.txt")
    console = Console(highlight=False)
    keras.utils.set_random_seed(1)
    models = {"albert-tf": ours(vocabulary), "KerasHub": keras_hub_guide(vocabulary)}
    tokens, _, _ = models["albert-tf"].preprocessor.tokenize_and_pack(x)
    mean = float(np.mean(tokens.row_lengths()))
    console.print(
        f"{len(y):,} pairs of {mean:.1f} tokens, batch {arguments.batch_size}, "
        f"{os.cpu_count()} cores, keras {keras.__version__}, "
        f"keras-hub {keras_hub.__version__}"
    )

    options = {"batch_size": arguments.batch_size, "verbose": 0}
    jobs = {
        "predict": lambda model: model.predict(x, **options),
        "fit": lambda model: model.fit(x, y, **options),
    }
    table = Table("", *(f"{name}, pairs/s" for name in models), "ratio", "min", "max")
    for name, job in jobs.items():
        console.print(name)
        times = compare(models, job, arguments.rounds, console)
        ratios = [
            theirs / own
            for own, theirs in zip(times["albert-tf"], times["KerasHub"], strict=True)
        ]
        rates = [f"{len(y) / statistics.median(times[model]):,.0f}" for model in models]
        spread = (statistics.median(ratios), min(ratios), max(ratios))
        table.add_row(name, *rates, *(f"{ratio:.2f}" for ratio in spread))
    console.print(table)


if __name__ == "__main__":
    main()
