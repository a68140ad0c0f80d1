"""Find names of people, places and organisations in Chinese text.

Trains on 131 sentences of `data/entities`, in less than a minute. For other data, name
a folder with a train and a dev file in a format that `albert_tf.data.read_tagged_texts`
supports (columns of tags, CLUENER, doccano):

    python examples/token_classification.py peopledaily/
"""

import pathlib
import sys

import keras

from albert_tf.data import read_tagged_texts
from albert_tf.evaluation import entity_scores
from albert_tf.models import AlbertTokenClassifier

HERE = pathlib.Path(__file__).parent
SENTENCE = "昨天，张小雨😀从成都飞到北京，去江南大学看望李老师。"
# Maximum number of texts from a large data set, for a quick trial.
MOST = 4000


def read(folder, name):
    (path,) = sorted(folder.glob(f"{name}.*"))
    data = read_tagged_texts(path)
    return data.x[:MOST], data.spans[:MOST]


def main(folder):
    keras.utils.set_random_seed(1)
    train, dev = read(folder, "train"), read(folder, "dev")
    labels = sorted({label for spans in train[1] for _, _, label in spans})

    tagger = AlbertTokenClassifier.from_checkpoint(
        HERE / "albert_micro_zh", labels=labels, scheme="BIO"
    )
    tagger.compile(learning_rate=1e-3)
    # Train for at least about 150 steps, even on few texts.
    epochs = max(3, 150 * 16 // len(train[0]))
    tagger.fit(*train, batch_size=16, epochs=epochs, verbose=2)

    scores = entity_scores(dev[1], tagger.predict(dev[0], verbose=0))
    for label, row in {**scores["types"], "all": scores}.items():
        print(
            f"{label:>8}  precision {row['precision']:.3f}  recall {row['recall']:.3f}"
            f"  F1 {row['f1']:.3f}  of {row['count']}"
        )
    (entities,) = tagger.predict([SENTENCE], verbose=0)
    for start, end, label in entities:
        print(f"{start:>3} {end:>3}  {label}  {SENTENCE[start:end]}")
    return scores


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]) if sys.argv[1:] else HERE / "data" / "entities")
