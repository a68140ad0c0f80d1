"""`fill` and `albert_tf.pipeline` against the pipelines of transformers."""

import os

# Before transformers is imported: nothing here may look for a model elsewhere.
os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
import pytest
from peer_models import random_backbone, randomise
from small_classifier import (
    CHARACTERS,
    SPECIAL,
    VOCABULARY,
    randomised,
    small_backbone,
)

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


# === Masked words ===


@pytest.fixture(scope="module")
def fill_mask(tmp_path_factory):
    """Our model, and their pipeline of its export."""
    path = tmp_path_factory.mktemp("model")
    model = randomise(
        AlbertMaskedLM.from_backbone(random_backbone(pooler=False), VOCABULARY)
    )
    model.export_to_transformers(path)
    pipeline = transformers.FillMaskPipeline(
        model=transformers.AutoModelForMaskedLM.from_pretrained(path),
        tokenizer=transformers.AutoTokenizer.from_pretrained(path),
    )
    return model, pipeline


def masked_texts(masks, count):
    """Texts of characters, Latin words and unknown ones, with some masks."""
    rng = np.random.default_rng(masks)
    pieces = [*CHARACTERS, " ", "hello", "鑫"]
    made = []
    for _ in range(count):
        text = list(rng.choice(pieces, rng.integers(1, 12)))
        for at in rng.integers(len(text) + 1, size=masks):
            text.insert(at, "[MASK]")
        made.append("".join(text))
    return made


def assert_same_words(ours, theirs):
    assert [x["token"] for x in ours] == [x["token"] for x in theirs]
    np.testing.assert_allclose(
        [x["score"] for x in ours], [x["score"] for x in theirs], atol=1e-6
    )
    for our, their in zip(ours, theirs, strict=True):
        assert our["token_str"] == their["token_str"]
        assert bare(our["sequence"]) == bare(their["sequence"])


def bare(sequence):
    """Remove what their join of tokens adds or leaves out."""
    for left_out in (*SPECIAL, "鑫", "##", " "):
        sequence = sequence.replace(left_out, "")
    return sequence


@pytest.mark.parametrize(("masks", "count"), [(1, 80), (3, 20)])
def test_masked_words(fill_mask, masks, count):
    model, pipeline = fill_mask
    given = masked_texts(masks, count)
    answers = model.fill(given, top_k=3), pipeline(given, top_k=3)
    for ours, theirs in zip(*answers, strict=True):
        if masks == 1:
            ours, theirs = [ours], [theirs]
        for our, their in zip(ours, theirs, strict=True):
            assert_same_words(our, their)


# === Classes ===


def texts(count):
    rng = np.random.default_rng(3)
    return [
        "".join(rng.choice(list(CHARACTERS), rng.integers(1, 12))) for _ in range(count)
    ]


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
    randomised(model).export_to_transformers(tmp_path)
    theirs = transformers.pipeline("text-classification", str(tmp_path))
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


@pytest.fixture(scope="module")
def zero_shot(tmp_path_factory):
    """Our pipeline, and theirs of the exported classifier."""
    path = tmp_path_factory.mktemp("model")
    # As transformers expects them: entailment first, contradiction last.
    labels = ["entailment", "neutral", "contradiction"]
    classifier = AlbertTextClassifier.from_backbone(
        random_backbone(), VOCABULARY, labels=labels, num_classes=3, pairs=True
    )
    kernel = randomise(classifier).output_dense.kernel
    kernel.assign(kernel * 20)
    classifier.export_to_transformers(path)
    pipeline = transformers.ZeroShotClassificationPipeline(
        model=transformers.AutoModelForSequenceClassification.from_pretrained(path),
        tokenizer=transformers.AutoTokenizer.from_pretrained(path),
    )
    return albert_tf.pipeline("zero-shot-classification", classifier), pipeline


@pytest.mark.parametrize("multi_label", [False, True])
def test_zero_shot_classes(zero_shot, multi_label):
    given = texts(20)
    options = {
        "candidate_labels": ["天地", "吃鸡蛋", "中文", "左右"],
        "hypothesis_template": "这句话是关于{}的。",
        "multi_label": multi_label,
    }
    spreads = []
    answers = (pipeline(given, **options) for pipeline in zero_shot)
    for row, expected in zip(*answers, strict=True):
        assert row.keys() == expected.keys() and row["sequence"] == expected["sequence"]
        scores = [
            dict(zip(x["labels"], x["scores"], strict=True)) for x in (row, expected)
        ]
        assert scores[0] == pytest.approx(scores[1], abs=1e-5)
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
