"""Readers of labelled data.

Rooms: `labels` (names of classes, separators, tags), `files` (bytes, lines, rows,
columns) above it, and `sets` (what rows and entries hold) above both.
"""

from albert_tf.data.labels.class_matching import class_names
from albert_tf.data.labels.tags import spans_to_tags
from albert_tf.data.sets.choices import read_choices
from albert_tf.data.sets.contrastive_pairs import contrastive_pairs
from albert_tf.data.sets.labelled_texts import read_labelled_texts, read_texts
from albert_tf.data.sets.parallel_texts import read_articles, read_spelling
from albert_tf.data.sets.questions import read_squad
from albert_tf.data.sets.tagged_texts import read_tagged_texts
from albert_tf_lite.tagging import tags_to_spans

__all__ = [
    "class_names",
    "contrastive_pairs",
    "read_articles",
    "read_choices",
    "read_labelled_texts",
    "read_spelling",
    "read_squad",
    "read_tagged_texts",
    "read_texts",
    "spans_to_tags",
    "tags_to_spans",
]
