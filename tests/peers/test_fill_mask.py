"""`fill` against the fill-mask pipeline of transformers, on the same weights."""

import os

# Before transformers is imported: nothing here may look for a model elsewhere.
os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
import pytest
from peer_models import random_backbone, randomise
from small_classifier import CHARACTERS, SPECIAL, VOCABULARY

from albert_tf.models import AlbertMaskedLM

pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

pytestmark = pytest.mark.peers


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """Our model, and their pipeline of what it was saved as."""
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


def texts(masks, count):
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


def assert_same(ours, theirs):
    assert [x["token"] for x in ours] == [x["token"] for x in theirs]
    np.testing.assert_allclose(
        [x["score"] for x in ours], [x["score"] for x in theirs], atol=1e-6
    )
    for our, their in zip(ours, theirs, strict=True):
        assert our["token_str"] == their["token_str"]
        assert bare(our["sequence"]) == bare(their["sequence"])


def bare(sequence):
    """Theirs is put together of tokens, with spaces, and special ones left out."""
    for left_out in (*SPECIAL, "鑫", "##", " "):
        sequence = sequence.replace(left_out, "")
    return sequence


@pytest.mark.parametrize(("masks", "count"), [(1, 160), (3, 40)])
def test_answers_are_those_of_the_pipeline(both, masks, count):
    model, pipeline = both
    given = texts(masks, count)
    for ours, theirs in zip(
        model.fill(given, top_k=3), pipeline(given, top_k=3), strict=True
    ):
        for our, their in zip(
            *([x] if masks == 1 else x for x in (ours, theirs)), strict=True
        ):
            assert_same(our, their)


def test_targets_are_those_of_the_pipeline(both):
    model, pipeline = both
    targets = ["好", "差", "##a"]
    for text in texts(1, 10):
        ours = model.fill(text, targets=targets)
        assert_same(ours, pipeline(text, targets=targets))
