"""Reading labelled data."""

from albert_tf.data.choices import ChoiceQuestions, read_choices
from albert_tf.data.span_questions import SpanQuestions, find_answer, read_squad
from albert_tf.data.tables import LabelledTexts, class_names, read_labelled_texts

__all__ = [
    "ChoiceQuestions",
    "LabelledTexts",
    "SpanQuestions",
    "class_names",
    "find_answer",
    "read_choices",
    "read_labelled_texts",
    "read_squad",
]
