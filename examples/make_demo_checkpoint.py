"""Make the small checkpoint that the demo fine-tunes, in the albert_zh TF1 layout.

    python examples/make_demo_checkpoint.py examples/reviews/train.tsv OUTPUT

Writes albert_config.json, albert_model.ckpt.* and vocab.txt, with the encoder and both
pretraining heads. The weights are random, drawn from a seed: the checkpoint shows the
way from a TensorFlow 1 file to a served model and knows no Chinese.
"""

import collections
import pathlib
import sys

import keras

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


def make_vocabulary(text):
    """Characters: GB2312's first level (the 3,755 most common), and the text's."""
    rows = range(0xB0, 0xD8)
    pairs = [bytes([row, column]) for row in rows for column in range(0xA1, 0xFF)]
    common = [pair.decode("gb2312", "ignore") for pair in pairs]
    ascii_characters = [chr(code).lower() for code in range(0x21, 0x7F)]
    pieces = ["##" + char for char in ascii_characters if char.isalnum()]
    seen = [char for char, count in collections.Counter(text).items() if count > 1]
    rare = sorted(char for char in seen if char >= "\u4e00")
    tokens = [*SPECIAL, *ascii_characters, *PUNCTUATION, *pieces, *common, *rare]
    return [token for token in dict.fromkeys(tokens) if token]


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    source, output = map(pathlib.Path, sys.argv[1:])
    keras.utils.set_random_seed(1)
    vocabulary = make_vocabulary(source.read_text(encoding="utf-8"))
    backbone = albert_tf.models.AlbertBackbone(len(vocabulary), **SIZE)
    pretrainer = albert_tf.models.AlbertPretrainer(backbone)
    albert_tf.save_checkpoint(pretrainer, output, layout="albert_zh")
    text = "\n".join(vocabulary) + "\n"
    (output / "vocab.txt").write_text(text, encoding="utf-8")
    print(f"{output}: {len(vocabulary)} tokens, {backbone.count_params():,} parameters")


if __name__ == "__main__":
    main()
