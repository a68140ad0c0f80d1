"""Texts and labels as users pass them, as tensors and arrays."""

import concurrent.futures
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from albert_tf.tokenizers.text_tokenizer import TextTokenizer, as_strings
from albert_tf_lite import unknown
from albert_tf_lite.errors import AlbertError

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


def as_python_strings(texts: Any) -> list[str]:
    """Return strings or UTF-8 bytes of any kind as a list of strings."""
    if tf.is_tensor(texts):
        texts = texts.numpy()
    return [x.decode("utf-8", "ignore") if isinstance(x, bytes) else x for x in texts]


def without_invalid_bytes(texts: tf.Tensor) -> tf.Tensor:
    """Return strings as tokenizers read them and offsets count their characters."""
    return tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="ignore")


def in_threads(function: Callable[..., Any], *texts: tf.Tensor) -> list[Any]:
    """Call a function of strings [batch] on parts in threads, and join its results."""
    starts = range(0, max(len(texts[0]), 1), _CHUNK)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
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
        return as_python_strings(np.ravel(x))
    if isinstance(x, (str, bytes)):
        return as_python_strings([x])
    return [text for part in x for text in flat_texts(part)]


# === Examples and labels ===


def count_examples(x: Any) -> int:
    """Return the number of texts, pairs of texts, or rows of ids."""
    if isinstance(x, dict):
        x = tuple(x.values())
    return len(x[0] if isinstance(x, tuple) else x)


def is_pair(x: Any) -> bool | None:
    """Return whether examples are pairs of texts; `None` if they are ids."""
    if isinstance(x, tf.data.Dataset):
        spec = x.element_spec
        x = spec[0] if isinstance(spec, tuple) else spec
        if any(part.dtype != tf.string for part in tf.nest.flatten(x)):
            return None
    elif not isinstance(x, (list, tuple)) and not hasattr(x, "__array__"):
        return None
    return isinstance(x, tuple)


def split_off(x: Any, y: Any, sample_weight: Any, share: float) -> tuple:
    """Return the examples to train on, and the last `share` of them to validate on."""
    if not 0 < share < 1:
        raise AlbertError(
            f"`validation_split` must lie between 0 and 1. Received: {share}"
        )
    start = int(count_examples(x) * (1 - share))

    def part(rows):
        def take(values):
            if isinstance(values, dict):
                return {name: take(column) for name, column in values.items()}
            return None if values is None else values[rows]

        texts = tuple(map(take, x)) if isinstance(x, tuple) else take(x)
        return texts, take(y), take(sample_weight)

    return part(slice(start)), part(slice(start, None))


def texts_in_memory(x: Any) -> Any:
    """Return the texts of a dataset as lists without labels; other data unchanged."""
    if not isinstance(x, tf.data.Dataset) or is_pair(x) is None:
        return x
    batches = (batch[0] if isinstance(batch, tuple) else batch for batch in x)
    columns = zip(*map(tf.nest.flatten, batches), strict=True)
    texts = tuple(as_python_strings(np.concatenate(column)) for column in columns)
    return texts if is_pair(x) else texts[0]


def check_batched(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Return the dataset. Raise if its elements are single texts."""
    first = tf.nest.flatten(dataset.element_spec)[0]
    if first.dtype == tf.string and first.shape.rank == 0:
        raise AlbertError(
            "The elements of the dataset are single texts. Expected batches: pass "
            "`dataset.batch(32)`."
        )
    return dataset


def check_class_names(
    labels: Sequence[str] | None, num_classes: int
) -> list[str] | None:
    """Return class names as a list of strings. Raise unless each class has its own."""
    if labels is None:
        return None
    names = [str(label) for label in labels]
    if len(names) != num_classes or len(set(names)) != num_classes:
        raise AlbertError(
            f"`labels` must name each of the {num_classes} classes, each "
            f"differently. Received {len(names)}: {list(labels)}"
        )
    return names


def class_ids(
    x: Any, y: Any, num_classes: int | None = None, labels: Sequence[str] | None = None
) -> np.ndarray:
    """Return one class id per text, given as ids or as names among `labels`.

    Without `num_classes`, any numbers are allowed, which is up to the loss.
    """
    check_count(x, y)
    ids = np.asarray(y)
    if labels is not None and all(isinstance(name, str) for name in ids.flat):
        ids = _positions(ids, labels)
    if ids.dtype.kind not in "iufb" or num_classes and ids.size != len(ids):
        raise AlbertError(
            "`y` must be one class id per text, counted from 0, or a name among the "
            "`labels=` that the model was built with. For one-hot rows pass "
            '`y.argmax(axis=1)`, or compile with loss="categorical_crossentropy". '
            f"Received: {ids[:3]}"
        )
    if num_classes and (wrong := np.flatnonzero((ids < 0) | (ids >= num_classes))).size:
        raise AlbertError(
            f"`y` must lie between 0 and num_classes - 1, that is {num_classes - 1}. "
            f"Element {wrong[0]} is {ids.flat[wrong[0]]}."
        )
    return ids


def dataset_class_ids(
    dataset: tf.data.Dataset, labels: Sequence[str]
) -> tf.data.Dataset:
    """Return a dataset of `(x, y, ...)` with ids in place of class names."""
    spec = dataset.element_spec
    if not isinstance(spec, tuple) or len(spec) < 2 or spec[1].dtype != tf.string:
        return dataset
    ids = keras.layers.StringLookup(vocabulary=list(labels), num_oov_indices=0)
    return dataset.map(lambda x, y, *rest: (x, ids(y), *rest))


def multi_hot(
    x: Any, y: Any, num_classes: int, labels: Sequence[str] | None = None
) -> np.ndarray:
    """Return the classes of each text as 0 and 1, float32 [examples, classes].

    `y` is a list of names per text, such as `[["体育", "娱乐"], []]`, or such an array.
    """
    check_count(x, y)
    is_flat = any(np.ndim(row) == 0 for row in y)
    names = [] if is_flat else [name for row in y for name in row]
    if labels and not is_flat and all(isinstance(name, str) for name in names):
        hot = np.zeros((len(y), num_classes), "float32")
        rows = np.repeat(np.arange(len(y)), [len(row) for row in y])
        hot[rows, _positions(names, labels)] = 1
        return hot
    is_table = all(np.shape(row) == (num_classes,) for row in y)
    if not is_table or not np.isin(y, (0, 1)).all():
        raise AlbertError(
            "`y` must be a list of class names per text, for a model with `labels=`, "
            f"or an array of 0 and 1 with {num_classes} columns, one per class. "
            f"Received: {y[:2]}"
        )
    return np.asarray(y, "float32")


def scores(x: Any, y: Any) -> np.ndarray:
    """Return one finite number per text, float32 [examples]."""
    check_count(x, y)
    try:
        numbers = np.asarray(y, "float32")
    except (TypeError, ValueError):
        numbers = np.array(np.nan)
    if numbers.ndim != 1 or not np.isfinite(numbers).all():
        raise AlbertError(
            "`y` must be a list of finite numbers, one per text. Received: "
            f"{list(y)[:3]}"
        )
    return numbers


def check_count(x: Any, y: Any) -> None:
    """Raise unless there is one element of `y` per example of `x`, at least one."""
    texts, labels = count_examples(x), 0 if y is None else len(y)
    if not labels or texts != labels:
        raise AlbertError(
            "`x` and `y` must have the same number of examples, at least one. "
            f"Received: {texts} texts and {labels} labels."
        )


def _positions(names: Iterable[str], labels: Sequence[str]) -> np.ndarray:
    positions = {label: position for position, label in enumerate(labels)}
    unknown = sorted({str(name) for name in names} - positions.keys())
    if unknown:
        raise AlbertError(
            f"The labels {unknown[:5]} are not among the classes {list(labels)}."
        )
    return np.array([positions[name] for name in names], "int32")
