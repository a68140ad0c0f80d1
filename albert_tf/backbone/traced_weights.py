"""The weights with which functions of a model were traced."""

from collections.abc import Sequence

import keras


class TracedWeights:
    """Finds that a model has other weights than when a function was traced.

    A traced function keeps the variables that it was traced with. Methods of a backbone
    or of any layer, such as `enable_lora`, `quantize` and `trainable`, change those of
    all models on it, which they do not know. So each model compares before it calls a
    function.
    """

    def __init__(self) -> None:
        # The variables themselves, because the id of a deleted one is used again.
        self._weights: dict[str, Sequence[keras.Variable]] = {}

    def update(self, function: str, weights: Sequence[keras.Variable]) -> bool:
        """Keep the weights of a function, and return whether it was traced with others.

        Args:
            function: string, the name of the function.
            weights: list of its variables.
        """
        before = self._weights.get(function)
        if before is None:
            self._weights[function] = weights
            return False
        # By identity: `==` of variables compares their values.
        if list(map(id, before)) == list(map(id, weights)):
            return False
        self._weights[function] = weights
        return True
