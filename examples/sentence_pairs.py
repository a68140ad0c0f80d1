"""Classify whether two questions have the same meaning: sentence_pairs.py [FILE]

FILE (.tsv, .csv or .jsonl, such as LCQMC) has two sentences and a label per line. The
default is `data/questions`: 960 pairs to train on and 240 to test on, in each of which
the first question is new.
"""

import pathlib
import sys

import keras

import albert_tf
from albert_tf.data import class_names, read_labelled_texts
from albert_tf.evaluation import classification_scores

HERE = pathlib.Path(__file__).parent
file = sys.argv[1] if sys.argv[1:] else HERE / "data/questions/pairs.tsv"

data = read_labelled_texts(file, pairs=True)
first, second = data.x
cut = len(data.labels) * 4 // 5
train = (first[:cut], second[:cut]), data.labels[:cut]
test_pairs, test_labels = (first[cut:], second[cut:]), data.labels[cut:]

keras.utils.set_random_seed(1)
classifier = albert_tf.models.AlbertTextClassifier.from_checkpoint(
    HERE / "albert_micro_zh", labels=class_names(data.labels)
)
classifier.fit(*train, epochs=8, verbose=2)


def predict(pairs):
    answers = classifier.answers(classifier.predict(pairs, verbose=0))
    return [label.decode() for label in answers["label"].numpy()]


scores = classification_scores(test_labels, predict(test_pairs))
print(", ".join(f"{name} {value:.4f}" for name, value in scores.items()))
one, other = "登录密码记不得了", "如何重设我的登录密码"
print(one, other, predict(([one], [other]))[0], sep="\t")
