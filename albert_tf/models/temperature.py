"""The temperature of a classifier, which makes its probabilities true to new texts."""

import math
import numbers
from typing import Any

from albert_tf_lite.errors import AlbertError


def check_temperature(temperature: Any, gives_logits: bool = True) -> float:
    """Return a temperature as a float; raise if it is not one that a model can have."""
    is_number = isinstance(temperature, numbers.Real) and temperature is not True
    if not (is_number and 0 < temperature < math.inf):
        raise AlbertError(
            f"`temperature` must be a positive number. Received: {temperature!r:.80}"
        )
    if temperature != 1 and not gives_logits:
        raise AlbertError(
            "A temperature divides logits, and this model returns the result of its "
            "own `activation`. Leave out `activation`, or pass temperature=1.0. "
            f"Received: temperature={temperature}"
        )
    return float(temperature)
