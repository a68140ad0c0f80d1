"""Quantization of a backbone whose blocks run at several depths."""

from typing import Any

import keras

from albert_tf_lite.errors import AlbertError


class Quantization:
    """KerasHub's quantization for a backbone whose blocks are shared.

    Every dense layer and the token table are quantized; LayerNorms, biases, segments
    and positions stay as they are.
    """

    def quantize(
        self, mode: str | None = None, config: Any = None, **kwargs: Any
    ) -> None:
        """Quantize the dense layers and the token table, such as with `"int8"`.

        Args as of `keras.Model.quantize`; the modes `"gptq"` and `"awq"` are refused.
        """
        self.get_quantization_layer_structure(mode or getattr(config, "mode", None))
        super().quantize(mode, config=config, **kwargs)

    def get_quantization_layer_structure(self, mode: str | None = None) -> None:
        """KerasHub's hook for modes that calibrate one block after the other."""
        if mode in ("gptq", "awq"):
            raise AlbertError(
                f'Quantization by "{mode}" calibrates a block by the inputs of one '
                "layer, and ALBERT runs a block as several layers. Use "
                '`quantize("int8")`.'
            )

    def get_config(self) -> dict[str, Any]:
        """The config, with the mode of each quantized layer by its path."""
        modes = {
            layer.path: layer.dtype_policy.name.partition("_from_")[0]
            for layer in self._flatten_layers(include_self=False)
            if layer.quantization_mode
        }
        if not modes:
            return super().get_config()
        # Not KerasHub's map of policies, which its `from_preset` drops, and with which
        # Keras cannot save a second time.
        return {
            "name": self.name,
            "trainable": self.trainable,
            "dtype": keras.dtype_policies.serialize(self.dtype_policy),
            "quantized_layers": modes,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "Quantization":
        """Build a backbone with its layers quantized as they were."""
        config = dict(config)
        modes = config.pop("quantized_layers", None)
        if not modes:
            return super().from_config(config)
        policy = keras.dtype_policies.get(config.get("dtype"))
        config["dtype"] = keras.dtype_policies.DTypePolicyMap(
            policy.name,
            {
                path: keras.dtype_policies.get(f"{mode}_from_{policy.name}")
                for path, mode in modes.items()
            },
        )
        return super().from_config(config)
