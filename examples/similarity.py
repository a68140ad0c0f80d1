"""Score the similarity of two sentences from 0 to 5: similarity.py [FILE]

FILE (.tsv, .csv or .jsonl, such as STS-B) has two sentences and a score per line. The
default is toy data, generated from word lists: 480 pairs to train on and 120 with other
people to test on.
"""

import pathlib
import sys

import albert_tf
from albert_tf.data import read_labelled_texts
from albert_tf.evaluation import regression_scores
import keras

HERE = pathlib.Path(__file__).parent
file = sys.argv[1] if sys.argv[1:] else HERE / "data/scenes/pairs.tsv"

data = read_labelled_texts(file, pairs=True)
(first, second), numbers = data.x, data.scores()
cut = len(numbers) * 4 // 5

keras.utils.set_random_seed(1)
regressor = albert_tf.models.AlbertTextRegressor.from_checkpoint(
    HERE / "albert_micro_zh"
)
regressor.fit((first[:cut], second[:cut]), numbers[:cut], epochs=12, verbose=2)

predicted = regressor.predict((first[cut:], second[cut:]), verbose=0)
scores = regression_scores(numbers[cut:], predicted)
print(", ".join(f"{name} {value:.4f}" for name, value in scores.items()))
one, other = "一个女孩在公园里跳舞。", "一名女孩公园里跳着舞。"
score = regressor.predict(([one], [other]), verbose=0)[0]
print(one, other, f"{score:.2f}", sep="\t")
