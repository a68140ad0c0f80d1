"""Classify the aspects that a review mentions: multi_label.py [FILE]

FILE (.tsv, .csv or .jsonl) has one example per line: labels joined by "|", and a text.
The default is toy data, reviews built from 96 clauses: 480 to train on and 120 with
other clauses to test on.
"""

import pathlib
import sys

import albert_tf
from albert_tf.data import class_names, read_labelled_texts
from albert_tf.evaluation import multi_label_scores
import keras

HERE = pathlib.Path(__file__).parent
file = sys.argv[1] if sys.argv[1:] else HERE / "data/aspects/reviews.tsv"

data = read_labelled_texts(file)
texts, labels = data.x, data.label_lists()
# The last fifth is for testing, the tenth before it for tuning thresholds.
dev, test = len(texts) * 7 // 10, len(texts) * 4 // 5

keras.utils.set_random_seed(1)
classifier = albert_tf.models.AlbertMultiLabelClassifier.from_checkpoint(
    HERE / "albert_micro_zh",
    labels=class_names(name for names in labels for name in names),
)
classifier.fit(texts[:dev], labels[:dev], epochs=8, verbose=2)
albert_tf.tools.tune_thresholds(classifier, texts[dev:test], labels[dev:test])

classify = albert_tf.pipeline(path=classifier)
found = [[x["label"] for x in answer] for answer in classify(texts[test:])]
truth = classifier.targets(texts[test:], labels[test:])
scores = multi_label_scores(truth, classifier.targets(texts[test:], found))
print(", ".join(f"{name} {value:.4f}" for name, value in scores.items()))
text = "鱼很新鲜，就是上菜太慢"
print(text, *(f"{x['label']} {x['score']:.3f}" for x in classify(text)), sep="\t")
