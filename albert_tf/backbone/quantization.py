"""Quantization of a backbone whose blocks are shared."""

from typing import Any

import keras

from albert_tf.layers.private_keras import inner_layers
from albert_tf_lite.errors import AlbertError


class Quantization:
    """Quantization methods of KerasHub for a backbone whose blocks are shared.

    The dense layers and the token table are quantized. LayerNorms, biases, segments and
    positions remain as they are.
    """

    def quantize(
        self, mode: str | None = None, config: Any = None, **kwargs: Any
    ) -> None:
        """Quantize the dense layers and the token table, for example to `"int8"`.

        The arguments are those of `keras.Model.quantize`.

        Raises:
            AlbertError: if the mode is `"gptq"` or `"awq"`.
        """
        self.get_quantization_layer_structure(mode or getattr(config, "mode", None))
        super().quantize(mode, config=config, **kwargs)

    def get_quantization_layer_structure(self, mode: str | None = None) -> None:
        """Refuse modes that calibrate the blocks one by one."""
        if mode in ("gptq", "awq"):
            raise AlbertError(
                f'Quantization by "{mode}" calibrates a block with the inputs of one '
                'layer, but layers of ALBERT share blocks. Use `quantize("int8")`.'
            )

    def get_config(self) -> dict[str, Any]:
        """Return the config, with the mode of each quantized layer by its path."""
        modes = {
            layer.path: layer.dtype_policy.name.partition("_from_")[0]
            for layer in inner_layers(self)
            if layer.quantization_mode
        }
        if not modes:
            return super().get_config()
        # KerasHub's map of policies is dropped by its `from_preset`, and Keras cannot
        # save it a second time.
        return {
            "name": self.name,
            "trainable": self.trainable,
            "dtype": keras.dtype_policies.serialize(self.dtype_policy),
            "quantized_layers": modes,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "Quantization":
        """Build a backbone with the quantized layers of the config."""
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
