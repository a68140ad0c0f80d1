"""The devices of Keras' backend."""

import keras


def computes_on_tensorflow_cpu() -> bool:
    """Return whether TensorFlow is the backend and has no GPU."""
    return keras.backend.backend() == "tensorflow" and not has_gpu()


def has_gpu() -> bool:
    """Return whether Keras' backend has a GPU."""
    return any("gpu" in x.lower() for x in keras.distribution.list_devices())
