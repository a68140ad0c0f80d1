"""`fill` and `albert_tf.pipeline` against the pipelines of transformers."""

import os

# Before transformers is imported: nothing here may look for a model elsewhere.
os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
import pytest
from peer_models import random_backbone, randomise
from small_classifier import CHARACTERS, SPECIAL, VOCABULARY, randomised, small_backbone

import albert_tf
from albert_tf.models import (
    AlbertMaskedLM,
    AlbertMultiLabelClassifier,
    AlbertTextClassifier,
    AlbertTokenClassifier,
)

pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

pytestmark = pytest.mark.peers


def texts(count, masks=0):
    """Texts of characters, Latin words and unknown ones, with some masks."""
    rng = np.random.default_rng(masks)
    pieces = [*CHARACTERS, *([" ", "hello", "鑫"] if masks else [])]
    made = []
    for _ in range(count):
        text = list(rng.choice(pieces, rng.integers(1, 12)))
        for at in rng.integers(len(text) + 1, size=masks):
            text.insert(at, "[MASK]")
        made.append("".join(text))
    return made


def their_pipeline(kind, model, path):
    model.export_to_transformers(path)
    return transformers.pipeline(kind, str(path))


# === Masked words ===


def bare(sequence):
    """Remove what their join of tokens adds or leaves out."""
    for left_out in (*SPECIAL, "鑫", "##", " "):
        sequence = sequence.replace(left_out, "")
    return sequence


def test_masked_words(tmp_path):
    backbone = random_backbone(pooler=False)
    model = randomise(AlbertMaskedLM.from_backbone(backbone, VOCABULARY))
    pipeline = their_pipeline("fill-mask", model, tmp_path)
    for masks, count in ((1, 80), (3, 20)):
        given = texts(count, masks)
        answers = model.fill(given, top_k=3), pipeline(given, top_k=3)
        if masks == 1:
            answers = [[[row] for row in rows] for rows in answers]
        for ours, theirs in zip(*(sum(rows, []) for rows in answers), strict=True):
            for our, their in zip(ours, theirs, strict=True):
                assert our["token"] == their["token"]
                assert our["score"] == pytest.approx(their["score"], abs=1e-6)
                assert our["token_str"] == their["token_str"]
                assert bare(our["sequence"]) == bare(their["sequence"])


# === Classes ===


def assert_same_classes(ours, theirs):
    for our, their in zip(ours, theirs, strict=True):
        assert our["label"] == their["label"]
        assert our["score"] == pytest.approx(their["score"], abs=1e-5)


@pytest.mark.parametrize("multi_label", [False, True])
def test_classes_of_texts_and_pairs(tmp_path, multi_label):
    backbone = small_backbone(embedding_projection="after_layer_norm")
    labels = ["坏", "中", "好"]
    cls = AlbertMultiLabelClassifier if multi_label else AlbertTextClassifier
    model = cls.from_backbone(backbone, VOCABULARY, labels=labels, num_classes=3)
    theirs = their_pipeline("text-classification", randomised(model), tmp_path)
    ours = albert_tf.pipeline("text-classification", tmp_path)
    assert ours.task == ("multi-label" if multi_label else "text-classification")
    given = texts(40)
    answers = ours(given, top_k=None), theirs(given, top_k=None)
    for our, their in zip(*answers, strict=True):
        assert_same_classes(our, their)
    if not multi_label:
        assert_same_classes(ours(given), theirs(given))
        pairs = list(zip(given[:20], given[20:], strict=True))
        dicts = [{"text": a, "text_pair": b} for a, b in pairs]
        assert_same_classes(ours(pairs), theirs(dicts))
        assert_same_classes(ours(dicts), theirs(dicts))


def test_zero_shot_classes(tmp_path):
    # As transformers expects them: entailment first, contradiction last.
    labels = ["entailment", "neutral", "contradiction"]
    classifier = AlbertTextClassifier.from_backbone(
        random_backbone(), VOCABULARY, labels=labels, num_classes=3, pairs=True
    )
    kernel = randomise(classifier).output_dense.kernel
    kernel.assign(kernel * 20)
    kind = "zero-shot-classification"
    theirs = their_pipeline(kind, classifier, tmp_path)
    ours = albert_tf.pipeline(kind, classifier)
    options = {
        "candidate_labels": ["天地", "吃鸡蛋", "中文", "左右"],
        "hypothesis_template": "这句话是关于{}的。",
    }
    spreads = []
    for multi_label in (False, True):
        options["multi_label"] = multi_label
        answers = (pipeline(texts(20), **options) for pipeline in (ours, theirs))
        for pair in zip(*answers, strict=True):
            row, expected = pair
            assert row["sequence"] == expected["sequence"]
            first, second = (
                dict(zip(x["labels"], x["scores"], strict=True)) for x in pair
            )
            assert first == pytest.approx(second, abs=1e-5)
            assert row["scores"] == sorted(row["scores"], reverse=True)
            spreads.append(np.ptp(row["scores"]))
    assert np.mean(spreads) > 1e-3


# === Entities ===


def test_entities_are_those_of_their_pipeline(tmp_path):
    # Tags without B- and E-, because their pipeline takes the likeliest tag.
    # Without full stops and emoji, which their tokenizer joins.
    rng = np.random.default_rng(0)
    alphabet = [*"好坏很不太差了的一是我你他", *"abcde", " ", "，"]
    texts = ["".join(rng.choice(alphabet, rng.integers(2, 26))) for _ in range(200)]
    texts = [text.strip() or "好" for text in texts]
    backbone = small_backbone(
        num_heads=4, embedding_projection="after_layer_norm", pooler=False
    )
    model = AlbertTokenClassifier.from_backbone(
        backbone, VOCABULARY, tags=["O", "I-PER", "I-LOC"]
    )
    randomised(model)
    logits = np.concatenate(
        [x[1:-1] for x in model.predict(model.preprocessor(texts), verbose=0)]
    )
    # Each tag should occur.
    model.tag_dense.bias.assign_sub(np.median(logits, axis=0))
    albert_tf.save_checkpoint(model, tmp_path, "huggingface")
    pipeline = transformers.pipeline(
        "token-classification", str(tmp_path), aggregation_strategy="simple"
    )
    ours = model.predict_spans(texts, verbose=0)
    count = 0
    for text, row, entities in zip(texts, ours, pipeline(texts), strict=True):
        theirs = [(x["start"], x["end"], x["entity_group"]) for x in entities]
        assert [x[:3] for x in row] == theirs, text
        scores = [x["score"] for x in entities]
        np.testing.assert_allclose([x[3] for x in row], scores, atol=1e-5)
        count += len(row)
    assert count > 300
