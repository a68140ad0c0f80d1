"""Distill a classifier into a smaller one on unlabelled texts: distillation.py [FOLDER]

FOLDER has train.tsv and test.tsv. The default is toy data, reviews written for this
repository. The teacher is trained on 1,200 labels. The student, one layer with random
weights, learns from the teacher's outputs on all reviews, without labels.
"""

import pathlib
import sys

from albert_tf.data import class_names, read_labelled_texts
from albert_tf.models import AlbertBackbone, AlbertTextClassifier
from albert_tf.tools import AlbertDistiller
import keras
import numpy as np

HERE = pathlib.Path(__file__).parent
folder = pathlib.Path(sys.argv[1]) if sys.argv[1:] else HERE / "reviews"
LABELLED = 1200

files = [folder / f"{name}.tsv" for name in ("train", "test")]
train, test = map(read_labelled_texts, files)

keras.utils.set_random_seed(1)
labels = class_names(train.labels)
checkpoint = HERE / "albert_micro_zh"
teacher = AlbertTextClassifier.from_checkpoint(
    checkpoint, labels=labels, pooling_mode="mean", sequence_length=64
)
teacher.fit(train.x[:LABELLED], train.labels[:LABELLED], epochs=3, verbose=2)

student = AlbertTextClassifier.from_backbone(
    AlbertBackbone(
        teacher.backbone.vocabulary_size,
        num_layers=1,
        num_heads=2,
        embedding_dim=64,
        hidden_dim=128,
        intermediate_dim=256,
        max_sequence_length=64,
    ),
    checkpoint / "vocab.txt",
    len(labels),
    labels=labels,
    pooling_mode="mean",
)


def show(name, model):
    """Print and return the model's accuracy and its agreement with the teacher."""
    said, taught = (x.predict(test.x, verbose=0).argmax(-1) for x in (model, teacher))
    right = [labels.index(label) for label in test.labels]
    accuracy, agreement = np.mean(said == right), np.mean(said == taught)
    print(f"{name:>15}  accuracy {accuracy:.4f}  agreement {agreement:.4f}")
    return accuracy


show("teacher", teacher)
before = show("student before", student)
distiller = AlbertDistiller(teacher, student, temperature=2.0)
distiller.compile(learning_rate=1e-3)
distiller.fit(train.x, epochs=4, verbose=2)
after = show("student after", student)
print(f"{student.count_params():,} of {teacher.count_params():,} parameters")
