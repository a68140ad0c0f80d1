"""Predictions for texts longer than the model reads, window by window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.preprocessing.packed_texts import WindowedTexts, Windows
from albert_tf.preprocessing.texts import tokenize_with_offsets
from albert_tf_lite.errors import AlbertError


def predict_windows(
    task: Any,
    texts: Sequence[str],
    combine: str = "mean",
    stride: int | None = None,
    batch_size: int | None = None,
    verbose: str | int = "auto",
) -> np.ndarray:
    """Predict long texts to their ends, from overlapping windows.

    Args:
        task: an `AlbertTextClassifier`, `AlbertMultiLabelClassifier` or
            `AlbertTextRegressor`.
        texts: list of strings, at least one.
        combine: `"mean"` or `"max"` of the outputs of a text's windows, each output by
            itself.
        stride: optional int, the tokens from the start of one window to that of the
            next. By default half a window, so that a phrase at the edge of one window
            is inside another.
        batch_size: optional int.
        verbose: as for `keras.Model.predict`.

    Returns:
        An array [texts, ...], as of `task.predict`.

    Raises:
        AlbertError: if there are no texts or pairs, or an argument is wrong.

    Example:
    ```python
    outputs = albert_tf.models.predict_windows(classifier, long_texts)
    ```
    """
    if combine not in ("mean", "max"):
        raise AlbertError(f'`combine` must be "mean" or "max". Received: {combine!r}')
    if isinstance(texts, (str, tuple, tf.data.Dataset)) or not len(texts):
        raise AlbertError(
            "`texts` must be a list of single texts, at least one. Received: "
            f"{type(texts).__name__}"
        )
    packed = _windows(task.preprocessor, texts, stride)
    outputs = task.predict(packed, batch_size, verbose=verbose)
    counts = np.bincount(packed.windows.texts)
    starts = np.cumsum(counts) - counts
    if combine == "max":
        return np.maximum.reduceat(outputs, starts)
    sums = np.add.reduceat(outputs, starts)
    return (sums.T / counts).T.astype(outputs.dtype)


def _windows(preprocessor, texts, stride):
    packer = preprocessor.packer
    size = packer.sequence_length - 2
    stride = stride or max(size // 2, 1)
    if not 0 < stride <= size:
        raise AlbertError(
            f"`stride` must be between 1 and the {size} tokens of a window. "
            f"Received: {stride}"
        )
    tokens, starts, ends = tokenize_with_offsets(preprocessor.tokenizer, texts)
    windows = Windows.of(tokens, size, stride)
    tokens, first_lengths = packer.pack([windows.of_windows(tokens.values)])
    return WindowedTexts(
        tokens=tokens,
        first_lengths=first_lengths,
        starts=starts,
        ends=ends,
        windows=windows,
    )
