"""Base class of the layers of ALBERT."""

from typing import Any

import keras

from albert_tf.layers.arguments import arguments_of, check_arguments


class AlbertLayer(keras.layers.Layer):
    """A layer that keeps the arguments of its constructor as attributes."""

    def __init__(self, **kwargs: Any):
        check_arguments(type(self), kwargs)
        super().__init__(**kwargs)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **arguments_of(self, AlbertLayer)}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        arguments = dict(config)
        for name, value in config.items():
            if isinstance(value, dict):
                arguments[name] = keras.saving.deserialize_keras_object(value)
        return cls(**arguments)
