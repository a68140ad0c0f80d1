"""Dense layers with ALBERT's initializer, which save LoRA beside the kernel."""

from collections.abc import MutableMapping
from typing import Any, TypeAlias

import keras

from albert_tf.layers.tensor_types import Tensor

# The variables of a layer in a file.
Store: TypeAlias = MutableMapping[str, Tensor]
# Begins the names of values without the sum of kernel and LoRA.
_LORA = "lora_"


def albert_initializer(stddev: float = 0.02) -> keras.initializers.Initializer:
    """Return the initializer of all matrices, `create_initializer` of the original."""
    return keras.initializers.TruncatedNormal(stddev=stddev)


class Dense(keras.layers.Dense):
    """Dense layer whose files have the parts of a kernel with LoRA beside their sum.

    Keras saves the sum alone. Loaded, LoRA would be zero and have no gradients.
    """

    lora_enabled: bool

    def save_own_variables(self, store: Store) -> None:
        super().save_own_variables(store)
        if not self.lora_enabled:
            return
        # The same values without the sum of kernel and LoRA.
        plain: dict[str, Tensor] = {}
        self.lora_enabled = False
        try:
            super().save_own_variables(plain)
        finally:
            self.lora_enabled = True
        plain["kernel_a"] = self.lora_kernel_a
        plain["kernel_b"] = self.lora_kernel_b
        for name, value in plain.items():
            store[f"{_LORA}{name}"] = value

    def load_own_variables(self, store: Store) -> None:
        merged, plain = {}, {}
        for name, value in dict(store).items():
            if name.startswith(_LORA):
                plain[name.removeprefix(_LORA)] = value
            else:
                merged[name] = value
        if not plain or not self.lora_enabled:
            super().load_own_variables(merged)
            return
        super().load_own_variables(plain)
        self.lora_kernel_a.assign(plain["kernel_a"])
        self.lora_kernel_b.assign(plain["kernel_b"])

    def quantize(
        self,
        mode: str | None = None,
        type_check: bool = True,
        config: keras.quantizers.QuantizationConfig | None = None,
    ) -> None:
        # Keras quantizes subclasses only if asked to.
        super().quantize(mode, type_check=False, config=config)


def dense(units: int, **kwargs: Any) -> keras.layers.Dense:
    """Create a dense layer with ALBERT's initializer."""
    kwargs.setdefault("kernel_initializer", albert_initializer())
    return Dense(units, **kwargs)
