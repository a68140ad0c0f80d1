"""Settings of masks, and the features, labels and weights of masked batches."""

import math
from typing import Any

import numpy as np
import tensorflow as tf

# ALBERT's settings. For the default of the length see `mask_settings`.
MASK_DEFAULTS: dict[str, Any] = {
    "mask_selection_rate": 0.15,
    "mask_selection_length": None,
    "ngram": 3,
    "marked_labels": False,
}
# Numbers of predictions are rounded up, because JAX compiles each shape.
PREDICTIONS_STEP = 8
_INPUTS = ("token_ids", "segment_ids", "padding_mask", "mask_positions")
_PREDICTIONS = ("mask_positions", "mask_ids", "mask_weights")


def mask_settings(sequence_length: int, **given: Any) -> dict[str, Any]:
    """Return arguments of `WholeWordMaskGenerator.for_tokenizer`: given or defaults.

    The default maximum of predictions is a quarter more than the rate.
    """
    given = {name: value for name, value in given.items() if value is not None}
    settings = {**MASK_DEFAULTS, **given}
    if settings["mask_selection_length"] is None:
        rate = np.max(settings["mask_selection_rate"])
        rate = min(1.25 * rate, 1.0)
        settings["mask_selection_length"] = math.ceil(rate * sequence_length)
    return settings


def masked_features(
    batch: dict[str, tf.Tensor],
    sample_weight: tf.Tensor | None = None,
    trims: bool = True,
) -> tuple[dict[str, tf.Tensor], tf.Tensor, tf.Tensor]:
    """Return the features, labels and weights of a masked batch.

    Weights have the mean 1, so that Keras' mean over all places is that over the
    predictions. The loss cannot do this: devices that share a batch have different
    numbers of predictions. `trims` leaves out columns without a prediction.
    """
    if trims:
        batch = trimmed(batch, "mask_weights", PREDICTIONS_STEP, _PREDICTIONS)
    weights = batch["mask_weights"]
    if sample_weight is not None:
        weights *= tf.cast(sample_weight, weights.dtype)[:, tf.newaxis]
    weights /= tf.maximum(tf.reduce_mean(weights), 1e-6)
    return unpacked_masks({**batch, "mask_weights": weights})


def unpacked_masks(
    batch: dict[str, tf.Tensor],
) -> tuple[dict[str, tf.Tensor], tf.Tensor, tf.Tensor]:
    """Return the features, labels and weights of features and their masks."""
    features = {name: batch[name] for name in _INPUTS}
    return features, batch["mask_ids"], batch["mask_weights"]


def trimmed(
    batch: dict[str, tf.Tensor], mask: str, step: int, names: tuple[str, ...]
) -> dict[str, tf.Tensor]:
    """Return a batch without the last columns of `names` in which no `mask` is set."""
    used = tf.reduce_max(tf.reduce_sum(tf.cast(batch[mask], tf.int32), axis=1))
    columns = tf.maximum((used + step - 1) // step, 1) * step
    return {
        name: values[:, :columns] if name in names else values
        for name, values in batch.items()
    }
