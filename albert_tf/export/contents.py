"""The settings and the vocabulary in LiteRT and ONNX files."""

from __future__ import annotations

from albert_tf.layers.private_keras import inner_layers
from albert_tf.models.task import TASKS, AlbertTask
from albert_tf.tokenizers import SentencePieceTokenizer
from albert_tf_lite.contents import Contents
from albert_tf_lite.errors import AlbertError


def is_supported(task: AlbertTask) -> bool:
    """Return whether LiteRT and ONNX files are written for a task."""
    return task.exported_settings() is not None


def contents_of(task: AlbertTask) -> Contents:
    """Return the settings and the vocabulary of a task.

    Args:
        task: a task on texts.

    Raises:
        AlbertError: if these files are not written for the task,
            or if it has no preprocessor or is quantized.
    """
    if task.preprocessor is None:
        raise AlbertError(
            "This model takes ids, as it has no preprocessor, and cannot be exported "
            "to take strings. Give it one, with the vocabulary."
        )
    settings = task.exported_settings()
    if settings is None:
        known = [
            cls.__name__
            for cls in TASKS.values()
            if getattr(cls, "exported_settings", None)
            not in (None, AlbertTask.exported_settings)
        ]
        raise AlbertError(
            f"LiteRT and ONNX files are written for {', '.join(known)}. Received: "
            f"{type(task).__name__}, which albert_tf.export.saved_model may take."
        )
    if any(getattr(x, "quantization_mode", None) for x in inner_layers(task)):
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
            **settings,
            "pairs": task.pairs,
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
