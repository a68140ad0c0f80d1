"""The checkpoint that the repository ships: complete, small, and taught something."""

import pathlib

import numpy as np
import pytest

from albert_tf import inspect_checkpoint
from albert_tf.models import AlbertPretrainer
from albert_tf.preprocessing import load_tokenizer
from albert_tf.preprocessing.labelled_texts import read_labelled_texts
from zh.sizes import SIZES

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
CHECKPOINT = EXAMPLES / "albert_micro_zh"


@pytest.fixture(scope="module")
def tokenizer():
    return load_tokenizer(CHECKPOINT / "vocab.txt")


@pytest.fixture(scope="module")
def fill(tokenizer):
    """The most likely tokens at positions of tokenized texts, ints like these."""
    pretrainer = AlbertPretrainer.from_checkpoint(CHECKPOINT)

    def most_likely(texts, positions):
        length = max(map(len, texts)) + 2
        token_ids = np.full((len(texts), length), tokenizer.pad_token_id)
        for row, ids in zip(token_ids, texts, strict=True):
            row[: len(ids) + 2] = [tokenizer.cls_token_id, *ids, tokenizer.sep_token_id]
        mask_positions = np.array(positions)[:, None] + 1
        padding_mask = token_ids != tokenizer.pad_token_id
        np.put_along_axis(token_ids, mask_positions, tokenizer.mask_token_id, axis=1)
        inputs = {
            "token_ids": token_ids,
            "segment_ids": np.zeros_like(token_ids),
            "padding_mask": padding_mask.astype(int),
            "mask_positions": mask_positions,
        }
        logits = pretrainer.predict(inputs, verbose=0)["mlm_logits"]
        return logits[:, 0].argmax(-1)

    return most_likely


def test_it_is_what_the_size_says_and_complete(tokenizer):
    found = inspect_checkpoint(CHECKPOINT)
    assert found.layout == "albert_zh" and found.heads == ["mlm_head", "sop_head"]
    assert found.missing == found.unused == []
    backbone = AlbertPretrainer.from_checkpoint(CHECKPOINT).backbone
    config = backbone.get_config()
    size = SIZES["albert_micro_zh"]
    assert {name: config[name] for name in size} == size
    assert tokenizer.vocabulary_size() == size["vocabulary_size"]


def test_it_is_small():
    assert sum(file.stat().st_size for file in CHECKPOINT.iterdir()) <= 6e6


@pytest.mark.parametrize(
    "text", ["行者举起金箍[棒]，望妖精劈头就打。", "八[戒]道，师父，我饿了。"]
)
def test_it_completes_words_of_its_corpus(fill, tokenizer, text):
    position = text.index("[")
    expected = tokenizer.token_to_id(text[position + 1])
    plain = text.replace("[", "").replace("]", "")
    assert fill([np.asarray(tokenizer(plain))], [position]) == [expected]


def test_of_other_texts_it_knows_more_than_the_most_frequent_token(fill, tokenizer):
    texts = read_labelled_texts(EXAMPLES / "reviews" / "dev.tsv").x
    texts = [np.asarray(tokenizer(text)) for text in texts]
    random = np.random.default_rng(0)
    positions = [random.integers(len(ids)) for ids in texts for _ in range(4)]
    texts = [ids for ids in texts for _ in range(4)]
    labels = [ids[i] for ids, i in zip(texts, positions, strict=True)]
    guessed = np.bincount(labels).max() / len(labels)
    assert np.mean(fill(texts, positions) == labels) > 1.5 * guessed
