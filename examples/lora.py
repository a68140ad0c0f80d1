"""Fine-tune with LoRA: train less than 1% of the weights and keep them in a file.

The encoder is frozen but for low-rank matrices beside query, key and value. The data
are toy reviews, written for this repository: 1,200 to train on, 298 to test on.
"""

import os
import pathlib
import tempfile

import albert_tf
from albert_tf.data import read_labelled_texts
import keras
import numpy as np

HERE = pathlib.Path(__file__).parent
files = [HERE / f"reviews/{name}.tsv" for name in ("train", "test")]
train, test = map(read_labelled_texts, files)


def new_classifier():
    return albert_tf.models.AlbertTextClassifier.from_checkpoint(
        HERE / "albert_micro_zh", labels=["差评", "好评"]
    )


keras.utils.set_random_seed(1)
classifier = new_classifier()
classifier.backbone.enable_lora(8)
classifier.compile(learning_rate=4e-3, metrics=["accuracy"])
count = sum(np.prod(weight.shape) for weight in classifier.trainable_weights)
print(f"{count:,} of {classifier.count_params():,} weights are trained")
classifier.fit(train.x[:1200], train.labels[:1200], epochs=4, verbose=2)
loss, accuracy = classifier.evaluate(test.x, test.labels, verbose=0)
print(f"test accuracy {accuracy:.4f}")

with tempfile.TemporaryDirectory() as folder:
    file = os.path.join(folder, "reviews.lora.h5")
    classifier.backbone.save_lora_weights(file)
    print(f"LoRA weights: {os.path.getsize(file):,} bytes")
    # They belong to the bundled checkpoint, and the head comes separately.
    loaded = new_classifier()
    loaded.backbone.load_lora_weights(file)
loaded.output_dense.set_weights(classifier.output_dense.get_weights())
# A plain model, with LoRA folded into its weights.
plain = albert_tf.models.AlbertTextClassifier.from_checkpoint(classifier)
outputs = [x.predict(test.x, verbose=0) for x in (classifier, loaded, plain)]
differences = [float(np.abs(x - outputs[0]).max()) for x in outputs[1:]]
print(f"loaded: {differences[0]:.1e}, folded: {differences[1]:.1e} from the original")
