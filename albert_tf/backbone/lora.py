"""Low-rank adaptation of a backbone whose query, key and value are one matrix."""

import os
from collections.abc import Sequence

import h5py
import keras

from albert_tf_lite.errors import AlbertError


class Lora:
    """KerasHub's LoRA methods for a backbone whose blocks are shared.

    A shared block is one layer, so it is adapted once, for all the layers it runs as.

    Reference:
        [LoRA](https://arxiv.org/abs/2106.09685)
    """

    def default_lora_layer_names(self) -> list[str]:
        """KerasHub's hook: what `enable_lora` adapts by default."""
        return ["query_key_value"]

    def enable_lora(
        self, rank: int, target_layer_names: Sequence[str] | None = None
    ) -> None:
        """Freeze all weights and add low-rank ones to some layers.

        As after every change of what trains, compile a model on this backbone again.

        Args:
            rank: int. Rank of the factorization.
            target_layer_names: optional strings, the names of the dense layers to
                adapt. By default `["query_key_value"]`, which is every attention's
                input.

        Raises:
            AlbertError: if a name is that of no dense layer.
        """
        names = list(target_layer_names or self.default_lora_layer_names())
        dense = [x for x in self._flatten_layers() if isinstance(x, keras.layers.Dense)]
        known = {layer.name for layer in dense}
        if unknown := sorted(set(names) - known):
            raise AlbertError(
                f"`target_layer_names` must be names of {sorted(known)}. "
                f"Received: {', '.join(map(repr, unknown))}"
            )
        super().enable_lora(rank, target_layer_names=names)
        self._lora_layer_names = names
        for layer in dense:
            if layer.name in names and layer.bias is not None:
                # `save_lora_weights` would leave it behind.
                layer.bias.trainable = False
        # What Keras has traced computes without the new weights.
        self.train_function = self.test_function = self.predict_function = None

    def save_lora_weights(self, filepath: str | os.PathLike) -> None:
        """Save the low-rank weights in a file whose name ends in `.lora.h5`."""
        super().save_lora_weights(filepath)
        with h5py.File(filepath, "r+") as file:
            file["lora"].attrs["rank"] = self._lora_rank
            file["lora"].attrs["target_layer_names"] = self._lora_layer_names

    def load_lora_weights(self, filepath: str | os.PathLike) -> None:
        """Load what `save_lora_weights` wrote; if no layer is adapted, as it was there.

        Raises:
            AlbertError: if other layers were adapted already, or with another rank.
        """
        with h5py.File(filepath, "r") as file:
            rank = int(file["lora"].attrs["rank"])
            names = list(file["lora"].attrs["target_layer_names"])
        if not getattr(self, "_lora_enabled_layers", None):
            self.enable_lora(rank, names)
        elif set(names) != set(self._lora_layer_names):
            raise AlbertError(
                f"{filepath} adapts the layers {names}, this backbone adapts "
                f"{self._lora_layer_names}: load into one that was not adapted."
            )
        super().load_lora_weights(filepath)
