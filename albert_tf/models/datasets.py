"""The data of `fit`, `evaluate` and `predict` as datasets of batches."""

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from albert_tf.models.batching import (
    PADDING_TARGET,
    FixedSize,
    TextBatches,
    batch_plan,
    one_type,
    size_or_default,
    text_batches,
)
from albert_tf.preprocessing.text_preprocessors import (
    AlbertTextClassifierPreprocessor as TextPreprocessor,
)
from albert_tf.preprocessing.texts import (
    check_batched,
    count_examples,
    is_pair,
    read_examples,
    scores,
)
from albert_tf.training.batch_order import BatchOrder
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.inputs import check_positions, class_positions

# The `class_weight` of `fit` that is computed from the labels.
BALANCED = "balanced"
# More than any batch in memory has.
TOKENS_OF_ANY_BATCH = 2**40


def keras_data(
    task: Any, x: Any, y: Any = None, sample_weight: Any = None, **options: Any
) -> tf.data.Dataset:
    """Return the data of `fit` or `evaluate` as a dataset of batches."""
    check_pairs(task, x)
    if takes_texts(task, x):
        x, *labels = read_examples(x, y, sample_weight)
        return task.training_batches(x, *labels, **options)
    refuse_for_datasets(max_tokens=options["max_tokens"])
    if isinstance(x, tf.data.Dataset):
        refuse_for_datasets(y=y, sample_weight=sample_weight)
    else:
        ways = options["batch_size"], options.get("shuffle", False)
        x = batches_of_ids(x, y, sample_weight, *ways)
    dataset = task.prepare_dataset(check_batched(x), options.get("fixed", False))
    if task.ignored_class is not None:
        check_width(dataset)
    check_no_strings(task, dataset)
    return targets_of_one_type(dataset)


def labelled_batches(
    task: Any,
    x: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    fixed: bool = False,
    **options: Any,
) -> tf.data.Dataset:
    """Return batches of `(features, targets)`, or with weights of these three.

    `AlbertTask.training_batches`. `options` are those of `text_batches`; `fixed` is as
    for `prepare_dataset`.
    """
    packed = task.preprocessor.pack_texts(x)
    labels = [task.targets(x, y, packed)]
    if sample_weight is not None:
        weights = packed.of_rows(scores(x, sample_weight, "sample_weight"))
        # The losses of tokens have an axis for the tokens.
        is_per_token = isinstance(labels[0], tf.RaggedTensor)
        labels.append(weights[:, tf.newaxis] if is_per_token else weights)
    return text_batches(task.preprocessor, packed, *labels, **options).dataset


def one_batch(
    task: Any, x: Any, y: Any, sample_weight: Any, fixed: bool = False
) -> tuple[Any, ...]:
    """Return the data of `train_on_batch` or `test_on_batch` as one batch."""
    if isinstance(x, tf.data.Dataset):
        raise TypeError(
            "`x` is a dataset, but one batch is expected. Pass a list of texts or "
            "padded ids, or call `fit` or `evaluate`."
        )
    count = count_examples(x)
    if not count:
        raise AlbertError("`x` has no examples. Expected at least one.")
    sizes: dict[str, Any] = {"batch_size": count, "max_tokens": None}
    if takes_texts(task, x):
        # A text may be several rows.
        sizes = {"batch_size": None, "max_tokens": TOKENS_OF_ANY_BATCH}
    batches = keras_data(task, x, y, sample_weight, **sizes, fixed=fixed)
    batch = next(iter(batches))
    x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(batch)
    return x, y, sample_weight


def validation_batches(
    task: Any, data: Any, batch_size: int | None, max_tokens: int | None
) -> tf.data.Dataset | None:
    """Return the `validation_data` of `fit` as batches."""
    if data is None:
        return None
    # Keras takes a list of (x, y), too.
    is_parts = isinstance(data, tuple) or bool(
        isinstance(data, list) and data and not isinstance(data[0], str)
    )
    data = tuple(data) if is_parts else (data,)
    if isinstance(data[0], tf.data.Dataset):
        max_tokens = None
    options = {"batch_size": batch_size, "max_tokens": max_tokens}
    return keras_data(task, *data, **options, fixed=True)


def check_class_weight(task: Any, class_weight: Any, x: Any) -> None:
    """Raise unless `class_weight` of `fit` is for the task and its data."""
    if class_weight is not None and not task.takes_class_weight:
        raise AlbertError(
            "`class_weight` is for classifiers with one class per text. Use "
            f"`sample_weight` or your own loss for {type(task).__name__}."
        )
    if isinstance(class_weight, str) and class_weight == BALANCED:
        if isinstance(x, tf.data.Dataset):
            raise AlbertError(
                'class_weight="balanced" counts the labels of lists; those of a '
                "dataset are unknown before training. Count them from a list: "
                "class_weight=albert_tf.models.class_weights(y, labels)."
            )
    elif class_weight is not None and not isinstance(class_weight, dict):
        raise AlbertError(
            '`class_weight` should be "balanced", or a dict of weights by class. '
            f"Received: {class_weight!r:.80}"
        )


def weights_by_id(task: Any, class_weight: Any, x: Any, y: Any) -> Any:
    """Return the `class_weight` of `fit` by class id."""
    if class_weight is None:
        return None
    if not isinstance(class_weight, dict):
        targets = np.asarray(task.targets(x, y))
        # One column per class, for another loss.
        ids = targets.argmax(axis=-1) if targets.ndim > 1 else targets
        return dict(enumerate(balanced_weights(ids, task.num_classes)))
    classes = list(class_weight)
    if task.labels:
        ids = class_positions(classes, task.labels, "class_weight")
    else:
        ids = check_positions(classes, task.num_classes, "class_weight")
    # Keras fails on classes without a weight.
    weights = dict.fromkeys(range(task.num_classes), 1.0)
    return weights | dict(zip(ids.tolist(), class_weight.values(), strict=True))


def balanced_weights(ids: Any, num_classes: int) -> list[float]:
    """Return weights inversely proportional to how often each class id occurs.

    They are those of scikit-learn's `class_weight="balanced"`.
    """
    counts = np.bincount(np.asarray(ids, int), minlength=num_classes)
    share = len(ids) / np.count_nonzero(counts)
    return [float(share / max(count, 1)) for count in counts]


def check_pairs(task: Any, x: Any) -> None:
    """Raise if `x` are single texts and the model was trained on pairs."""
    if task.pairs and task.text_inputs == ("text", "text_b") and is_pair(x) is False:
        raise AlbertError(
            "This model takes pairs of texts: the tuple of two lists, (first_texts, "
            "second_texts). Received single texts."
        )


def takes_texts(task: Any, x: Any) -> bool:
    """Return whether `x` is texts in memory; raise if it is a single text."""
    parts = x if isinstance(x, tuple) else (x,)
    if any(isinstance(part, (str, bytes)) for part in parts):
        raise TypeError(
            "`x` must be a list of strings, or the tuple of two such lists, "
            f"not one example. Received: {x!r}"
        )
    if isinstance(x, (Iterator, keras.utils.PyDataset)):
        raise TypeError(
            f"`x` is a {type(x).__name__}. Pass a list of texts, or batches as a "
            "dataset: tf.data.Dataset.from_generator(function, "
            "output_signature=(tf.TensorSpec([None], tf.string), "
            "tf.TensorSpec([None], tf.int64)))."
        )
    if task.preprocessor is None or x is None:
        return False
    if isinstance(x, dict) and "token_ids" not in x:
        raise TypeError(
            f"`x` is a {type(x).__name__} of {list(x)[:5]}. Pass texts, such as a "
            "column, or the ids that the model takes."
        )
    return not isinstance(x, (dict, tf.data.Dataset))


def bucket_by_length(
    dataset: tf.data.Dataset,
    preprocessor: Any,
    batch_size: int | None = None,
    max_tokens: int | None = None,
) -> tf.data.Dataset:
    """Rebatch a dataset of texts by length, in one pass, so that little is padded.

    `fit`, `evaluate` and `predict` batch lists of texts by length without this.
    It is for tasks with one label per text or pair, except `AlbertTextEmbedder`. The
    number of batches is unknown, so the rate of `optimizer="auto"` is constant.

    Args:
        dataset: a `tf.data.Dataset` of batches `(texts, y)` or `(texts, y,
            sample_weight)`; pairs are the tuple of two tensors.
        preprocessor: the preprocessor of the task.
        batch_size: optional int, examples per batch, 32 by default.
        max_tokens: optional int, tokens per batch instead, padding included.

    Returns:
        A `tf.data.Dataset` with padded ids instead of the texts.

    Raises:
        AlbertError: if an argument is wrong, or the task has other labels.

    Example:
    ```python
    grouped = albert_tf.models.bucket_by_length(dataset, classifier.preprocessor)
    classifier.fit(grouped, epochs=3)
    ```
    """
    if type(preprocessor).pack_rows is not TextPreprocessor.pack_rows:
        raise AlbertError(
            "`bucket_by_length` is for tasks with one label per text. Pass lists, "
            f"which are batched by length. Received: {type(preprocessor).__name__}"
        )
    check_batched(dataset)
    packer = preprocessor.packer
    if max_tokens is None:
        batch_size = size_or_default(batch_size)
    plan = batch_plan(packer, batch_size, max_tokens)
    # Two boundaries per doubling: at most a third of a batch is padding.
    powers = (2**n for n in range(3, packer.sequence_length.bit_length()))
    both = (bound for power in powers for bound in (power + 1, power * 3 // 2 + 1))
    boundaries = [bound for bound in both if bound <= packer.sequence_length]
    longest = [*(bound - 1 for bound in boundaries), packer.sequence_length]

    def tokenize(texts, *rest):
        return preprocessor.pack(texts), rest

    def pad(packed, rest):
        return packer.pad(*packed), *rest

    return (
        dataset.map(tokenize, num_parallel_calls=tf.data.AUTOTUNE)
        .unbatch()
        .bucket_by_sequence_length(
            lambda packed, rest: tf.size(packed[0]),
            bucket_boundaries=boundaries,
            bucket_batch_sizes=list(map(plan.batch_size, longest)),
            # Batches are ragged until `pad`.
            no_padding=True,
        )
        .map(pad, num_parallel_calls=tf.data.AUTOTUNE)
        .prefetch(tf.data.AUTOTUNE)
    )


def batches_of_ids(
    x: Any,
    y: Any,
    sample_weight: Any,
    batch_size: int | None,
    shuffle: bool | BatchOrder,
) -> tf.data.Dataset:
    """Return batches of padded ids in memory, [examples, time]."""
    data = keras.utils.pack_x_y_sample_weight(x, y, sample_weight)
    dataset = tf.data.Dataset.from_tensor_slices(data)
    size = size_or_default(batch_size)
    if isinstance(shuffle, BatchOrder):
        count = len(dataset)
        examples = (dataset.batch(count).get_single_element(),)
        lengths, plan = np.zeros(count, int), FixedSize(size)
        return TextBatches(examples, lengths, lambda x: x, plan, shuffle).dataset
    if shuffle:
        dataset = dataset.shuffle(dataset.cardinality())
    return dataset.batch(size)


def refuse_for_datasets(**options: Any) -> None:
    """Raise if an argument is given that is for lists of texts only."""
    for name, value in options.items():
        if value is not None:
            raise AlbertError(
                f"`{name}` is for lists of texts. Pass batches (x, y) or (x, y, "
                "sample_weight); `albert_tf.models.bucket_by_length` makes batches of "
                "`max_tokens`."
            )


def check_width(dataset: tf.data.Dataset) -> None:
    """Raise if batches of ids do not have one target per token."""
    spec = dataset.element_spec
    if isinstance(spec, tuple) and len(spec) > 1 and isinstance(spec[0], dict):
        ids, y = spec[0]["token_ids"].shape, spec[1].shape
        if not y[:2].is_compatible_with(ids):
            raise AlbertError(
                f"`y` has the shape {y}, but `token_ids` have {ids}. Expected one tag "
                f"or token id per token, special tokens included, and {PADDING_TARGET} "
                "for those that do not count."
            )


def check_no_strings(task: Any, dataset: tf.data.Dataset) -> None:
    """Raise if targets of a dataset are strings, of which the task made no numbers."""
    spec = dataset.element_spec
    targets = tf.nest.flatten(spec[1:2]) if isinstance(spec, tuple) else []
    if any(target.dtype == tf.string for target in targets):
        way = "Pass texts and targets as lists, or map the targets to numbers"
        if task.takes_class_weight and not task.labels:
            way = "Pass the names of the classes as `labels`, or map them to class ids"
        raise AlbertError(
            f"The targets of the dataset are strings, but {type(task).__name__} learns "
            f"numbers from datasets. {way}."
        )


def targets_of_one_type(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Return a dataset whose integer targets are of 64 bits."""
    spec = dataset.element_spec
    if not isinstance(spec, tuple) or len(spec) < 2:
        return dataset
    return dataset.map(lambda x, y, *w: (x, tf.nest.map_structure(one_type, y), *w))


@contextlib.contextmanager
def without_expected_warnings(dataset: tf.data.Dataset) -> Iterator[None]:
    """Hide Keras' warnings about a pooler that is only kept and unknown lengths."""
    pooler = r"\['pooled_dense/kernel', 'pooled_dense/bias'\]"
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", f"Gradients do not exist .* {pooler} when")
        if int(dataset.cardinality()) < 0:
            warnings.filterwarnings("ignore", "Your input ran out of data")
        yield
