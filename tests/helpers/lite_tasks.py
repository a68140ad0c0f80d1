"""Small tasks to write as LiteRT and ONNX files, each unlike the others."""

import importlib.util
import json

import pytest
from small_classifier import OTHERS, TEXTS, VOCABULARY, randomised, small_backbone

from albert_tf import models
from albert_tf.export import LiteRTModel, OnnxModel, litert, onnx

needs_litert = pytest.mark.skipif(
    importlib.util.find_spec("ai_edge_litert") is None,
    reason="ai-edge-litert is not installed (extra `litert`)",
)
needs_onnx = pytest.mark.skipif(
    None in map(importlib.util.find_spec, ("onnx", "onnxruntime")),
    reason="onnx and onnxruntime are not installed (extra `onnx`)",
)
SIZES = {"num_layers": 2, "num_heads": 4, "embedding_dim": 16, "hidden_dim": 24}
PAIRS = (TEXTS, OTHERS)
# With capital letters, which the tokenizer lower-cases.
CAPITALS = [*TEXTS, "Hen好"]
# Up to 48 tokens, more than a few windows.
LONG = [x * 3 for x in TEXTS]
GOOGLE = {
    **{"embedding_projection": "after_layer_norm", "normalize_first": True},
    "activation": "relu",
}
GROUPS = {"num_layers": 3, "num_attention_groups": 3, "num_ffn_groups": 2}
GROUPS["num_inner_repetitions"] = 2
LABELS = {"num_classes": 3, "labels": [*"坏中好"], "temperature": 0.5}
SOFTMAX = {"num_classes": 3, "pairs": True, "activation": "softmax"}
CHOSEN = {"num_classes": 4, "thresholds": [0.3, 0.5, 0.6, 0.4]}
CHOSEN |= {"pooling_mode": "first_last_mean", "temperature": 2.0}
TAGS = {"labels": ["PER", "LOC"], "scheme": "BIOES", "stride": 5, "temperature": 1.5}
CLS = {"pooling_mode": "cls", "normalize": False}
MAX = {"pooling_mode": "max"}
ANSWERS = {"max_answer_length": 5, "sequence_length": 24, "null_threshold": 0.0}
QUESTIONS = (TEXTS, [x * 4 for x in OTHERS])
CHOICES = (TEXTS, OTHERS, [OTHERS[: 1 + i % 3] for i in range(len(TEXTS))])
# By name: the class, its arguments, those of the backbone, and texts.
TASKS = {
    "labels": ("AlbertTextClassifier", LABELS, {}, CAPITALS),
    "google pairs": ("AlbertTextClassifier", SOFTMAX, GOOGLE, PAIRS),
    "multi-label": ("AlbertMultiLabelClassifier", CHOSEN, GROUPS, TEXTS),
    "regression": ("AlbertTextRegressor", MAX, {"activation": "gelu"}, PAIRS),
    "tags": ("AlbertTokenClassifier", TAGS, {"max_sequence_length": 14}, LONG),
    "embedding": ("AlbertTextEmbedder", {}, {}, TEXTS),
    "embedding cls": ("AlbertTextEmbedder", CLS, {}, TEXTS),
    "questions": ("AlbertQuestionAnswering", ANSWERS, {}, QUESTIONS),
    "choices": ("AlbertMultipleChoice", {}, GOOGLE, CHOICES),
    "order": ("AlbertSentenceOrder", {}, {}, PAIRS),
}


def small_task(name, **changes):
    """Return a task of the table and texts for it."""
    kind, arguments, sizes, texts = TASKS[name]
    backbone = small_backbone(**{**SIZES, **sizes, **changes})
    cls = getattr(models, kind)
    return randomised(cls.from_backbone(backbone, VOCABULARY, **arguments)), texts


def write_litert(task, path, **options):
    litert(task, path, **{"lengths": (16, 64), "batch_tokens": 48, **options})
    return LiteRTModel(path, threads=1)


def write_onnx(task, path, **options):
    onnx(task, path, **options)
    return OnnxModel(path, threads=1)


FORMATS = [
    pytest.param(write_litert, marks=needs_litert, id="litert"),
    pytest.param(write_onnx, marks=needs_onnx, id="onnx"),
]


class Near(float):
    """A float that equals all within 1e-5 of it."""

    def __eq__(self, other):
        return abs(self - other) < 1e-5


def near(answers):
    """Answers after a round trip through JSON."""
    return json.loads(json.dumps(answers), parse_float=Near)
