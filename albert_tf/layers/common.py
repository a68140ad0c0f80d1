"""What every layer of ALBERT shares: activations, initialiser, LayerNorm."""

import keras

# Both original code bases use 1e-12 everywhere, in the MLM head too.
LAYER_NORM_EPSILON = 1e-12


def gelu_approximate(x):
    """The tanh form of GELU, which both original code bases call "gelu"."""
    return keras.activations.gelu(x, approximate=True)


def get_activation(identifier):
    """Look up an activation, `"gelu_approximate"` among Keras' own names."""
    if identifier == "gelu_approximate":
        return gelu_approximate
    return keras.activations.get(identifier)


def serialize_activation(activation):
    """The inverse of `get_activation`, for `get_config`."""
    if activation is gelu_approximate:
        return "gelu_approximate"
    return keras.activations.serialize(activation)


def albert_initializer(stddev=0.02):
    """Truncated normal, as in the paper's code (`create_initializer`)."""
    return keras.initializers.TruncatedNormal(stddev=stddev)


def layer_norm(**kwargs):
    """A LayerNormalization with ALBERT's epsilon."""
    return keras.layers.LayerNormalization(epsilon=LAYER_NORM_EPSILON, **kwargs)
