"""What every layer of ALBERT shares: activations, initialiser, LayerNorm."""

import contextlib
import contextvars

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


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertInitializer(keras.initializers.TruncatedNormal):
    """Truncated normal, as in the paper's code (`create_initializer`)."""

    def __call__(self, shape, dtype=None):
        if _zeros.get():
            return keras.ops.zeros(shape, dtype)
        return super().__call__(shape, dtype)


def albert_initializer(stddev=0.02):
    """How every matrix of ALBERT begins."""
    return AlbertInitializer(stddev=stddev)


_zeros = contextvars.ContextVar("zeros", default=False)


@contextlib.contextmanager
def zeros_for_now():
    """Build with zeros what a checkpoint fills at once.

    Random numbers for 222 million weights take seconds and twice their memory.
    """
    token = _zeros.set(True)
    try:
        yield
    finally:
        _zeros.reset(token)


def layer_norm(**kwargs):
    """A LayerNormalization with ALBERT's epsilon."""
    return keras.layers.LayerNormalization(epsilon=LAYER_NORM_EPSILON, **kwargs)
