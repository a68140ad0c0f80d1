"""How records are masked by default, and what their labels stand for."""

from albert_tf.preprocessing.marked_labels import (
    marked_label_ids,
    marked_tokens,
    plain_token_ids,
)
from albert_tf.preprocessing.masked_batches import most_predictions

# ALBERT's. Most predictions of a sequence: see `most_predictions`.
MASK_DEFAULTS = {
    "mask_selection_rate": 0.15,
    "mask_selection_length": None,
    "ngram": 3,
    "marked_labels": False,
}


def mask_settings(sequence_length, **given):
    """Arguments of `WholeWordMaskGenerator.for_tokenizer`: those given, or defaults."""
    given = {name: value for name, value in given.items() if value is not None}
    settings = {**MASK_DEFAULTS, **given}
    if settings["mask_selection_length"] is None:
        settings["mask_selection_length"] = most_predictions(
            sequence_length, settings["mask_selection_rate"]
        )
    return settings


def token_of_labels(tokenizer):
    """The token that each label stands for, with `##` or not; `None` if itself.

    No text becomes `##` and a Chinese character, which is always one by itself.
    """
    if tokenizer is None or not marked_tokens(tokenizer):
        return None
    return plain_token_ids(marked_label_ids(tokenizer))
