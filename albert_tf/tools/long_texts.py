"""Predictions of texts that are longer than a model can read at once."""

from collections.abc import Iterable

import numpy as np

from albert_tf.models.albert_text_classifier import AlbertTextClassifier
from albert_tf.models.albert_text_regressor import AlbertTextRegressor
from albert_tf.preprocessing.segment_packer import WindowedTexts
from albert_tf.preprocessing.texts import tokenize_with_offsets, warn_of_unknown
from albert_tf.trainers.prediction import predict_batches
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.inputs import check_integer


def predict_windows(
    task: AlbertTextClassifier | AlbertTextRegressor,
    texts: Iterable[str],
    combine: str = "mean",
    stride: int | None = None,
    batch_size: int | None = None,
    verbose: str | int = "auto",
) -> np.ndarray:
    """Predict long texts completely, from overlapping windows.

    Args:
        task: an `AlbertTextClassifier`, `AlbertMultiLabelClassifier` or
            `AlbertTextRegressor`.
        texts: list of strings, at least one.
        combine: `"mean"` or `"max"` of the outputs of a text's windows, each output by
            itself.
        stride: optional int, the tokens from the start of one window to that of the
            next. By default half a window, so that a phrase at the edge of one window
            is inside another.
        batch_size: optional int. Windows per batch.
        verbose: `"auto"`, 0, 1 or 2: the progress bar of Keras.

    Returns:
        An array [texts, ...], as of `task.predict`.

    Raises:
        TypeError: if `texts` is a single text, or does not hold strings.
        AlbertError: if `texts` is empty or pairs, or an argument is wrong.

    Example:
    ```python
    outputs = albert_tf.tools.predict_windows(classifier, long_texts)
    ```
    """
    if combine not in ("mean", "max"):
        raise AlbertError(f'`combine` must be "mean" or "max". Received: {combine!r}')
    long_texts = _single_texts(task, texts)
    preprocessor = task.preprocessor
    size = preprocessor.packer.sequence_length - 2
    if stride is None:
        stride = max(size // 2, 1)
    # A longer stride would leave out tokens between windows.
    stride = check_integer("stride", stride, 1, size)
    ids, starts, ends = tokenize_with_offsets(preprocessor.tokenizer, long_texts)
    warn_of_unknown(ids.values, long_texts, preprocessor.tokenizer)
    packed = WindowedTexts.of(preprocessor.packer, ids, starts, ends, size, stride)
    batches = task.prediction_batches(packed, batch_size)
    outputs = predict_batches(task, batches, verbose=verbose)
    outputs = task.predictions(long_texts, packed, outputs)
    return _of_texts(outputs, packed.windows.texts, combine)


def _single_texts(
    task: AlbertTextClassifier | AlbertTextRegressor, texts: Iterable[str]
) -> list[str]:
    """Return a list of texts from any container; raise if it has none, or pairs."""
    examples = task.read_examples(texts)
    if examples.kind != "texts" or examples.is_pair or not examples.count:
        raise AlbertError(
            "`texts` must be a list of single texts, at least one. Received: "
            f"{type(texts).__name__}"
        )
    return examples.parts[0]


def _of_texts(outputs: np.ndarray, texts: np.ndarray, combine: str) -> np.ndarray:
    """Combine the outputs [windows, ...] of each text, whose number `texts` has."""
    counts = np.bincount(texts)
    starts = np.cumsum(counts) - counts
    if combine == "max":
        return np.maximum.reduceat(outputs, starts)
    sums = np.add.reduceat(outputs, starts)
    return (sums.T / counts).T.astype(outputs.dtype)
