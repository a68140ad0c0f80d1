"""Compare the accuracy of `fit` on batches of similar length with other libraries.

    python -m benchmarks.quality.fit_accuracy [--assets ../shared] [--train 3000]
        [--seeds 3]

Each engine trains the same small model from random weights with plain AdamW at the same
learning rate, so that only the batches differ: those of albert-tf contain texts of
similar length, those of the others do not. Reports the accuracy on ChnSentiCorp's dev
set. `benchmarks/speed/classify.py` measures the time.
"""

import argparse
import os
import pathlib

import keras
import numpy as np
import zh

from benchmarks.lib.compared_engines import KerasHub, Ours, Transformers, installed
from benchmarks.lib.compared_texts import read_reviews
from benchmarks.lib.harness import console, table_of, write_results

SHAPE = "small"
zh.SIZES[SHAPE] = {
    **zh.SIZES["albert_tiny_zh"],
    "num_layers": 2,
    "num_heads": 4,
    "hidden_dim": 128,
    "intermediate_dim": 512,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = os.environ.get("ALBERT_TF_ASSETS", "../shared")
    parser.add_argument("--assets", default=default, help="folder with the data")
    parser.add_argument("--train", type=int, default=3000)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--rate", type=float, default=5e-4)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    assets = pathlib.Path(arguments.assets)
    archive = assets / "data/chnsenticorp_clean.zip"
    x, y = read_reviews(archive, "train.tsv", arguments.train)
    dev_x, dev_y = read_reviews(archive, "dev.tsv")
    vocabulary = str(assets / "released/vocab/vocab_zh_21128.txt")
    engines = [x for x in (Ours, KerasHub, Transformers) if x in installed()]
    rows = {engine.name: {} for engine in engines}
    for seed in range(1, arguments.seeds + 1):
        for engine in engines:
            keras.utils.set_random_seed(seed)
            if engine is Transformers:
                import torch

                torch.manual_seed(seed)
            model = engine(SHAPE, vocabulary)
            model.fit(x, y, arguments.batch_size, arguments.epochs, arguments.rate)
            found = np.argmax(model.predict(dev_x, arguments.batch_size), axis=-1)
            rows[engine.name][f"seed {seed}"] = float(np.mean(found == dev_y))
        console.print(f"seed {seed}:", {name: row for name, row in rows.items()})
    for row in rows.values():
        row["mean"] = float(np.mean(list(row.values())))
    console.print(f"{len(x):,} training examples, {len(dev_x):,} dev examples")
    console.print(table_of(rows, rows[Ours.name]))
    settings = {**vars(arguments), "data": archive.name, "shape": zh.SIZES[SHAPE]}
    del settings["assets"]
    write_results("fit_accuracy", {"settings": settings, "rows": rows})


if __name__ == "__main__":
    main()
