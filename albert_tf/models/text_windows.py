"""Texts longer than the model reads, predicted window by window."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.models.text_fitting import DEFAULT_BATCH_SIZE
from albert_tf.preprocessing.length_grouping import GroupedTexts
from albert_tf.preprocessing.texts import as_string_tensor
from albert_tf.preprocessing.token_budget import TokenBudget
from albert_tf.preprocessing.windows import Windows
from albert_tf_lite.errors import AlbertError

# What the outputs of a text's windows become, given where each text begins.
COMBINE = {
    "mean": lambda outputs, starts, counts: (
        np.add.reduceat(outputs, starts).T / counts
    ).T.astype(outputs.dtype),
    "max": lambda outputs, starts, counts: np.maximum.reduceat(outputs, starts),
}


class ReadsWindows:
    """A task on texts with one output a text."""

    def predict(
        self,
        x=None,
        batch_size=None,
        windows=None,
        stride=None,
        max_tokens=None,
        **kwargs,
    ):
        """As `FitsTexts.predict`; texts are read to their ends by `windows`.

        Args:
            x: list of strings; without `windows` as for `FitsTexts.predict`.
            batch_size, max_tokens: optional ints, one of them.
            windows: optional `"mean"` or `"max"` of what the model gives for the
                windows of a text, each output for itself.
            stride: optional int, the tokens from one window's start to the next's. By
                default half a window, so that what one cuts another has whole.
            **kwargs: passed on to `keras.Model.predict`.
        """
        if windows is None:
            return super().predict(x, batch_size, max_tokens, **kwargs)
        batch_size = self._batching(x, batch_size, max_tokens)
        grouped, counts = windowed(self.preprocessor, x, windows, stride, batch_size)
        outputs = grouped.restore(super().predict(grouped.dataset, **kwargs))
        return COMBINE[windows](outputs, np.cumsum(counts) - counts, counts)


def windowed(
    preprocessor: Any,
    x: Any,
    windows: str,
    stride: int | None = None,
    batch_size: int | TokenBudget | None = None,
) -> tuple[GroupedTexts, np.ndarray]:
    """The windows of all texts in batches, and how many each text has."""
    if windows not in COMBINE:
        raise AlbertError(
            f"`windows` must be in {list(COMBINE)}. Received: {windows!r}"
        )
    if isinstance(x, (tuple, tf.data.Dataset)) or not len(x):
        raise AlbertError("`windows` are of a list of single texts, one at least.")
    packer = preprocessor.packer
    size = packer.sequence_length - 2
    stride = stride or max(size // 2, 1)
    if not 0 < stride <= size:
        raise AlbertError(
            f"`stride` must lie between 1 and the {size} tokens of a window. "
            f"Received: {stride}"
        )
    tokens = preprocessor.tokenizer(as_string_tensor(x))
    windows = Windows.of(tokens, size, stride)
    parts = packer.pack([windows.of_windows(tokens.values)])
    batch_size = batch_size or DEFAULT_BATCH_SIZE
    grouped = GroupedTexts.of(parts, parts[0].row_lengths(), packer.pad, batch_size)
    return grouped, np.bincount(windows.texts)
