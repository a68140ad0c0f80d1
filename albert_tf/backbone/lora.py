"""The layers of a backbone that have low-rank weights (LoRA)."""

import os
from collections.abc import Iterable
from typing import NamedTuple

import h5py
import keras

from albert_tf.layers.private_keras import inner_layers
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.pointers import check_downloaded


class Adaptation(NamedTuple):
    """The rank and the sorted names of the layers with low-rank weights."""

    rank: int
    layer_names: list[str]


def adaptation_of(backbone: keras.Model) -> Adaptation:
    """Return the rank and the names of the adapted layers, 0 and none without any."""
    layers = [x for x in inner_layers(backbone) if getattr(x, "lora_enabled", False)]
    rank = max((layer.lora_rank for layer in layers), default=0)
    return Adaptation(rank, sorted({layer.name for layer in layers}))


def check_layer_names(backbone: keras.Model, names: Iterable[str]) -> None:
    """Raise unless a backbone has dense layers of these names."""
    known = {layer.name for layer in _dense_layers(backbone)}
    if unknown := sorted(set(names) - known):
        raise AlbertError(
            f"`target_layer_names` must be names of {sorted(known)}. Received: "
            f"{unknown}"
        )


def train_low_rank_weights(backbone: keras.Model) -> None:
    """Freeze all weights but the low-rank ones.

    KerasHub leaves the adapted layers inside frozen ones, where `trainable = False` of
    the backbone does not reach them (see `freeze`). So weights are frozen instead.
    """
    for layer in inner_layers(backbone):
        layer.trainable = True
    # Also the biases of the adapted layers, which `save_lora_weights` does not save.
    for weight in backbone.weights:
        weight.trainable = False
    for layer in _dense_layers(backbone):
        if layer.lora_enabled:
            layer.lora_kernel_a.trainable = True
            layer.lora_kernel_b.trainable = True


def _dense_layers(backbone: keras.Model) -> list[keras.layers.Dense]:
    return [x for x in inner_layers(backbone) if isinstance(x, keras.layers.Dense)]


def write_adaptation(path: str | os.PathLike, adaptation: Adaptation) -> None:
    """Add rank and names to a file of low-rank weights."""
    with h5py.File(path, "r+") as file:
        attributes = file["lora"].attrs
        attributes["rank"] = adaptation.rank
        attributes["target_layer_names"] = adaptation.layer_names


def read_adaptation(path: str | os.PathLike) -> Adaptation:
    """Return rank and names from a file of low-rank weights."""
    check_downloaded(path)
    with h5py.File(path, "r") as file:
        attributes = file["lora"].attrs
        names = list(attributes["target_layer_names"])
        return Adaptation(int(attributes["rank"]), names)
