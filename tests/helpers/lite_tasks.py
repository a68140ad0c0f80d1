"""Small tasks to write as LiteRT and ONNX files, each unlike the others."""

import importlib.util

import pytest
from small_classifier import OTHERS, TEXTS, VOCABULARY, randomised, small_backbone

from albert_tf.export import LiteRTModel, OnnxModel, litert, onnx
from albert_tf.models import (
    AlbertMultiLabelClassifier,
    AlbertSentenceOrder,
    AlbertTextClassifier,
    AlbertTextEmbedder,
    AlbertTextRegressor,
    AlbertTokenClassifier,
)

needs_litert = pytest.mark.skipif(
    importlib.util.find_spec("ai_edge_litert") is None,
    reason="ai-edge-litert is not installed (extra `litert`)",
)
needs_onnx = pytest.mark.skipif(
    None in map(importlib.util.find_spec, ("onnx", "onnxruntime")),
    reason="onnx and onnxruntime are not installed (extra `onnx`)",
)

SIZES = {"num_layers": 3, "num_heads": 4, "embedding_dim": 16, "hidden_dim": 24}
PAIRS = (TEXTS, OTHERS)

# By name: the class, its arguments, those of the backbone, and texts.
TASKS = {
    "labels": (
        AlbertTextClassifier,
        dict(num_classes=3, labels=[*"坏中好"]),
        {},
        TEXTS,
    ),
    "google pairs": (
        AlbertTextClassifier,
        dict(num_classes=3, pairs=True, activation="softmax"),
        dict(
            embedding_projection="after_layer_norm",
            normalize_first=True,
            activation="relu",
        ),
        PAIRS,
    ),
    "multi-label": (
        AlbertMultiLabelClassifier,
        dict(
            num_classes=4,
            thresholds=[0.3, 0.5, 0.6, 0.4],
            pooling_mode="first_last_mean",
        ),
        dict(num_attention_groups=3, num_ffn_groups=2, num_inner_repetitions=2),
        TEXTS,
    ),
    "regression": (
        AlbertTextRegressor,
        dict(pooling_mode="max"),
        dict(activation="gelu"),
        PAIRS,
    ),
    "tags": (
        AlbertTokenClassifier,
        dict(labels=["PER", "LOC"], scheme="BIOES"),
        dict(max_sequence_length=14),
        TEXTS,
    ),
    "embedding": (AlbertTextEmbedder, {}, {}, TEXTS),
    "embedding cls": (
        AlbertTextEmbedder,
        dict(pooling_mode="cls", normalize=False),
        {},
        TEXTS,
    ),
    "order": (AlbertSentenceOrder, {}, {}, PAIRS),
}


def small_task(name, **changes):
    """A task of the table, and texts for it."""
    kind, arguments, sizes, texts = TASKS[name]
    backbone = small_backbone(**{**SIZES, **sizes, **changes})
    return randomised(kind.from_backbone(backbone, VOCABULARY, **arguments)), texts


def write_litert(task, path, **options):
    litert(task, path, **{"lengths": (16, 64), **options})
    return LiteRTModel(path, threads=1)


def write_onnx(task, path, **options):
    onnx(task, path, **options)
    return OnnxModel(path, threads=1)


FORMATS = [
    pytest.param(write_litert, marks=needs_litert, id="litert"),
    pytest.param(write_onnx, marks=needs_onnx, id="onnx"),
]
