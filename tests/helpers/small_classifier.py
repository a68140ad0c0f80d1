"""Models small enough to train in a test, and a plain-Python view of their texts."""

import functools
import string

import numpy as np
import tensorflow as tf
from numpy_reference import randomize

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
    sizes = {"vocabulary_size": len(VOCABULARY), "num_layers": 2, "num_heads": 2}
    sizes |= {"embedding_dim": 8, "hidden_dim": 12, "intermediate_dim": 20}
    return AlbertBackbone(**{**sizes, "max_sequence_length": 29, **kwargs})


# Weights so large that texts get unlike outputs.
randomised = functools.partial(randomize, spread=0.3)


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


def features_of(text):
    """The features of a text of one-character tokens, without padding."""
    token_ids = np.array([[CLS, *map(token_id, text), SEP]], "int32")
    return {
        "token_ids": token_ids,
        "segment_ids": np.zeros_like(token_ids),
        "padding_mask": np.ones_like(token_ids),
    }


def token_id(character):
    return VOCABULARY.index(character) if character in VOCABULARY else UNK


def unequal_batches(examples, *sizes):
    """A dataset whose batches have these sizes."""
    examples = tf.data.Dataset.from_tensor_slices(examples)
    batches = []
    for size in sizes:
        batches.append(examples.take(size).batch(size))
        examples = examples.skip(size)
    return functools.reduce(tf.data.Dataset.concatenate, batches)
