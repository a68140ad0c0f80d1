"""A smaller vocabulary: the same outputs for texts of the tokens that stay."""

import numpy as np
import pytest
from checkpoint_files import GOLDEN
from command_line import as_options, run
from small_classifier import VOCABULARY, predict, randomised, small_backbone

import albert_tf
from albert_tf.checkpoints import prune_vocabulary, save_checkpoint
from albert_tf.models import AlbertMaskedLM, AlbertTextClassifier, AlbertTokenClassifier
from albert_tf.tokenizers import WordPieceTokenizer

CORPUS = ["很好吃，我想你来吧", "太差了！", "abc 去"]
KEPT = ["很好！", "我想去", "你太差了，zzz 1"]


def test_a_classifier_predicts_the_same_for_kept_tokens(tmp_path):
    backbone = small_backbone(num_heads=4)
    whole = randomised(
        AlbertTextClassifier.from_backbone(
            backbone, VOCABULARY, 3, labels=list("坏中好")
        )
    )
    small, _ = prune_vocabulary(whole, CORPUS)
    tokens = small.preprocessor.tokenizer.get_vocabulary()
    assert small.backbone.vocabulary_size == len(tokens) < len(VOCABULARY)
    assert set(whole.preprocessor.tokenizer.special_tokens) <= set(tokens)
    # Unknown tokens stay unknown, and removed tokens become unknown.
    np.testing.assert_array_equal(predict(small, KEPT), predict(whole, KEPT))
    assert "鸡" not in tokens
    assert (predict(small, ["鸡"]) == predict(whole, ["😀"])).all()
    small.save_to_preset(str(tmp_path / "preset"))
    again = AlbertTextClassifier.from_preset(str(tmp_path / "preset"))
    np.testing.assert_array_equal(predict(again, KEPT), predict(whole, KEPT))
    assert again.labels == whole.labels


def test_int8_weights_stay_the_same_rows():
    whole = randomised(
        AlbertTokenClassifier.from_backbone(
            small_backbone(num_layers=1, pooler=False), VOCABULARY, labels=["PER"]
        )
    )
    whole.quantize("int8")
    small, _ = prune_vocabulary(whole, CORPUS)
    x = [whole.preprocessor(KEPT), small.preprocessor(KEPT)]
    np.testing.assert_array_equal(small(x[1]), whole(x[0]))


def test_a_masked_language_model_keeps_its_head(tmp_path):
    backbone = small_backbone(num_layers=1)
    vocabulary = [*VOCABULARY[:-3], "##好", "##吃", "##鸡"]
    whole = AlbertMaskedLM.from_backbone(
        backbone, vocabulary, marked_labels=True, segmenter=list
    )
    randomised(whole)
    small, _ = prune_vocabulary(whole, CORPUS)
    tokens = small.preprocessor.tokenizer.get_vocabulary()
    # A character keeps its label within words.
    assert {"##好", "##吃"} <= set(tokens) and "##鸡" not in tokens
    assert small.preprocessor.segmenter is list
    rows = [vocabulary.index(token) for token in tokens]
    texts = ["很[MASK]吃", "我[MASK][MASK]来"]
    expected = [x[:, rows] for x in predict(whole, texts)]
    save_checkpoint(small, tmp_path / "zh", layout="albert_zh")
    loaded = AlbertMaskedLM.from_checkpoint(tmp_path / "zh", marked_labels=True)
    for model in (small, loaded):
        for given, row in zip(predict(model, texts), expected, strict=True):
            np.testing.assert_allclose(given, row, atol=1e-5)


def test_kept_tokens():
    tokenizer = WordPieceTokenizer(VOCABULARY)
    texts = ["好好坏", "好a"]
    lora = small_backbone()
    lora.enable_lora(2)
    smaller, kept = prune_vocabulary(lora, texts, tokenizer, min_count=2)
    assert len(smaller.trainable_weights) == len(lora.trainable_weights)
    kept = kept.get_vocabulary()
    assert kept[:5] == VOCABULARY[:5]
    assert "好" in kept and "坏" not in kept
    assert {"z", "##z"} <= set(kept)
    with pytest.raises(ValueError, match="Pass it with `tokenizer="):
        prune_vocabulary(small_backbone(), texts)


def test_the_command_line_prunes_a_checkpoint(tmp_path):
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_text("\n".join(VOCABULARY), encoding="utf-8")
    (tmp_path / "texts.txt").write_text("\n".join(CORPUS), encoding="utf-8")
    command = ("prune", GOLDEN / "albert_zh_postln", tmp_path / "zh")
    given = as_options(corpus=tmp_path / "texts.txt", vocab=vocabulary, to="albert_zh")
    out = run(*command, *given).output
    size = albert_tf.load_checkpoint(tmp_path / "zh").vocabulary_size
    assert f"{size} of 120" in out and size < 120
    assert len((tmp_path / "zh" / "vocab.txt").read_text("utf-8").split()) == size
