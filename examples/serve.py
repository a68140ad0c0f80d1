"""Predict with an exported model, without this package: serve.py MODEL TEXT...

For a model of text pairs, separate the two texts of a TEXT by a tab.
"""

import sys

import tensorflow as tf
import tensorflow_text  # noqa: F401  registers the operations of the tokenizer

if len(sys.argv) < 3:
    sys.exit(__doc__)
directory, *texts = sys.argv[1:]
ask = tf.saved_model.load(directory).signatures["serving_default"]
if "text_b" in ask.structured_input_signature[1]:
    first, second = zip(*[text.partition("\t")[::2] for text in texts], strict=True)
    answers = ask(text=tf.constant(first), text_b=tf.constant(second))
else:
    answers = ask(text=tf.constant(texts))
answers = {name: tensor.numpy() for name, tensor in answers.items()}
for i, text in enumerate(texts):
    if "labels" in answers:  # A multi-label model.
        label = "|".join(x.decode() for x in answers["labels"][i] if x)
    else:
        label = answers["label"][i].decode()
    print(f"{label}\t{answers['probabilities'][i].max():.3f}\t{text}")
