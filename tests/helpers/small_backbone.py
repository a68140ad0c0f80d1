"""A small backbone with random weights everywhere, and inputs for it."""

import keras
import numpy as np
from numpy_reference import FLOAT32, randomize

from albert_tf.backbone import AlbertBackbone

SMALL = {"vocabulary_size": 120, "num_layers": 3, "num_heads": 4, "embedding_dim": 16}
SMALL |= {"hidden_dim": 48, "intermediate_dim": 96, "max_sequence_length": 64}
INPUTS = {
    "token_ids": np.random.default_rng(13).integers(120, size=(3, 17)),
    "segment_ids": (np.arange(17) >= np.array([[9], [17], [4]])).astype("int32"),
    "padding_mask": (np.arange(17) < np.array([[17], [11], [1]])).astype("int32"),
}


def small_backbone(**changes):
    return randomize(AlbertBackbone(**{**SMALL, **changes}), seed=12)


def difference(a, b):
    """The largest difference of two models' outputs."""
    return max(
        np.abs(x - y).max() for x, y in zip(_outputs(a), _outputs(b), strict=True)
    )


def are_close(a, b, tolerance=FLOAT32):
    return difference(a, b) <= tolerance * max(np.abs(x).max() for x in _outputs(b))


def _outputs(outputs):
    names = ("sequence_output", "pooled_output")
    return [np.asarray(keras.ops.cast(outputs[name], "float32")) for name in names]
