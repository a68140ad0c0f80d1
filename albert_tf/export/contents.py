"""What a LiteRT or ONNX file says of a task besides its network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras

from albert_tf.models import (
    AlbertSentenceOrder,
    AlbertTextClassifier,
    AlbertTextEmbedder,
    AlbertTextRegressor,
    AlbertTokenClassifier,
)
from albert_tf.models.task import AlbertTask
from albert_tf.models.thresholds import DEFAULT_THRESHOLD
from albert_tf.tokenizers import SentencePieceTokenizer
from albert_tf_lite.contents import Contents
from albert_tf_lite.errors import AlbertError


def _classifier_settings(task):
    kind = "sigmoid" if task.multi_label else "softmax"
    gives_logits = task.activation is keras.activations.linear
    thresholds = task.thresholds or [DEFAULT_THRESHOLD] * task.num_classes
    return {
        "task": "multi-label" if task.multi_label else "text-classification",
        "output": "logits" if gives_logits else "probabilities",
        "labels": task.class_names,
        # What is left to do.
        "activation": kind if gives_logits else None,
        **({"thresholds": thresholds} if task.multi_label else {}),
    }


def _tagger_settings(task):
    return {
        "task": "token-classification",
        "output": "logits",
        "tags": task.tags,
        "stride": task.preprocessor.stride,
    }


# By class, the settings that `albert_tf_lite` reads, of a task.
_SETTINGS: dict[type, Callable[[Any], dict]] = {
    AlbertTextClassifier: _classifier_settings,
    AlbertTextRegressor: lambda task: {"task": "regression", "output": "score"},
    AlbertTokenClassifier: _tagger_settings,
    AlbertTextEmbedder: lambda task: {"task": "text-embedding", "output": "embedding"},
    AlbertSentenceOrder: lambda task: {"task": "sentence-order", "output": "logits"},
}


def is_supported(task: AlbertTask) -> bool:
    """Whether LiteRT and ONNX files are written for a task."""
    return isinstance(task, tuple(_SETTINGS))


def contents_of(task: AlbertTask) -> Contents:
    """The settings and the vocabulary of a task.

    Args:
        task: a task on texts.

    Raises:
        TypeError: if it is a task that these files are not written for.
        AlbertError: if it has no preprocessor, or is quantized.
    """
    function = next((f for x, f in _SETTINGS.items() if isinstance(task, x)), None)
    if function is None:
        known = ", ".join(x.__name__ for x in _SETTINGS)
        raise AlbertError(
            f"LiteRT and ONNX files are written for {known}. Received: "
            f"{type(task).__name__}, which albert_tf.export.saved_model may take."
        )
    if task.preprocessor is None:
        raise AlbertError(
            "This model takes ids, for it has no preprocessor, and cannot be exported "
            "to take strings. Give it one, with the vocabulary."
        )
    if any(getattr(x, "quantization_mode", None) for x in task._flatten_layers()):
        raise AlbertError(
            "This model was quantized by Keras. Export the one it was made from, with "
            'precision="int8".'
        )
    tokenizer = task.preprocessor.tokenizer
    is_sentence_piece = isinstance(tokenizer, SentencePieceTokenizer)
    if is_sentence_piece:
        vocabulary = tokenizer.proto
    else:
        vocabulary = "".join(f"{x}\n" for x in tokenizer.get_vocabulary()).encode()
    return Contents(
        {
            **function(task),
            "pairs": getattr(task, "pairs", False),
            "units": task.output.shape[-1],
            "sequence_length": task.preprocessor.sequence_length,
            "tokenizer": "sentence_piece" if is_sentence_piece else "word_piece",
            "lowercase": tokenizer.lowercase,
        },
        vocabulary,
    )


def check_precision(precision: str, known: tuple[str, ...]) -> None:
    """Raise a `ValueError` unless the precision is known."""
    if precision not in known:
        raise AlbertError(
            f"`precision` must be one of {', '.join(known)}. Received: {precision!r}"
        )
