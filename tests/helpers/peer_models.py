"""Models, inputs and vocabularies for comparing with other implementations."""

import pathlib

import numpy as np
import sentence_piece_reference

from albert_tf.models import AlbertBackbone

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"
# No two alike, so that a transposed or exchanged axis shows.
BATCH, LENGTH, PREDICTIONS = 3, 17, 5
SIZES = {
    "vocabulary_size": 120,
    "num_heads": 4,
    "embedding_dim": 16,
    "hidden_dim": 48,
    "intermediate_dim": 80,
    "max_sequence_length": 33,
    "num_segments": 3,
}
# Two implementations of a graph in fp32 agree to about 5e-6.
TOLERANCE = 1e-5

ENGLISH = [
    "hello world",
    "the cat sat on the mat",
    "a small model of the english language",
    "language models read the words of a text",
    "the world of small cats and large words",
    "we read a text on a large mat",
]


def inputs(seed=0, padded=True):
    """Inputs of `AlbertBackbone`; if `padded`, three texts of unlike length."""
    rng = np.random.default_rng(seed)
    shape = (BATCH, LENGTH)
    lengths = [LENGTH, 9, 4] if padded else [LENGTH] * BATCH
    mask = np.arange(LENGTH) < np.array(lengths)[:, None]
    return {
        "token_ids": rng.integers(0, SIZES["vocabulary_size"], shape, "int32"),
        "segment_ids": rng.integers(0, SIZES["num_segments"], shape, "int32"),
        "padding_mask": mask.astype("int32"),
    }


def mask_positions(seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, LENGTH, (BATCH, PREDICTIONS), "int32")


def at_positions(array, positions):
    """The rows of [batch, time, ...] at [batch, predictions]."""
    return np.take_along_axis(np.asarray(array), positions[..., None], axis=1)


def largest_difference(a, b):
    a, b = np.asarray(a, "float64"), np.asarray(b, "float64")
    assert a.shape == b.shape
    return np.abs(a - b).max()


def log_softmax(x):
    x = np.asarray(x, "float64")
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def random_values(shape, is_scale, rng):
    """Nothing stays 0 or 1, where an exchange of two weights would not show."""
    spread = 0.12 if len(shape) > 1 else 0.2
    return rng.normal(float(is_scale), spread, shape).astype("float32")


def randomise(model, seed=0):
    """Give every weight of a Keras model random values."""
    rng = np.random.default_rng(seed)
    for weight in model.weights:
        if "seed_generator" not in weight.path:
            weight.assign(random_values(weight.shape, weight.name == "gamma", rng))
    return model


def random_backbone(seed=0, **kwargs):
    """An `AlbertBackbone` of Google's kind."""
    arguments = {
        **SIZES,
        "num_layers": 3,
        "embedding_projection": "after_layer_norm",
        **kwargs,
    }
    return randomise(AlbertBackbone(**arguments), seed)


def same_weights(model, other):
    assert len(model.weights) == len(other.weights)
    return all(
        a.path == b.path and np.array_equal(a.numpy(), b.numpy())
        for a, b in zip(model.weights, other.weights, strict=True)
    )


def golden(name):
    """The inputs, and the outputs of the original TensorFlow graph."""
    arrays = dict(np.load(GOLDEN / name / "expected.npz"))
    model_inputs = {
        "token_ids": arrays["input_ids"],
        "segment_ids": arrays["segment_ids"],
        "padding_mask": arrays["input_mask"],
    }
    return model_inputs, arrays


def sentence_piece_proto():
    """A small model with the special pieces of the released ones."""
    text = "\n".join(ENGLISH)
    return sentence_piece_reference.train_model(
        text, vocab_size=50, user_defined_symbols=[]
    )
