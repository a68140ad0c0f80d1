"""Models and inputs for comparing with other implementations."""

import functools

import numpy as np
from numpy_reference import randomize

from albert_tf.models import AlbertBackbone

# No two alike, so that a transposed or exchanged axis shows.
BATCH, LENGTH = 3, 17
SIZES = {"vocabulary_size": 120, "num_heads": 4, "embedding_dim": 16, "hidden_dim": 48}
SIZES |= {"intermediate_dim": 80, "max_sequence_length": 33, "num_segments": 3}

ENGLISH = [
    "the river rose in the town",
    "a letter written by the mayor",
    "nobody walked over the old bridge",
    "the children of the baker asked the doctor",
]


def inputs(seed=0, padded=True):
    """Inputs of `AlbertBackbone`; if `padded`, three texts of unlike length."""
    rng = np.random.default_rng(seed)
    lengths = [LENGTH, 9, 4] if padded else [LENGTH] * BATCH
    mask = np.arange(LENGTH) < np.array(lengths)[:, None]
    return {
        "token_ids": rng.integers(SIZES["vocabulary_size"], size=mask.shape),
        "segment_ids": rng.integers(SIZES["num_segments"], size=mask.shape),
        "padding_mask": mask.astype("int32"),
    }


randomise = functools.partial(randomize, spread=0.15)


def random_backbone(**kwargs):
    """An `AlbertBackbone` of Google's kind."""
    sizes = {**SIZES, "num_layers": 3, "embedding_projection": "after_layer_norm"}
    return randomise(AlbertBackbone(**{**sizes, **kwargs}))
