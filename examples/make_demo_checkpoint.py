"""Make the small checkpoint that the demo fine-tunes, in the albert_zh TF1 layout.

    python examples/make_demo_checkpoint.py --corpus text/*.txt --output DIR

Pretrains a model of a million parameters on plain text (a paragraph a line) with
masked characters and sentence order, for some minutes on a CPU. The checkpoint in
`examples/albert_demo_zh` was made so; its README says from what.
"""

import argparse
import collections
import pathlib

import keras
import numpy as np
import tensorflow as tf

import albert_tf

SIZE = {
    "num_layers": 4,
    "num_heads": 4,
    "embedding_dim": 64,
    "hidden_dim": 256,
    "intermediate_dim": 1024,
    "max_sequence_length": 128,
    # Pre-LN: a model this small, trained this briefly, learns more steadily.
    "norm_first": True,
}
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PUNCTUATION = "，。！？、；：“”‘’（）《》【】…—·～￥"


def make_vocabulary(lines):
    """Characters: GB2312's first level (the 3,755 most common), and the text's."""
    rows = range(0xB0, 0xD8)
    pairs = [bytes([row, column]) for row in rows for column in range(0xA1, 0xFF)]
    common = [pair.decode("gb2312", "ignore") for pair in pairs]
    ascii_characters = [chr(code).lower() for code in range(0x21, 0x7F)]
    pieces = ["##" + char for char in ascii_characters if char.isalnum()]
    counts = collections.Counter(char for line in lines for char in line)
    seen = [char for char, count in counts.items() if char >= "\u4e00" and count > 2]
    tokens = [
        *SPECIAL,
        *ascii_characters,
        *PUNCTUATION,
        *pieces,
        *common,
        *sorted(seen),
    ]
    return [token for token in dict.fromkeys(tokens) if token]


def examples(paragraphs, length, vocabulary_size, rng):
    """Yield (inputs, labels, weights): two consecutive segments, 15% masked."""
    while True:
        for row in rng.permutation(len(paragraphs)):
            tokens = paragraphs[row]
            room = rng.integers(24, length + 1) - 3
            start = rng.integers(0, max(1, len(tokens) - room + 1))
            tokens = tokens[start : start + room]
            if len(tokens) < 8:
                continue
            yield masked_example(tokens, length, vocabulary_size, rng)


def masked_example(tokens, length, vocabulary_size, rng):
    cut = rng.integers(2, len(tokens) - 1)
    swapped = rng.random() < 0.5
    first, second = tokens[:cut], tokens[cut:]
    if swapped:
        first, second = second, first
    ids = np.zeros(length, "int32")
    packed = np.concatenate([[2], first, [3], second, [3]])
    ids[: len(packed)] = packed
    segments = np.zeros(length, "int32")
    segments[len(first) + 2 : len(packed)] = 1

    most = max(1, round(0.15 * length))
    candidates = np.flatnonzero(ids > 4)
    count = min(most, max(1, round(0.15 * len(candidates))))
    positions = np.zeros(most, "int32")
    positions[:count] = np.sort(rng.choice(candidates, count, replace=False))
    weights = (np.arange(most) < count).astype("float32")
    labels = ids[positions]
    draw = rng.random(count)
    random_ids = rng.integers(len(SPECIAL), vocabulary_size, count)
    masked = positions[:count]
    ids[masked] = np.where(draw < 0.8, 4, np.where(draw < 0.9, random_ids, ids[masked]))
    inputs = {
        "token_ids": ids,
        "segment_ids": segments,
        "padding_mask": (np.arange(length) < len(packed)).astype("int32"),
        "mask_positions": positions,
    }
    targets = {"mlm_logits": labels, "sop_logits": np.int32(swapped)}
    return inputs, targets, {"mlm_logits": weights, "sop_logits": np.float32(1)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", nargs="+", required=True, help="text files")
    parser.add_argument("--output", required=True, help="directory to write")
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--sequence-length", type=int, default=96)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    keras.utils.set_random_seed(arguments.seed)

    lines = [
        line.strip()
        for path in arguments.corpus
        for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines()
        if line.strip()
    ]
    vocabulary = make_vocabulary(lines)
    tokenizer = albert_tf.preprocessing.WordPieceTokenizer(vocabulary)
    paragraphs = [row.numpy() for row in tokenizer(lines)]
    length = arguments.sequence_length
    size = len(vocabulary)
    stream = examples(paragraphs, length, size, np.random.default_rng(arguments.seed))
    signature = tf.nest.map_structure(
        lambda value: tf.TensorSpec(value.shape, value.dtype), next(stream)
    )
    dataset = tf.data.Dataset.from_generator(lambda: stream, output_signature=signature)
    dataset = dataset.batch(arguments.batch_size).prefetch(4)

    backbone = albert_tf.models.AlbertBackbone(vocabulary_size=size, **SIZE)
    pretrainer = albert_tf.models.AlbertPretrainer(backbone)
    optimizer = albert_tf.training.adamw(arguments.learning_rate, arguments.steps)
    metrics = {
        head: [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]
        for head in ("mlm_logits", "sop_logits")
    }
    pretrainer.compile(optimizer=optimizer, metrics=None, weighted_metrics=metrics)
    epochs = max(1, arguments.steps // 500)
    pretrainer.fit(
        dataset, steps_per_epoch=arguments.steps // epochs, epochs=epochs, shuffle=False
    )
    albert_tf.save_checkpoint(pretrainer, arguments.output, layout="albert_zh")
    path = pathlib.Path(arguments.output) / "vocab.txt"
    albert_tf.files.write_text(path, "\n".join(vocabulary) + "\n")


if __name__ == "__main__":
    main()
