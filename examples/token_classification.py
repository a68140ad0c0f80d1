"""Find names of people, places and organisations: token_classification.py [FOLDER]

FOLDER has a train and a dev file in a format of `albert_tf.data.read_tagged_texts`
(columns of tags, CLUENER, doccano). The default is toy data, 131 sentences to train on.
"""

import pathlib
import sys

import albert_tf
from albert_tf.data import read_tagged_texts
from albert_tf.evaluation import entity_scores
import keras

HERE = pathlib.Path(__file__).parent
folder = pathlib.Path(sys.argv[1]) if sys.argv[1:] else HERE / "data/entities"
MOST = 4000  # texts of a large data set, for a quick trial

files = [next(folder.glob(f"{name}.*")) for name in ("train", "dev")]
train, dev = map(read_tagged_texts, files)

keras.utils.set_random_seed(1)
tagger = albert_tf.models.AlbertTokenClassifier.from_checkpoint(
    HERE / "albert_micro_zh", labels=train.labels
)
# Train for at least about 150 steps, even on few texts.
epochs = max(3, 150 * 16 // len(train.x))
tagger.fit(train.x[:MOST], train.spans[:MOST], 16, epochs, verbose=2)

scores = entity_scores(dev.spans[:MOST], tagger.predict(dev.x[:MOST], verbose=0))
for label, row in {**scores["types"], "all": scores}.items():
    print(
        f"{label:>8}  precision {row['precision']:.3f}  recall {row['recall']:.3f}"
        f"  F1 {row['f1']:.3f}  of {row['count']}"
    )
text = "昨天，张小雨😀从成都飞到北京，去江南大学看望李老师。"
for start, end, label in tagger.predict([text], verbose=0)[0]:
    print(f"{start:>3} {end:>3}  {label}  {text[start:end]}")
