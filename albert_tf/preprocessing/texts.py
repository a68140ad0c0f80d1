"""Texts as users pass them, as tensors and lists."""

import concurrent.futures
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.tokenizers.text_tokenizer import Strings, TextTokenizer, as_strings
from albert_tf_lite import unknown
from albert_tf_lite.cpus import available_cpus
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.inputs import as_texts

# Texts, or pairs of texts as the tuple of two lists.
Texts = Sequence[str] | tuple[Sequence[str], Sequence[str]]
# Number of texts that a thread tokenizes at a time.
_CHUNK = 1024


def as_string_tensor(texts: Strings, name: str = "x") -> tf.Tensor:
    """Return a string [] or strings [batch], of any kind, as a tensor."""
    tensor = as_strings(texts, name)
    if tensor.shape.rank is not None and tensor.shape.rank > 1:
        raise AlbertError(
            f"`{name}` should be one string or a list of strings. Received a "
            f"tensor of shape {tuple(tensor.shape)}. A pair of texts is the tuple "
            "of two lists: (first_texts, second_texts)."
        )
    return tensor


def as_segments(x: Strings | tuple[Strings, ...]) -> tuple[tf.Tensor, ...]:
    """Return the one or two texts of each example as string tensors of one shape."""
    if not isinstance(x, tuple):
        return (as_string_tensor(x),)
    if len(x) not in (1, 2):
        raise AlbertError(
            "An example has one text, or two as the tuple (first_texts, "
            f"second_texts). Received a tuple of {len(x)}."
        )
    first = as_string_tensor(x[0], "x" if len(x) == 1 else "x[0]")
    if len(x) == 1:
        return (first,)
    second = as_string_tensor(x[1], "x[1]")
    if not first.shape.is_compatible_with(second.shape):
        raise AlbertError(
            "The two lists of a pair must have the same length. Received shapes "
            f"{first.shape} and {second.shape}."
        )
    return first, second


def check_parts(x: object, *names: str) -> None:
    """Raise unless examples are the tuple of the named lists."""
    if not isinstance(x, tuple) or len(x) != len(names):
        count = f" of {len(x)}" if isinstance(x, tuple) else ""
        raise AlbertError(
            f"`x` should be the tuple of lists ({', '.join(names)}). Received: "
            f"{type(x).__name__}{count}"
        )


def without_invalid_bytes(texts: tf.Tensor) -> tf.Tensor:
    """Return strings as tokenizers read them and offsets count their characters."""
    return tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="ignore")


def in_threads(function: Callable[..., Any], *texts: tf.Tensor) -> list[Any]:
    """Call a function of strings [batch] on parts in threads, and join its results."""
    starts = range(0, max(len(texts[0]), 1), _CHUNK)

    def call(start: int) -> tuple[tf.Tensor, ...]:
        return function(*[column[start : start + _CHUNK] for column in texts])

    with concurrent.futures.ThreadPoolExecutor(available_cpus()) as threads:
        # A tuple of tensors per chunk.
        chunks = list(threads.map(call, starts))
    return [tf.concat(column, axis=0) for column in zip(*chunks, strict=True)]


def tokenize_with_offsets(
    tokenizer: TextTokenizer, texts: Strings
) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
    """Return the ids, starts and ends of texts, ragged int32 [texts, (tokens)].

    Offsets are in characters of the Python strings. Texts in memory are tokenized in
    threads.
    """
    tensor = as_string_tensor(texts)
    if tf.is_symbolic_tensor(tensor):
        ids, starts, ends = tokenizer.tokenize_with_offsets(tensor)
    else:
        ids, starts, ends = in_threads(tokenizer.tokenize_with_offsets, tensor)
    return tf.cast(ids, tf.int32), tf.cast(starts, tf.int32), tf.cast(ends, tf.int32)


def warn_of_unknown(
    ids: tf.Tensor | np.ndarray,
    x: Strings | tuple[Strings, ...],
    tokenizer: TextTokenizer,
) -> None:
    """Warn if many tokens of texts are unknown; `ids` may have special tokens."""
    ids = np.asarray(ids)
    is_special = np.isin(ids, [tokenizer.cls_token_id, tokenizer.sep_token_id])
    unknown.warn_of_unknown(
        int(np.count_nonzero(ids == tokenizer.unk_token_id)),
        int(np.count_nonzero(~is_special)),
        lambda: flat_texts(x),
        tokenizer,
    )


def flat_texts(x: Strings | tuple[Strings, ...]) -> list[str]:
    """Return all texts of examples as one list."""
    if isinstance(x, tf.RaggedTensor):
        return as_texts(np.ravel(x.flat_values))
    if tf.is_tensor(x) or isinstance(x, np.ndarray):
        return as_texts(np.ravel(x))
    if isinstance(x, (str, bytes)):
        return as_texts([x])
    texts: list[str] = []
    for inner in x:
        texts += flat_texts(inner)
    return texts
