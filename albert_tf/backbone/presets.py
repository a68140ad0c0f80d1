"""Base class of the backbone and of all tasks, with the presets of KerasHub."""

import functools
import threading

import keras

from albert_tf.files import check_space
from albert_tf.layers.common import check_arguments
from albert_tf.model_card import write_model_card

# Keras replaces the bases of the class of a functional model, KerasHub resets them for
# each task, and tasks on one backbone add nodes to its layers. Two threads that do so
# at once would break the class or the graph.
_CONSTRUCTION = threading.RLock()


def _locked(method):
    """Return a method that one thread at a time runs."""

    @functools.wraps(method)
    def wrapper(*args, **kwargs):
        with _CONSTRUCTION:
            return method(*args, **kwargs)

    return wrapper


class Presets:
    """Base class of the backbone and of all tasks.

    One thread at a time builds a model; arguments are checked by name; and a preset
    has a model card.

    Attributes:
        pipeline_tag: string, the kind of model on the Hugging Face Hub, in the card.
        summaries: strings that complete "An ALBERT model that ..." in the card and
            "ALBERT 模型，用于..." in its Chinese part.
    """

    pipeline_tag: str | None = None
    summaries: tuple[str, str] | None = None

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls):
            cls.__init__ = _locked(cls.__init__)

    @_locked
    def __new__(cls, *args, **kwargs):
        return super().__new__(cls, *args, **kwargs)

    def __init__(self, *args, **kwargs):
        check_arguments(type(self), kwargs)
        super().__init__(*args, **kwargs)

    def save_to_preset(self, preset_dir, **kwargs):
        """Write a preset, as in KerasHub, with a model card (README.md)."""
        check_space(preset_dir, self.variables)
        backbone = getattr(self, "backbone", self)
        policy = backbone.dtype_policy
        if policy.name.startswith("mixed_"):
            # KerasHub's `from_preset` reads the name of a policy as that of a type.
            backbone.dtype_policy = keras.DTypePolicy(policy.variable_dtype)
        try:
            super().save_to_preset(preset_dir, **kwargs)
        finally:
            backbone.dtype_policy = policy
        write_model_card(preset_dir, self)
