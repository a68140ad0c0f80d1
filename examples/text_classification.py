"""Classify texts or pairs of texts: text_classification.py [FILE]

FILE (.tsv, .csv or .jsonl, such as THUCNews or LCQMC) has a label and one or two texts
per line; the last fifth is for testing. The default is toy data, 240 headlines of ten
topics. Others: `data/spam/messages.tsv`, `data/questions/pairs.tsv`.
"""

import pathlib
import sys

import albert_tf
from albert_tf.data import class_names, read_labelled_texts
from albert_tf.evaluation import classification_scores
import keras

HERE = pathlib.Path(__file__).parent
file = sys.argv[1] if sys.argv[1:] else HERE / "data/topics/headlines.tsv"

data = read_labelled_texts(file)
cut = len(data.labels) * 4 // 5


def part(rows):
    """Return some of the texts, or of the pairs of texts."""
    return tuple(x[rows] for x in data.x) if data.pairs else data.x[rows]


keras.utils.set_random_seed(1)
classifier = albert_tf.models.AlbertTextClassifier.from_checkpoint(
    HERE / "albert_micro_zh", labels=class_names(data.labels)
)
classifier.fit(part(slice(cut)), data.labels[:cut], epochs=10, verbose=2)

test, test_labels = part(slice(cut, None)), data.labels[cut:]
predicted = [answer["label"] for answer in albert_tf.pipeline(path=classifier)(test)]
texts = list(zip(*test, strict=True)) if data.pairs else test
for text, found, truth in list(zip(texts, predicted, test_labels, strict=True))[:8]:
    print(found, "right" if found == truth else f"wrong: {truth}", text, sep="\t")
scores = classification_scores(test_labels, predicted)
print(", ".join(f"{name} {value:.4f}" for name, value in scores.items()))
