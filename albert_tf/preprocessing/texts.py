"""Texts and labels as users pass them, as tensors and arrays."""

import concurrent.futures
import math
from collections.abc import Callable, Iterable, Sequence, Set
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.data.labels import SEPARATORS, visible
from albert_tf.tokenizers.text_tokenizer import TextTokenizer, as_strings
from albert_tf_lite import unknown
from albert_tf_lite.cpus import available_cpus
from albert_tf_lite.errors import AlbertError, listed
from albert_tf_lite.inputs import (
    as_label,
    as_list,
    as_texts,
    check_one_reading,
    check_positions,
    class_positions,
    complete,
    is_container,
    several_in,
    single_values,
)

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


def read_examples(x: Any, *columns: Any) -> tuple[Any, ...]:
    """Return texts, and labels or weights, of any container as lists and arrays.

    Datasets, ids by name and tensors of several axes stay as they are.
    """
    if isinstance(x, tuple):
        x = tuple(_texts(part, f"x[{i}]") for i, part in enumerate(x))
    else:
        x = _texts(x, "x")
    names = ("y", "sample_weight")
    return x, *(_column(*both) for both in zip(columns, names, strict=False))


def _texts(part, name):
    is_tensor = tf.is_tensor(part) and part.shape.rank != 1
    return part if is_tensor else as_texts(part, name)


def _column(values, name):
    is_ready = values is None or tf.is_tensor(values) or isinstance(values, np.ndarray)
    return values if is_ready else as_list(values, name)


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
            # By position, also for a Series.
            return None if values is None else getattr(values, "iloc", values)[rows]

        texts = tuple(map(take, x)) if isinstance(x, tuple) else take(x)
        return texts, take(y), take(sample_weight)

    return part(slice(start)), part(slice(start, None))


def texts_in_memory(x: Any) -> Any:
    """Return the texts of a dataset as lists without labels; other data unchanged."""
    if not isinstance(x, tf.data.Dataset) or is_pair(x) is None:
        return x
    batches = (batch[0] if isinstance(batch, tuple) else batch for batch in x)
    columns = zip(*map(tf.nest.flatten, batches), strict=True)
    texts = tuple(as_texts(np.concatenate(column)) for column in columns)
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
    labels: Any, num_classes: int | None = None
) -> list[str | int | float] | None:
    """Return labels as a list of strings and numbers; raise unless all differ."""
    if labels is None:
        return None
    names = [as_label(x) for x in complete(as_list(labels, "labels"), "labels")]
    # Equal numbers have one value, and names that look alike one meaning.
    counts = {len(set(names)), len({visible(str(name)) for name in names})}
    if counts != {len(names)} or num_classes not in (None, len(names)):
        raise AlbertError(
            f"`labels` must name each of the {num_classes or len(names)} classes, each "
            f"differently. Received {len(names)}: {names}"
        )
    return names


def class_order(stored: Any, given: Any) -> list[int] | None:
    """Return the stored position of each given class, if both name the same classes."""
    first, second = (list(map(str, labels or ())) for labels in (stored, given))
    if not first or sorted(first) != sorted(second):
        return None
    return [first.index(label) for label in second]


def class_ids(
    x: Any, y: Any, num_classes: int | None = None, labels: Sequence | None = None
) -> np.ndarray:
    """Return one class id per text, given as ids or as values or names of `labels`.

    Without `num_classes`, any numbers are allowed, which is up to the loss.
    """
    rows = single_values(complete(check_count(x, y), "y"))
    are_lists = any(map(is_container, rows))
    are_floats = all(isinstance(row, (float, np.floating)) for row in rows)
    if num_classes is None and (are_lists or labels is None or are_floats):
        return _without_missing(rows)
    if labels is None or (are_lists and not _has_names(rows)):
        return check_positions(rows, num_classes or 0)
    return class_positions(rows, labels)


def _has_names(rows):
    """Return whether rows hold strings, and thus several labels."""
    rows = filter(is_container, rows)
    return any(isinstance(value, str) for row in rows for value in row)


def _without_missing(rows: list) -> np.ndarray:
    """Return numbers, or rows of numbers, as an array; raise if one is missing."""
    values = np.asarray(rows)
    if values.dtype.kind == "f" and np.isnan(values).any():
        row = int(np.argwhere(np.isnan(values))[0][0])
        raise AlbertError(
            f"Element {row} of `y` has a missing value: {rows[row]!r:.80}. Leave such "
            "examples out."
        )
    return values


def multi_hot(
    x: Any, y: Any, num_classes: int, labels: Sequence | None = None
) -> np.ndarray:
    """Return the classes of each text as 0 and 1, float32 [examples, classes].

    `y` is a list of names per text, such as `[["体育", "娱乐"], []]`, or such an array.
    """
    given, labels = complete(check_count(x, y), "y"), labels or ()
    is_flat = any(isinstance(x, str) or not isinstance(x, Iterable) for x in given)
    rows = [] if is_flat else [_names_of(i, row) for i, row in enumerate(given)]
    values = [as_label(value) for row in rows for value in row]
    is_table = rows and all(len(row) == num_classes for row in rows)
    is_table = is_table and {0, 1}.issuperset(values)
    # Numbers may be labels; strings are checked below.
    by_name = bool(labels) and all(isinstance(x, str) or x in labels for x in values)
    if is_table and by_name and not any(isinstance(x, bool) for x in values):
        raise AlbertError(
            "`y` has two readings: a row of 0 and 1 per text, or a list of the classes "
            f"{labels} per text. Pass strings for classes, or an array of bool."
        )
    if is_table:
        return np.array(rows, "float32")
    if is_flat or not by_name:
        raise AlbertError(
            "`y` must be a list of class names per text, for a model with `labels=`, "
            f"or an array of 0 and 1 with {num_classes} columns, one per class. "
            f"Received: {str(given[:2]):.200}.{_lists_of(given)}"
        )
    hot = np.zeros((len(rows), num_classes), "float32")
    numbers = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    hot[numbers, class_positions(values, labels)] = 1
    return hot


def _names_of(position, row):
    """Return the classes of a text, also of a set."""
    name = f"y[{position}]"
    return complete(list(row) if isinstance(row, Set) else as_list(row, name), name)


def _lists_of(values):
    """Return a sentence with the line that makes lists of names, if any does."""
    if not all(isinstance(value, str) for value in values):
        return ""
    mark = several_in(values, SEPARATORS)
    if mark is None:
        return " Pass [[name] for name in y] for one class per text."
    return (
        f" Pass [[name for name in value.split({mark!r}) if name] for value in y] for "
        f"names between {mark!r}."
    )


def dataset_targets(
    dataset: tf.data.Dataset, labels: Sequence, several: bool = False
) -> tf.data.Dataset:
    """Return a dataset of `(x, y, ...)` with ids in place of values of `labels`.

    With `several`, the names of an example become 0 and 1, float32 [batch, classes].
    """
    spec = dataset.element_spec
    if not isinstance(spec, tuple) or len(spec) < 2:
        return dataset
    is_name, shape = spec[1].dtype == tf.string, spec[1].shape
    if not is_name and (several or shape[1:] not in ([], [1])):
        return dataset
    if not is_name and all(isinstance(label, str) for label in labels):
        check_one_reading(labels, "y")
        return dataset
    numbers = [math.nan if isinstance(x, str) else float(x) for x in labels]
    keys = list(map(str, labels)) if is_name else numbers
    known = tf.constant(keys, tf.string if is_name else tf.float64)

    def targets(y):
        y = y.to_tensor("") if isinstance(y, tf.RaggedTensor) else y
        is_class = tf.cast(y, known.dtype)[..., tf.newaxis] == known
        # Names of an example may be followed by empty strings.
        is_known = tf.reduce_any(is_class, axis=-1) | (several and y == "")
        message = f"The labels are not all among the classes {listed(labels, 10)}"
        with tf.control_dependencies(
            [tf.Assert(tf.reduce_all(is_known), [message, y])]
        ):
            if several:
                return tf.cast(tf.reduce_any(is_class, axis=1), tf.float32)
            return tf.argmax(is_class, axis=-1)

    return dataset.map(lambda x, y, *rest: (x, targets(y), *rest))


def scores(x: Any, y: Any, name: str = "y") -> np.ndarray:
    """Return one finite number per text, float32 [examples]."""
    rows = single_values(complete(check_count(x, y, name), name))
    numbers = np.array([_finite(row) for row in rows], "float32")
    if wrong := np.flatnonzero(np.isnan(numbers)).tolist():
        raise AlbertError(
            f"`{name}` must be a list of finite numbers, one per text. Element "
            f"{wrong[0]} is {rows[wrong[0]]!r:.80}."
        )
    return numbers


def _finite(value):
    """Return a finite number in 32 bits, or NaN for any other value."""
    try:
        number = np.float32(value)
    except (TypeError, ValueError):
        return np.nan
    return number if np.ndim(number) == 0 and np.isfinite(number) else np.nan


def check_count(x: Any, y: Any, name: str = "y") -> list:
    """Return `y` as a list. Raise if it has not one element per example, or none."""
    rows = [] if y is None else as_list(y, name)
    texts = count_examples(x)
    if not rows or texts != len(rows):
        raise AlbertError(
            f"`x` and `{name}` must have the same number of examples, at least one. "
            f"Received: {texts} texts and {len(rows)} labels."
        )
    return rows
