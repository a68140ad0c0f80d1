"""Readers of labelled data."""

from albert_tf.data.labelled import read_labelled_texts, read_texts
from albert_tf.data.labels import class_names
from albert_tf.data.questions import read_choices, read_squad
from albert_tf.data.tagged import read_tagged_texts, spans_to_tags, tags_to_spans
from albert_tf.data.text_pairs import contrastive_pairs, read_articles, read_spelling

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
