"""The bundled checkpoint is complete, small and trained."""

import pathlib

import numpy as np
import pytest

from albert_tf import inspect_checkpoint
from albert_tf.data.tables import read_labelled_texts
from albert_tf.models import AlbertPretrainer
from albert_tf.preprocessing import AlbertTextClassifierPreprocessor
from albert_tf.tokenizers import load_tokenizer
from zh.sizes import SIZES

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
CHECKPOINT = EXAMPLES / "albert_micro_zh"


@pytest.fixture(scope="module")
def tokenizer():
    return load_tokenizer(CHECKPOINT / "vocab.txt")


@pytest.fixture(scope="module")
def fill(tokenizer):
    """Mask a token of each text; return the most likely ids and the true ones."""
    pretrainer = AlbertPretrainer.from_checkpoint(CHECKPOINT)
    preprocessor = AlbertTextClassifierPreprocessor(tokenizer, sequence_length=128)

    def most_likely(texts, positions):
        inputs = {name: np.array(x) for name, x in preprocessor(texts).items()}
        token_ids = inputs["token_ids"]
        mask_positions = np.array(positions)[:, None] + 1
        there = np.take_along_axis(token_ids, mask_positions, axis=1)
        np.put_along_axis(token_ids, mask_positions, tokenizer.mask_token_id, axis=1)
        inputs["mask_positions"] = mask_positions
        logits = pretrainer.predict(inputs, verbose=0)["mlm_logits"]
        return logits[:, 0].argmax(-1), there[:, 0]

    return most_likely


def test_it_is_complete_and_small(tokenizer):
    found = inspect_checkpoint(CHECKPOINT)
    assert found.layout == "albert_zh" and found.heads == ["masked_lm_head", "sop_head"]
    assert found.missing == found.unused == []
    size = SIZES["albert_micro_zh"]
    config = AlbertPretrainer.from_checkpoint(CHECKPOINT).backbone.get_config()
    assert size.items() <= config.items()
    assert tokenizer.vocabulary_size() == size["vocabulary_size"]
    assert sum(file.stat().st_size for file in CHECKPOINT.iterdir()) <= 8e6


def test_it_predicts_more_than_the_most_frequent_token(fill, tokenizer):
    likely, there = fill(["房间很干净，服务员也很热情。"], [4])
    assert likely == there
    texts = read_labelled_texts(EXAMPLES / "reviews" / "dev.tsv").x[:120]
    random = np.random.default_rng(0)
    positions = [random.integers(len(tokenizer(text))) for text in texts]
    likely, there = fill(texts, positions)
    guessed = np.bincount(there).max() / len(there)
    assert np.mean(likely == there) > 3 * guessed
    ids = tokenizer(texts).flat_values.numpy()
    assert (ids == tokenizer.get_vocabulary().index("[UNK]")).mean() < 0.01
