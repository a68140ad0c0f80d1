"""Texts as users pass them, as tensors and lists."""

import concurrent.futures
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.tokenizers.text_tokenizer import TextTokenizer, as_strings
from albert_tf_lite import unknown
from albert_tf_lite.cpus import available_cpus
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.inputs import as_texts

# Texts, or pairs of texts as the tuple of two lists.
Texts = Sequence[str] | tuple[Sequence[str], Sequence[str]]
# Number of texts that a thread tokenizes at a time.
_CHUNK = 1024


def as_string_tensor(texts: Any, name: str = "x") -> tf.Tensor:
    """Return a string [] or strings [batch], of any kind, as a tensor."""
    texts = as_strings(texts, name)
    if texts.shape.rank is not None and texts.shape.rank > 1:
        raise AlbertError(
            f"`{name}` should be one string or a list of strings. Received a "
            f"tensor of shape {tuple(texts.shape)}. A pair of texts is the tuple "
            "of two lists: (first_texts, second_texts)."
        )
    return texts


def as_segments(x: Any) -> tuple[tf.Tensor, ...]:
    """Return the one or two texts of each example as string tensors of one shape."""
    segments = x if isinstance(x, tuple) else (x,)
    if len(segments) not in (1, 2):
        raise AlbertError(
            "An example has one text, or two as the tuple (first_texts, "
            f"second_texts). Received a tuple of {len(segments)}."
        )
    names = ("x",) if len(segments) == 1 else ("x[0]", "x[1]")
    segments = tuple(map(as_string_tensor, segments, names))
    if not segments[0].shape.is_compatible_with(segments[-1].shape):
        raise AlbertError(
            "The two lists of a pair must have the same length. Received shapes "
            f"{segments[0].shape} and {segments[1].shape}."
        )
    return segments


def check_parts(x: Any, *names: str) -> None:
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
    with concurrent.futures.ThreadPoolExecutor(available_cpus()) as threads:
        parts = threads.map(
            lambda start: function(*(x[start : start + _CHUNK] for x in texts)), starts
        )
        return [tf.concat(column, axis=0) for column in zip(*parts, strict=True)]


def tokenize_with_offsets(tokenizer: TextTokenizer, texts: Any) -> tuple[Any, Any, Any]:
    """Return the ids, starts and ends of texts, ragged int32 [texts, (tokens)].

    Offsets are in characters of the Python strings. Texts in memory are tokenized in
    threads.
    """
    texts, function = as_string_tensor(texts), tokenizer.tokenize_with_offsets
    is_symbolic = tf.is_symbolic_tensor(texts)
    found = function(texts) if is_symbolic else in_threads(function, texts)
    ids, starts, ends = (tf.cast(column, tf.int32) for column in found)
    return ids, starts, ends


def warn_of_unknown(ids: Any, x: Any, tokenizer: TextTokenizer) -> None:
    """Warn if many tokens of texts are unknown; `ids` may have special tokens."""
    ids = np.asarray(ids)
    special = tokenizer.cls_token_id, tokenizer.sep_token_id
    unknown.warn_of_unknown(
        int(np.count_nonzero(ids == tokenizer.unk_token_id)),
        len(ids) - sum(int(np.count_nonzero(ids == x)) for x in special),
        lambda: flat_texts(x),
        tokenizer,
    )


def flat_texts(x: Any) -> list[str]:
    """Return all texts of examples as one list."""
    if tf.is_tensor(x) or isinstance(x, np.ndarray):
        x = x.flat_values if isinstance(x, tf.RaggedTensor) else x
        return as_texts(np.ravel(x))
    if isinstance(x, (str, bytes)):
        return as_texts([x])
    return [text for part in x for text in flat_texts(part)]
