"""Train with Keras' own tools: tf.data, callbacks, an optimizer: keras_fit.py [LOGS]

Stops when the accuracy on the validation data no longer rises. If tensorboard is
installed, the curves are written to the folder LOGS, by default a temporary one. The
data are toy reviews, written for this repository.
"""

import importlib.util
import pathlib
import sys
import tempfile

import albert_tf
from albert_tf.data import read_labelled_texts
import keras
import tensorflow as tf

HERE = pathlib.Path(__file__).parent
MOST = 1000  # reviews, for a quick trial


def dataset(name):
    data = read_labelled_texts(HERE / f"reviews/{name}.tsv")
    columns = data.x[:MOST], data.labels[:MOST]
    batches = tf.data.Dataset.from_tensor_slices(columns)
    batches = batches.shuffle(MOST, seed=1).batch(16)
    # Batches of similar length have little padding.
    return albert_tf.models.bucket_by_length(batches, classifier.preprocessor)


keras.utils.set_random_seed(1)
classifier = albert_tf.models.AlbertTextClassifier.from_checkpoint(
    HERE / "albert_micro_zh", labels=["差评", "好评"]
)
classifier.compile(
    optimizer=keras.optimizers.AdamW(2e-4),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
callbacks = [
    keras.callbacks.EarlyStopping("val_accuracy", patience=1, restore_best_weights=True)
]
if importlib.util.find_spec("tensorboard"):
    logs = sys.argv[1] if sys.argv[1:] else tempfile.mkdtemp()
    callbacks.append(keras.callbacks.TensorBoard(logs))
    print(f"tensorboard --logdir {logs}")
history = classifier.fit(
    dataset("train"),
    validation_data=dataset("dev"),
    epochs=6,
    callbacks=callbacks,
    verbose=2,
).history
best = max(history["val_accuracy"])
print(f"{len(history['loss'])} epochs, validation accuracy of the best {best:.4f}")
scores = classifier.evaluate(dataset("test"), verbose=0, return_dict=True)
print(f"test accuracy {scores['accuracy']:.4f}")
