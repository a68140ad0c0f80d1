"""Compare tokenizer throughput in MB/s with KerasHub and Hugging Face.

    python -m benchmarks.speed.tokenizers_rate [--assets ../shared] [--rounds 5]

Tokenizes the sentences of LCQMC. The TensorFlow tokenizers run in a graph on batches of
1,024, as in `tf.data`. Hugging Face's `tokenizers`, if installed, runs `encode_batch`.
"""

import argparse
import functools
import importlib.util
import os
import pathlib

import albert_tf
import keras_hub
import tensorflow as tf

from benchmarks.lib.compared_texts import read_pairs
from benchmarks.lib.harness import (
    compared,
    console,
    in_turn,
    table_of,
    write_results,
)


def in_graph(tokenizer):
    spec = [tf.TensorSpec([None], tf.string)]
    return tf.function(lambda texts: tokenizer(texts), input_signature=spec)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = os.environ.get("ALBERT_TF_ASSETS", "../shared")
    parser.add_argument("--assets", default=default, help="folder with the data")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    assets = pathlib.Path(arguments.assets)
    (first, second), _ = read_pairs(assets / "data/lcqmc/dev.tsv", None)
    texts = [*first, *second]
    size = sum(len(text.encode()) for text in texts)
    batches = [
        tf.constant(texts[start : start + 1024]) for start in range(0, len(texts), 1024)
    ]
    vocabulary = str(assets / "released/vocab/vocab_zh_21128.txt")
    ours = albert_tf.tokenizers.WordPieceTokenizer(vocabulary)
    theirs = keras_hub.models.BertTokenizer(vocabulary=vocabulary, lowercase=True)

    def tokenize_all(graph):
        for batch in batches:
            graph(batch)

    jobs = {
        "albert-tf": functools.partial(tokenize_all, in_graph(ours)),
        "KerasHub": functools.partial(tokenize_all, in_graph(theirs)),
    }
    if importlib.util.find_spec("tokenizers"):
        from tokenizers import BertWordPieceTokenizer

        fast = BertWordPieceTokenizer(vocabulary, lowercase=True)
        jobs["tokenizers"] = functools.partial(fast.encode_batch, texts)
    rows = compared(in_turn(jobs, arguments.rounds), to="KerasHub")
    for row in rows.values():
        row["MB/s"] = size / row["seconds"] / 1e6
    console.print(table_of(rows, ("MB/s", "ratio", "smallest", "largest")))
    write_results("tokenizers", {"megabytes": size / 1e6, "rows": rows})


if __name__ == "__main__":
    main()
