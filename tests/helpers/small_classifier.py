"""Models small enough to train in a test, and a plain-Python view of their texts."""

import functools
import string

import numpy as np
import tensorflow as tf

from albert_tf.models import AlbertBackbone, AlbertTextClassifier

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PAD, UNK, CLS, SEP, MASK = range(5)
CHARACTERS = "好坏很不太差了的一是我你他吃想鸡蛋中文天地人大小上下左右前后"
CHARACTERS += "多少来去见开，。！？吧呢么啊这那"
LETTERS = string.ascii_lowercase
# As many tokens as the golden checkpoints have.
VOCABULARY = [*SPECIAL, *CHARACTERS, *LETTERS, *(f"##{letter}" for letter in LETTERS)]
VOCABULARY += [f"[unused{i}]" for i in range(120 - len(VOCABULARY))]

# Lengths from nothing to more than a batch of neighbours has, not in order.
TEXTS = ["很好吃，我想你来吧", "", "差", "😀好", "太差了！" * 4, "不", "他 去 了吗"]
OTHERS = ["好", "不好", "", "你" * 9, "我想吃鸡蛋", "😀", "好" * 3]
LABELS = [2, 0, 1, 1, 0, 2, 0]


def small_backbone(**kwargs):
    sizes = {
        "vocabulary_size": len(VOCABULARY),
        "num_layers": 2,
        "num_heads": 2,
        "embedding_dim": 8,
        "hidden_dim": 12,
        "intermediate_dim": 20,
        "max_sequence_length": 29,
    }
    return AlbertBackbone(**{**sizes, **kwargs})


def randomised(task, seed=0):
    """The same weights for a seed, large enough that texts get unlike outputs."""
    rng = np.random.default_rng(seed)
    for weight in task.trainable_variables:
        around = 1.0 if weight.name == "gamma" else 0.0
        weight.assign(rng.normal(around, 0.3, weight.shape))
    return task


def small_classifier(
    num_classes=3, sizes=None, seed=0, cls=AlbertTextClassifier, **kwargs
):
    backbone = small_backbone(**(sizes or {}))
    classifier = cls.from_backbone(backbone, VOCABULARY, num_classes, **kwargs)
    return randomised(classifier, seed)


def predict(task, x, **kwargs):
    return task.predict(x, verbose=0, **kwargs)


def call(task, x):
    """Return the outputs for texts, without a graph."""
    return np.array(task(task.preprocessor(x), training=False))


def cross_entropy(logits, y):
    """The loss of each example, in NumPy."""
    logits = logits.astype("float64")
    log_sums = np.log(np.exp(logits).sum(axis=1))
    return log_sums - logits[np.arange(len(y)), y]


def hand_padded(first, second=None, time=29):
    """The features of one text, or a pair, of one-character tokens."""
    ids = [CLS, *map(token_id, first), SEP]
    segment_ids = [0] * len(ids)
    if second is not None:
        ids += [*map(token_id, second), SEP]
        segment_ids += [1] * (len(ids) - len(segment_ids))
    padding = [0] * (time - len(ids))
    features = {
        "token_ids": ids + padding,
        "segment_ids": segment_ids + padding,
        "padding_mask": [1] * len(ids) + padding,
    }
    return {name: np.array([value], "int32") for name, value in features.items()}


def token_id(character):
    return VOCABULARY.index(character) if character in VOCABULARY else UNK


def unequal_batches(examples, *sizes):
    """A dataset whose batches have these sizes."""
    examples = tf.data.Dataset.from_tensor_slices(examples)
    starts = np.cumsum([0, *sizes[:-1]])
    batches = (
        examples.skip(start).take(size).batch(size)
        for start, size in zip(starts, sizes, strict=True)
    )
    return functools.reduce(tf.data.Dataset.concatenate, batches)
