"""Presets, checkpoints by name, and files for transformers."""

import functools
import importlib.util
import os
import pathlib
import threading
import warnings
from typing import Any

import keras

from albert_tf.files import check_space
from albert_tf.layers.common import check_arguments
from albert_tf.model_card import write_model_card
from albert_tf_lite.errors import AlbertError

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
    """Presets of KerasHub, which may also be checkpoints of other tools.

    A base of the backbone and of all tasks.
    """

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

    @classmethod
    def from_preset(cls, preset, load_weights=True, **kwargs):
        """Build the model from a preset, a release or the Hugging Face Hub.

        Args:
            preset: string: the directory of a preset or of a checkpoint of any form;
                `"hf://user/name"`, the same on the Hub; the name of a release, such as
                `"albert_tiny_zh"`; or any other preset of KerasHub.
            load_weights: bool. `False` for random weights.
            **kwargs: passed to `from_checkpoint` for a checkpoint.

        Raises:
            AlbertError: if the vocabulary of a preset does not have the model's size.
        """
        if importlib.util.find_spec("tensorflow"):
            # Imported here, because checkpoints are loaded into backbones.
            from albert_tf.checkpoints import load_named

            if model := load_named(cls, preset, load_weights, **kwargs):
                return model
        # A task without `backbone_cls` is hidden from KerasHub, which would pick any of
        # several classes, and is loaded by its base.
        owner = cls if getattr(cls, "backbone_cls", cls) else cls.__base__
        model = super(Presets, owner).from_preset(
            preset, load_weights=load_weights, **kwargs
        )
        if not isinstance(model, cls):
            return cls.from_checkpoint(preset, **kwargs)
        # KerasHub reads the vocabulary after building the task.
        backbone = getattr(model, "backbone", model)
        check_fits(getattr(model, "preprocessor", None), backbone)
        return model

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

    def export_to_transformers(self, path):
        """Write a directory that `transformers` reads."""
        from albert_tf.checkpoints import save_checkpoint

        save_checkpoint(self, path, layout="huggingface")


def check_fits(preprocessor: Any, backbone: Any) -> None:
    """Raise unless a backbone has the positions and vocabulary of a preprocessor."""
    tokenizer = getattr(preprocessor, "tokenizer", None)
    if tokenizer is None:
        return
    if preprocessor.sequence_length > backbone.max_sequence_length:
        raise AlbertError(
            f"The preprocessor's sequence_length={preprocessor.sequence_length} is "
            f"more than the {backbone.max_sequence_length} positions of the model."
        )
    # The vocabulary of a preset is loaded later.
    if tokenizer.pad_token_id is not None:
        name = tokenizer.original_file_name
        check_vocabulary(tokenizer, backbone.vocabulary_size, name)


def check_bytes(vocabulary: Any, expected: int) -> None:
    """Raise if a text file of tokens is far too large for the tokens of a model.

    A tokenizer of millions of tokens, or of one of megabytes, takes minutes and
    gigabytes.
    """
    if not isinstance(vocabulary, (str, os.PathLike)):
        return
    path = pathlib.Path(vocabulary)
    size = path.stat().st_size if path.suffix == ".txt" and path.is_file() else 0
    if size > 256 * expected + 1_000_000:
        raise AlbertError(
            f"{path} has {size:,} bytes, the model {expected:,} tokens. The file "
            "belongs to another model."
        )


def check_vocabulary(tokenizer: Any, expected: int, name: Any) -> None:
    """Raise unless a model has a row for each token and few more.

    Tables are often padded to a multiple of a power of two.
    """
    found = tokenizer.vocabulary_size()
    more = expected - found
    # 8 to 1,024.
    if more == 0 or any(-found % 2**x == more for x in range(3, 11)):
        return
    message = (
        f"The vocabulary of {name} has {found} tokens, the model {expected}. The "
        "file is truncated or belongs to another model"
    )
    if more < 0 or more > expected / 10:
        raise AlbertError(f"{message}.")
    warnings.warn(f"{message}, unless the table was padded.", stacklevel=6)
