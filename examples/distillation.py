"""Distill a classifier into a smaller one on unlabelled texts.

    python examples/distillation.py [FOLDER]

The teacher is trained on 1,200 labelled reviews. The student, one layer with random
weights, learns from the teacher's outputs on all reviews, without labels.
"""

import pathlib
import sys

import keras
import numpy as np

from albert_tf.data import class_names, read_labelled_texts
from albert_tf.models import AlbertBackbone, AlbertDistiller, AlbertTextClassifier

HERE = pathlib.Path(__file__).parent
folder = pathlib.Path(sys.argv[1]) if sys.argv[1:] else HERE / "reviews"
train, test = (
    read_labelled_texts(folder / f"{name}.tsv") for name in ("train", "test")
)
LABELLED = 1200

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


def scores(model):
    """Return the model's accuracy and its agreement with the teacher."""
    said, taught = (x.predict(test.x, verbose=0).argmax(-1) for x in (model, teacher))
    right = [labels.index(label) for label in test.labels]
    return np.mean(said == right), np.mean(said == taught)


before = scores(student)
distiller = AlbertDistiller(teacher, student, temperature=2.0)
distiller.compile(learning_rate=1e-3)
distiller.fit(train.x, epochs=4, verbose=2)
after = scores(student)

for name, (accuracy, agreement) in (
    ("teacher", scores(teacher)),
    ("student before", before),
    ("student after", after),
):
    print(f"{name:>15}  accuracy {accuracy:.4f}  agreement {agreement:.4f}")
print(f"{student.count_params():,} of {teacher.count_params():,} parameters")
