"""Classify reviews as positive or negative: text_classification.py [FOLDER]

FOLDER has train.tsv and test.tsv with one label and text per line. The default is
`reviews`, which `make demo` uses with the command line.
"""

import pathlib
import sys

import keras

import albert_tf
from albert_tf.data import class_names, read_labelled_texts
from albert_tf.evaluation import classification_scores

HERE = pathlib.Path(__file__).parent
folder = pathlib.Path(sys.argv[1]) if sys.argv[1:] else HERE / "reviews"
train = read_labelled_texts(folder / "train.tsv")
test = read_labelled_texts(folder / "test.tsv")

keras.utils.set_random_seed(1)
classifier = albert_tf.models.AlbertTextClassifier.from_checkpoint(
    HERE / "albert_micro_zh", labels=class_names(train.labels)
)
classifier.fit(train.x, train.labels, epochs=3, verbose=2)


def predict(texts):
    # Reviews longer than the model's maximum length are split into windows.
    outputs = classifier.predict(texts, windows="mean", verbose=0)
    return [label.decode() for label in classifier.answers(outputs)["label"].numpy()]


scores = classification_scores(test.labels, predict(test.x))
print(", ".join(f"{name} {value:.4f}" for name, value in scores.items()))
text = "房间很干净，早餐也不错，下次还住这里"
print(text, predict([text])[0], sep="\t")
