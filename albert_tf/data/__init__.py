"""Reading labelled data."""

from albert_tf.data.pairs import contrastive_pairs
from albert_tf.data.spelling import read_spelling
from albert_tf.data.tables import LabelledTexts, class_names, read_labelled_texts

__all__ = [
    "LabelledTexts",
    "class_names",
    "contrastive_pairs",
    "read_labelled_texts",
    "read_spelling",
]
