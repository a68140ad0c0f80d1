"""A small backbone with random weights everywhere, and inputs for it."""

import keras
import numpy as np
from numpy_reference import FLOAT32, randomize

from albert_tf.backbone import AlbertBackbone

SMALL = {
    "vocabulary_size": 120,
    "num_layers": 3,
    "num_heads": 4,
    "embedding_dim": 16,
    "hidden_dim": 48,
    "intermediate_dim": 96,
    "max_sequence_length": 64,
}
OUTPUTS = ("sequence_output", "pooled_output")
INPUTS = {
    "token_ids": np.random.default_rng(13).integers(120, size=(3, 17)),
    "segment_ids": (np.arange(17) >= np.array([[9], [17], [4]])).astype("int32"),
    "padding_mask": (np.arange(17) < np.array([[17], [11], [1]])).astype("int32"),
}


def small_backbone(**changes):
    keras.utils.set_random_seed(11)
    return randomize(AlbertBackbone(**{**SMALL, **changes}), seed=12)


def difference(a, b):
    """The largest difference of two models' outputs."""
    return max(np.abs(_array(a[name]) - _array(b[name])).max() for name in OUTPUTS)


def scale(outputs):
    """The largest value of a model's outputs."""
    return max(np.abs(_array(outputs[name])).max() for name in OUTPUTS)


def are_close(a, b, tolerance=FLOAT32):
    return difference(a, b) <= tolerance * scale(b)


def _array(x):
    return np.asarray(keras.ops.cast(x, "float32"))
