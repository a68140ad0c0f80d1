"""A classifier small enough to train in a test, and a plain-Python view of it."""

import string

import numpy as np

from albert_tf.models import AlbertBackbone, AlbertTextClassifier

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PAD, UNK, CLS, SEP, MASK = range(5)
CHARACTERS = "好坏很不太差了的一是我你他吃想鸡蛋中文天地人大小上下左右前后"
CHARACTERS += "多少来去见开，。！？吧呢么啊这那"
LETTERS = string.ascii_lowercase
# As many tokens as the golden checkpoints have.
VOCABULARY = [*SPECIAL, *CHARACTERS, *LETTERS, *(f"##{letter}" for letter in LETTERS)]
VOCABULARY += [f"[unused{i}]" for i in range(120 - len(VOCABULARY))]


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


def small_classifier(num_classes=3, sizes=None, seed=0, **kwargs):
    """The same weights for a seed, large enough that texts get unlike logits."""
    backbone = small_backbone(**(sizes or {}))
    classifier = AlbertTextClassifier.from_backbone(
        backbone, VOCABULARY, num_classes, **kwargs
    )
    rng = np.random.default_rng(seed)
    for weight in classifier.trainable_variables:
        around = 1.0 if weight.name == "gamma" else 0.0
        weight.assign(rng.normal(around, 0.3, weight.shape))
    return classifier


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
