"""The weights with which functions of a model were traced."""

from typing import Any


class TracedWeights:
    """Finds that a model has other weights than when a function was traced.

    A traced function keeps the variables that it was traced with. Methods of a backbone
    or of any layer, such as `enable_lora`, `quantize` and `trainable`, change those of
    all models on it, which they do not know. So each model compares before it calls a
    function.
    """

    def __init__(self) -> None:
        # The variables themselves, because the id of a deleted one is used again.
        self._weights: dict[Any, list[Any]] = {}

    def update(self, function: Any, weights: list[Any]) -> bool:
        """Keep the weights of a function; return whether it was traced with others."""
        before = self._weights.get(function)
        if before is None:
            self._weights[function] = weights
            return False
        if len(before) == len(weights) and all(map(_is, before, weights)):
            return False
        self._weights[function] = weights
        return True


def _is(first, second):
    return first is second
