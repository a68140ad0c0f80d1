"""Indices in flat arrays."""

import numpy as np


def joined_ranges(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return the numbers of several ranges, joined.

    starts      5      0
    lengths     3      2
    result      5 6 7  0 1
    """
    # Where each range begins in the result.
    offsets = np.cumsum(lengths) - lengths
    return np.arange(lengths.sum()) + np.repeat(starts - offsets, lengths)
