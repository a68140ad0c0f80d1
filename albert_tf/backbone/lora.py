"""Low-rank adaptation (LoRA), as methods of `AlbertBackbone`."""

import os
from collections.abc import Sequence
from typing import Any

import h5py
import keras
import keras_hub

from albert_tf.files import check_space
from albert_tf.layers.private_keras import inner_layers
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.pointers import check_downloaded


def enable_lora(
    self: Any, rank: int, target_layer_names: Sequence[str] | None = None
) -> None:
    """Freeze all weights and add low-rank ones to some dense layers.

    A shared block is adapted once for all layers that run it. Compile a model with an
    optimizer of your own again afterwards. `backbone.trainable = False` freezes the
    low-rank weights, too; `True` after that trains all weights, as in Keras.

    Args:
        rank: int. Rank of the factorization.
        target_layer_names: optional strings, the names of the dense layers to
            adapt. By default `["query_key_value"]`, the inputs of attention.

    Raises:
        AlbertError: if there is no dense layer of a name.

    Reference:
        [LoRA](https://arxiv.org/abs/2106.09685)
    """
    names = target_layer_names or self.default_lora_layer_names()
    layers = [x for x in inner_layers(self) if isinstance(x, keras.layers.Dense)]
    known = {layer.name for layer in layers}
    if unknown := sorted(set(names) - known):
        raise AlbertError(
            f"`target_layer_names` must be names of {sorted(known)}. Received: "
            f"{unknown}"
        )
    keras_hub.models.Backbone.enable_lora(self, rank, names)
    # KerasHub leaves the adapted layers inside frozen ones, where `trainable = False`
    # of the backbone does not reach them (see `freeze`). So weights are frozen instead.
    for layer in inner_layers(self):
        layer.trainable = True
    # Also the biases of the adapted layers, which `save_lora_weights` does not save.
    for weight in self.weights:
        weight.trainable = False
    for layer in layers:
        if layer.lora_enabled:
            layer.lora_kernel_a.trainable = True
            layer.lora_kernel_b.trainable = True


def save_lora_weights(self: Any, filepath: str | os.PathLike) -> None:
    """Save the low-rank weights, their rank and the names of their layers."""
    check_space(filepath, self.trainable_variables)
    keras_hub.models.Backbone.save_lora_weights(self, filepath)
    rank, names = adapted_layers(self)
    with h5py.File(filepath, "r+") as file:
        file["lora"].attrs.update(rank=rank, target_layer_names=names)


def load_lora_weights(self: Any, filepath: str | os.PathLike) -> None:
    """Load a file of `save_lora_weights`, and enable LoRA as in it if needed.

    Raises:
        AlbertError: if the backbone has LoRA of another rank or in other layers.
    """
    check_downloaded(filepath)
    with h5py.File(filepath, "r") as file:
        attributes = file["lora"].attrs
        saved = int(attributes["rank"]), list(attributes["target_layer_names"])
    found = adapted_layers(self)
    if not found[1]:
        self.enable_lora(*saved)
    elif saved != found:
        raise AlbertError(
            f"{filepath} has rank and layers {saved}, this backbone {found}. Load it "
            "into a backbone without LoRA."
        )
    keras_hub.models.Backbone.load_lora_weights(self, filepath)


def adapted_layers(backbone: Any) -> tuple[int, list[str]]:
    """Return the rank and the sorted names of the layers with low-rank weights."""
    layers = [x for x in inner_layers(backbone) if getattr(x, "lora_enabled", False)]
    names = {layer.name for layer in layers}
    return max((x.lora_rank for x in layers), default=0), sorted(names)
