"""Reading labelled data."""

from albert_tf.data.articles import read_articles
from albert_tf.data.choices import ChoiceQuestions, read_choices
from albert_tf.data.pairs import contrastive_pairs
from albert_tf.data.span_questions import SpanQuestions, find_answer, read_squad
from albert_tf.data.spelling import read_spelling
from albert_tf.data.tables import (
    LabelledTexts,
    class_names,
    read_labelled_texts,
    read_texts,
)
from albert_tf.data.tagged import TaggedTexts, read_tagged_texts
from albert_tf.data.tags import spans_to_tags, tags_to_spans

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
