"""Classify headlines by topic: topic_classification.py [FILE]

FILE (.tsv, .csv or .jsonl, such as THUCNews) has one label and text per line; the last
fifth is for testing. The default is `data/topics/headlines.tsv` with 240 headlines of
ten topics.
"""

import pathlib
import sys

import keras

import albert_tf
from albert_tf.data import class_names, read_labelled_texts
from albert_tf.evaluation import classification_scores

HERE = pathlib.Path(__file__).parent
file = sys.argv[1] if sys.argv[1:] else HERE / "data/topics/headlines.tsv"

data = read_labelled_texts(file)
cut = len(data.labels) * 4 // 5
train = data.x[:cut], data.labels[:cut]
test_texts, test_labels = data.x[cut:], data.labels[cut:]

keras.utils.set_random_seed(1)
classifier = albert_tf.models.AlbertTextClassifier.from_checkpoint(
    HERE / "albert_micro_zh", labels=class_names(data.labels)
)
classifier.fit(*train, epochs=20, verbose=2)


def predict(texts):
    answers = classifier.answers(classifier.predict(texts, verbose=0))
    return [label.decode() for label in answers["label"].numpy()]


scores = classification_scores(test_labels, predict(test_texts))
print(", ".join(f"{name} {value:.4f}" for name, value in scores.items()))
text = "国足主帅谈本场比赛的换人"
print(text, predict([text])[0], sep="\t")
