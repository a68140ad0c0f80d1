"""`albert_tf.pipeline` against that of transformers, on the same weights."""

import os

# Before transformers is imported: nothing here may look for a model elsewhere.
os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
import pytest
from small_classifier import CHARACTERS, VOCABULARY, randomised, small_backbone

import albert_tf
from albert_tf.models import AlbertTextClassifier

pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

pytestmark = pytest.mark.peers


def both(tmp_path, **arguments):
    backbone = small_backbone(embedding_projection="after_layer_norm")
    model = AlbertTextClassifier.from_backbone(
        backbone, VOCABULARY, labels=["坏", "中", "好"], num_classes=3, **arguments
    )
    randomised(model).export_to_transformers(tmp_path)
    theirs = transformers.pipeline("text-classification", str(tmp_path))
    return albert_tf.pipeline("text-classification", tmp_path), theirs


def texts(count):
    rng = np.random.default_rng(3)
    return [
        "".join(rng.choice(list(CHARACTERS), rng.integers(1, 12))) for _ in range(count)
    ]


def assert_same(ours, theirs):
    for our, their in zip(ours, theirs, strict=True):
        assert our["label"] == their["label"]
        assert our["score"] == pytest.approx(their["score"], abs=1e-5)


def test_classes(tmp_path):
    ours, theirs = both(tmp_path)
    given = texts(200)
    assert_same(ours(given), theirs(given))
    for our, their in zip(
        ours(given[:20], top_k=None), theirs(given[:20], top_k=None), strict=True
    ):
        assert_same(our, their)
    pairs = list(zip(given[:20], given[20:40], strict=True))
    dicts = [{"text": a, "text_pair": b} for a, b in pairs]
    assert_same(ours(pairs), theirs(dicts))
    assert_same(ours(dicts), theirs(dicts))


def test_any_number_of_labels(tmp_path):
    ours, theirs = both(tmp_path, multi_label=True)
    assert ours.task == "multi-label"
    given = texts(20)
    for our, their in zip(
        ours(given, top_k=None), theirs(given, top_k=None), strict=True
    ):
        assert_same(our, their)
