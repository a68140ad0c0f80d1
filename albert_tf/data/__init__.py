"""Reading labelled data."""

from albert_tf.data.tables import LabelledTexts, class_names, read_labelled_texts
from albert_tf.data.tagged import TaggedTexts, read_tagged_texts
from albert_tf.data.tags import spans_to_tags, tags_to_spans

__all__ = [
    "LabelledTexts",
    "TaggedTexts",
    "class_names",
    "read_labelled_texts",
    "read_tagged_texts",
    "spans_to_tags",
    "tags_to_spans",
]
