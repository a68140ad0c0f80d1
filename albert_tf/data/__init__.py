"""Reading labelled data."""

from albert_tf.data.tables import LabelledTexts, class_names, read_labelled_texts

__all__ = ["LabelledTexts", "class_names", "read_labelled_texts"]
