"""Low-rank adaptation of a backbone whose blocks are shared."""

import os
from collections.abc import Sequence

import h5py
import keras

from albert_tf.layers.private_keras import inner_layers
from albert_tf_lite.errors import AlbertError


class Lora:
    """LoRA methods of KerasHub for a backbone whose blocks are shared.

    A shared block is adapted once for all layers that run it.

    Example:
    ```python
    backbone.enable_lora(8)
    backbone.save_lora_weights("task.lora.h5")
    ```

    Reference:
        [LoRA](https://arxiv.org/abs/2106.09685)
    """

    def default_lora_layer_names(self) -> list[str]:
        """Return the names of the layers that `enable_lora` adapts by default."""
        return ["query_key_value"]

    def enable_lora(
        self, rank: int, target_layer_names: Sequence[str] | None = None
    ) -> None:
        """Freeze all weights and add low-rank ones to some layers.

        Compile a model on this backbone again afterwards.

        Args:
            rank: int. Rank of the factorization.
            target_layer_names: optional strings, the names of the dense layers to
                adapt. By default `["query_key_value"]`, the inputs of attention.

        Raises:
            AlbertError: if there is no dense layer of a name.
        """
        names = list(target_layer_names or self.default_lora_layer_names())
        dense = self._dense_layers()
        known = {layer.name for layer in dense}
        if unknown := sorted(set(names) - known):
            raise AlbertError(
                f"`target_layer_names` must be names of {sorted(known)}. "
                f"Received: {', '.join(map(repr, unknown))}"
            )
        super().enable_lora(rank, target_layer_names=names)
        for layer in dense:
            if layer.name in names and layer.bias is not None:
                # `save_lora_weights` does not save biases.
                layer.bias.trainable = False
        # The traced functions compute without the new weights.
        self.train_function = self.test_function = self.predict_function = None

    def save_lora_weights(self, filepath: str | os.PathLike) -> None:
        """Save the low-rank weights in a file whose name ends in `.lora.h5`."""
        super().save_lora_weights(filepath)
        adapted = self._adapted_layers()
        with h5py.File(filepath, "r+") as file:
            file["lora"].attrs["rank"] = adapted[0].lora_rank
            file["lora"].attrs["target_layer_names"] = _names(adapted)

    def load_lora_weights(self, filepath: str | os.PathLike) -> None:
        """Load a file of `save_lora_weights`, and enable LoRA as in it if needed.

        Raises:
            AlbertError: if other layers are adapted.
            ValueError: if they have another rank.
        """
        with h5py.File(filepath, "r") as file:
            rank = int(file["lora"].attrs["rank"])
            names = list(file["lora"].attrs["target_layer_names"])
        adapted = _names(self._adapted_layers())
        if not adapted:
            self.enable_lora(rank, names)
        elif set(names) != set(adapted):
            raise AlbertError(
                f"{filepath} adapts the layers {names}, but this backbone adapts "
                f"{adapted}. Load the file into a backbone without LoRA."
            )
        super().load_lora_weights(filepath)

    def _dense_layers(self):
        return [x for x in inner_layers(self) if isinstance(x, keras.layers.Dense)]

    def _adapted_layers(self):
        return [layer for layer in self._dense_layers() if layer.lora_enabled]


def _names(layers):
    return sorted({layer.name for layer in layers})
