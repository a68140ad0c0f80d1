"""Train on a CSV file with pandas and look at the mistakes: pandas_csv.py [TRAIN TEST]

The files have the columns `label` and `text`. The default is toy data, reviews written
for this repository: 2,046 to train on and 298 to test on.
"""

import csv
import pathlib
import sys

import albert_tf
import keras
import pandas

HERE = pathlib.Path(__file__).parent
if sys.argv[1:]:
    train, test = map(pandas.read_csv, sys.argv[1:])
else:
    options = {"sep": "\t", "quoting": csv.QUOTE_NONE}
    train = pandas.read_csv(HERE / "reviews/train.tsv", **options)
    test = pandas.read_csv(HERE / "reviews/test.tsv", **options)
print(train.label.value_counts().to_string())

keras.utils.set_random_seed(1)
classifier = albert_tf.models.AlbertTextClassifier.from_checkpoint(
    "albert_micro_zh", labels=sorted(train.label.unique())
)
classifier.fit(train.text, train.label, verbose=2)

classify = albert_tf.pipeline(path=classifier)
answers = pandas.DataFrame(classify(test.text))
test = test.assign(predicted=answers.label, score=answers.score.round(3))
is_right = test.predicted == test.label
print(pandas.crosstab(test.label, test.predicted))
if "domain" in test:
    print(is_right.groupby(test.domain).mean().round(3).to_string())
print(f"accuracy {is_right.mean():.4f}; the most confident mistakes:")
mistakes = test[~is_right].nlargest(5, "score")
print(mistakes[["label", "score", "text"]].to_string(index=False))
