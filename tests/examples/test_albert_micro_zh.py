"""The bundled checkpoint is complete, small and trained."""

import pathlib

import numpy as np

from albert_tf import inspect_checkpoint
from albert_tf.data.tables import read_labelled_texts
from albert_tf.models import AlbertMaskedLM
from zh.sizes import SIZES

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
CHECKPOINT = EXAMPLES / "albert_micro_zh"


def test_it_is_complete_and_small():
    found = inspect_checkpoint(CHECKPOINT)
    assert found.layout == "albert_zh" and found.heads == ["masked_lm_head", "sop_head"]
    assert found.missing == found.unused == []
    assert sum(file.stat().st_size for file in CHECKPOINT.iterdir()) <= 8e6


def test_it_predicts_more_than_the_most_frequent_character():
    model = AlbertMaskedLM.from_checkpoint(CHECKPOINT)
    size, tokenizer = SIZES["albert_micro_zh"], model.preprocessor.tokenizer
    assert size.items() <= model.backbone.get_config().items()
    assert tokenizer.vocabulary_size() == size["vocabulary_size"]
    assert model.fill("房间很[MASK]净", top_k=1)[0]["token_str"] == "干"
    texts = read_labelled_texts(EXAMPLES / "reviews" / "dev.tsv").x[:120]
    ids = tokenizer(texts).flat_values.numpy()
    assert (ids == tokenizer.get_vocabulary().index("[UNK]")).mean() < 0.01
    random = np.random.default_rng(0)
    places = [random.integers(min(len(text), 100)) for text in texts]
    there = [text[i] for text, i in zip(texts, places, strict=True)]
    masked = [f"{x[:i]}[MASK]{x[i + 1 :]}" for x, i in zip(texts, places, strict=True)]
    found = [row[0]["token_str"] for row in model.fill(masked, top_k=1)]
    guessed = max(map(there.count, there)) / len(there)
    assert np.mean(np.array(found) == there) > 3 * guessed
