"""Ask an exported model, with nothing of this package: serve.py MODEL TEXT..."""

import sys

import tensorflow as tf
import tensorflow_text  # noqa: F401  registers the operations of the tokenizer

if len(sys.argv) < 3:
    sys.exit(__doc__)
directory, *texts = sys.argv[1:]
ask = tf.saved_model.load(directory).signatures["serving_default"]
answers = ask(text=tf.constant(texts))
for text, label, row in zip(
    texts, answers["label"].numpy(), answers["probabilities"].numpy(), strict=True
):
    print(f"{label.decode()}\t{row.max():.3f}\t{text}")
