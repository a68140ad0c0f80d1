"""Directories for transformers.js: Keras' numbers from Hugging Face's own tokenizer."""

import json
import random
import re
import sys
import unicodedata
from pathlib import Path

import numpy as np
import pytest
import sentence_piece_reference
from lite_tasks import TASKS, needs_onnx, small_task
from small_classifier import (
    OTHERS,
    TEXTS,
    VOCABULARY,
    randomised,
    small_backbone,
    small_classifier,
)

import albert_tf
from albert_tf import models
from albert_tf.export.tokenizer_json import tokenizer_json
from albert_tf.export.transformers_js import NETWORKS
from albert_tf.model_card import MARK
from albert_tf.tokenizers import SentencePieceTokenizer, WordPieceTokenizer
from albert_tf_lite.word_piece import WordPieceTokenizer as PlainTokenizer

tokenizers = pytest.importorskip("tokenizers")
onnxruntime = pytest.importorskip("onnxruntime")

ROOT = Path(__file__).parents[2]
MICRO = ROOT / "examples" / "albert_micro_zh"
MASKED = [f"{text}[MASK]好" for text in TEXTS]
NAMES = [*(x for x in TASKS if x not in ("choices", "order")), "masked"]

pytestmark = [needs_onnx, pytest.mark.filterwarnings("ignore:.* texts are longer")]


def build(name):
    """Return a task and texts for it."""
    if name != "masked":
        return small_task(name)
    # Labels with ## count as their characters.
    vocabulary = [*VOCABULARY[:-2], "##好", "##不"]
    backbone = small_backbone(vocabulary_size=len(vocabulary) + 3)
    cls = models.AlbertMaskedLM
    return randomised(cls.from_backbone(backbone, vocabulary, marked_labels=True)), MASKED


def run(folder, texts, precision="float32"):
    """Return ids and outputs by name, as a program without this package computes them."""
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    config = json.loads((folder / "tokenizer_config.json").read_text("utf-8"))
    pad = tokenizer.token_to_id(config["pad_token"])
    tokenizer.enable_padding(pad_id=pad, pad_token=config["pad_token"])
    rows = zip(*texts, strict=True) if isinstance(texts, tuple) else texts
    found = tokenizer.encode_batch([*rows])
    feeds = {
        "input_ids": [x.ids for x in found],
        "token_type_ids": [x.type_ids for x in found],
        "attention_mask": [x.attention_mask for x in found],
    }
    feeds = {name: np.array(x, "int64") for name, x in feeds.items()}
    session = onnxruntime.InferenceSession(folder / NETWORKS[precision])
    assert [x.name for x in session.get_inputs()] == [*feeds]
    names = [x.name for x in session.get_outputs()]
    return feeds, dict(zip(names, session.run(None, feeds), strict=True))


def softmax(x):
    x = np.exp(x - x.max(axis=-1, keepdims=True))
    return x / x.sum(axis=-1, keepdims=True)


def answers(name, task, outputs, features):
    """Return pairs of arrays: those of the file and those of Keras."""
    mask = features["padding_mask"].numpy() > 0
    expected = task(features, training=False)
    if name == "questions":
        return [(outputs[x][mask], expected[x].numpy()[mask]) for x in expected]
    expected = np.array(expected)
    if name == "tags":
        return [(outputs["logits"][mask], expected[mask])]
    if name == "masked":
        where = features["mask_positions"].numpy()
        logits = np.take_along_axis(outputs["logits"], where[..., None], axis=1)
        return [(softmax(logits), task.probabilities(expected).numpy())]
    if name.startswith("embedding"):
        return [(outputs["sentence_embedding"], expected)]
    given = outputs["logits"]
    return [(softmax(given) if name == "google pairs" else given, expected)]


@pytest.mark.parametrize("name", NAMES)
def test_ids_and_numbers_are_those_of_keras(name, tmp_path):
    task, texts = build(name)
    # Hugging Face keeps the second [SEP] of an empty text.
    if isinstance(texts, tuple):
        texts = tuple([text or "好" for text in part] for part in texts)
    if name in ("tags", "questions"):
        # One window.
        cut = 8 if name == "tags" else 5
        texts = (
            tuple([x[:cut] for x in part] for part in texts)
            if isinstance(texts, tuple)
            else [x[:cut] for x in texts]
        )
    folder = tmp_path / "web"
    albert_tf.export.transformers_js(task, folder)
    given, outputs = run(folder, texts)
    features = task.preprocessor.features(texts)
    mask = given["attention_mask"] > 0
    time = mask.shape[1]
    for ours, theirs in zip(
        ("token_ids", "segment_ids", "padding_mask"),
        ("input_ids", "token_type_ids", "attention_mask"),
        strict=True,
    ):
        np.testing.assert_array_equal(
            given[theirs][mask], features[ours].numpy()[:, :time][mask]
        )
        features[ours] = features[ours][:, :time]
    assert int(features["padding_mask"].numpy().sum()) == mask.sum()
    for found, expected in answers(name, task, outputs, features):
        np.testing.assert_allclose(found, expected, atol=1e-4)
    _, quantized = run(folder, texts, "int8")
    for key, values in quantized.items():
        assert values.shape == outputs[key].shape
    sizes = [(folder / x).stat().st_size for x in NETWORKS.values()]
    assert sizes[1] < sizes[0]
