"""The description of a task that its exported files contain, and common checks."""

import base64
from typing import Any

import keras

from albert_tf.checkpoints.heads import HEADS
from albert_tf.layers.private_keras import inner_layers
from albert_tf.models.task import AlbertTask
from albert_tf.tokenizers import SentencePieceTokenizer
from albert_tf_lite.answers import ANSWERS
from albert_tf_lite.errors import AlbertError


def describe(
    task: AlbertTask, precision: str, precisions: tuple[str, ...]
) -> dict[str, Any]:
    """Return the settings of a LiteRT or ONNX file, values that JSON can hold.

    `task`, `pairs`, `output` (the name of the network's output), `units` (its width),
    `sequence_length`, the settings of the tokenizer, `vocabulary` (a list of tokens, or
    a SentencePiece model in base64), and what the answers of the task need, such as
    `labels`.
    """
    if precision not in precisions:
        raise AlbertError(
            f"`precision` must be one of {', '.join(precisions)}. Received: "
            f"{precision!r}"
        )
    check_preprocessor(task)
    settings = task.exported_settings()
    if settings is None:
        raise AlbertError(
            f"LiteRT and ONNX files are written for {', '.join(ANSWERS)}. Received: "
            f"{type(task).__name__}. Use albert_tf.export.saved_model."
        )
    check_not_quantized(task)
    tokenizer = task.preprocessor.tokenizer
    tokenization = tokenizer.get_settings()
    if tokenization.pop("special_tokens_in_strings"):
        raise AlbertError(
            "LiteRT and ONNX files read names of special tokens as text. Leave out "
            "`special_tokens_in_strings=`, or use albert_tf.export.saved_model."
        )
    vocabulary = tokenizer.get_vocabulary()
    if isinstance(tokenizer, SentencePieceTokenizer):
        proto: Any = tokenizer.proto
        vocabulary = base64.b64encode(proto).decode()
    return {
        **settings,
        # An embedder learns from pairs, but takes single texts.
        "pairs": task.pairs and len(task.text_inputs) > 1,
        "units": head_of(task).units if task.heads else task.output.shape[-1],
        "sequence_length": task.preprocessor.sequence_length,
        **tokenization,
        "vocabulary": vocabulary,
    }


def head_of(task: AlbertTask) -> keras.layers.Dense:
    """Return the last layer of a task."""
    return getattr(task, HEADS[task.heads[0]].attribute)


def check_preprocessor(task: AlbertTask) -> None:
    """Raise unless the task takes strings."""
    if task.preprocessor is None:
        raise AlbertError(
            "The model has no preprocessor, so an exported model cannot take strings. "
            "Build it with a vocabulary."
        )


def check_not_quantized(task: AlbertTask) -> None:
    """Raise if the weights of a task were quantized by Keras."""
    if any(getattr(x, "quantization_mode", None) for x in inner_layers(task)):
        raise AlbertError(
            "This model was quantized by Keras. Export the one it was made from, which "
            "writes files in 8 bits, too."
        )


def check_backend() -> None:
    """Raise unless Keras runs on TensorFlow."""
    if keras.backend.backend() != "tensorflow":
        raise AlbertError(
            f"Keras runs on {keras.backend.backend()}, but this export needs "
            "TensorFlow. Save the model with `save_to_preset`, and export it in a "
            "process with KERAS_BACKEND=tensorflow."
        )
