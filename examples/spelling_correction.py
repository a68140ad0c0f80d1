"""Correct misspelled characters: spelling_correction.py [TRAIN TEST]

Each file has one sentence and its correction per line, separated by a tab, or is a JSON
list of objects with `original_text` and `correct_text`, as SIGHAN's data sets are
usually distributed. The default is toy data: 480 sentences of 16 patterns to train on.
"""

import pathlib
import sys

import albert_tf
from albert_tf.data import read_spelling
from albert_tf.evaluation import spelling_scores
import keras

HERE = pathlib.Path(__file__).parent
files = sys.argv[1:3] or [HERE / f"data/spelling/{x}.tsv" for x in ("train", "test")]
train, test = map(read_spelling, files)

keras.utils.set_random_seed(1)
corrector = albert_tf.models.AlbertSpellingCorrector.from_checkpoint(
    HERE / "albert_micro_zh"
)
corrector.fit(*train, epochs=8, batch_size=16, verbose=2)

sources, targets = test
predicted = [found["target"] for found in corrector.correct(sources)]
scores = spelling_scores(sources, targets, predicted)
for name in ("detection_f1", "correction_f1", "false_positive_rate"):
    print(f"{name} {scores[name]:.4f}")
for found in corrector.correct(["弟弟再学校门口等我。", "他跑的很快。"]):
    print(found["source"], found["target"], found["errors"], sep="\t")
