"""Readers of labelled data."""

from albert_tf.data.questions import (
    ChoiceQuestions,
    SpanQuestions,
    find_answer,
    read_choices,
    read_squad,
)
from albert_tf.data.tables import (
    LabelledTexts,
    class_names,
    read_labelled_texts,
    read_texts,
)
from albert_tf.data.tagged import (
    TaggedTexts,
    read_tagged_texts,
    spans_to_tags,
    tags_to_spans,
)
from albert_tf.data.text_pairs import contrastive_pairs, read_articles, read_spelling

__all__ = [
    "ChoiceQuestions",
    "LabelledTexts",
    "SpanQuestions",
    "TaggedTexts",
    "class_names",
    "find_answer",
    "read_articles",
    "read_choices",
    "read_labelled_texts",
    "read_squad",
    "read_tagged_texts",
    "spans_to_tags",
    "contrastive_pairs",
    "read_spelling",
    "read_texts",
    "tags_to_spans",
]
