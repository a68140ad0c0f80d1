"""The settings of a `tokenizer_config.json` against transformers' BertTokenizer."""

import itertools
import json
import os
import random

os.environ["HF_HUB_OFFLINE"] = "1"

import pytest
from small_classifier import SPECIAL, small_backbone

from albert_tf.checkpoints import open_checkpoint, save_checkpoint
from albert_tf_lite.word_piece import WordPieceTokenizer

transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.peers

LETTERS = "我想吃鸡中文，。！abcABCéÉñüじ한か\u3099ＡＢ😀[]#'-"
TOKENS = [*SPECIAL, *dict.fromkeys(LETTERS + LETTERS.lower()), "e", "n", "u"]
TOKENS += [f"##{x}" for x in TOKENS[5:]] + ["ab", "##bc", "想吃"]
ADDED = {"[E1]": True, "covid19": False, "新冠": False}


@pytest.mark.parametrize("has_added", [False, True])
@pytest.mark.parametrize(
    ("lowercase", "accents", "chinese"),
    itertools.product((True, False), (None, True, False), (True, False)),
)
def test_ids_of_bert_tokenizer(lowercase, accents, chinese, has_added, tmp_path):
    size = len(TOKENS) + len(ADDED) * has_added
    backbone = small_backbone(
        vocabulary_size=size, embedding_projection="after_layer_norm"
    )
    save_checkpoint(backbone, tmp_path, "huggingface")
    (tmp_path / "vocab.txt").write_text("\n".join(TOKENS), encoding="utf-8")
    config = {"tokenizer_class": "BertTokenizer", "do_lower_case": lowercase}
    config |= {"strip_accents": accents, "tokenize_chinese_chars": chinese}
    if has_added:
        flags = dict.fromkeys(("lstrip", "rstrip", "single_word"), False)
        config["added_tokens_decoder"] = {
            str(i): {"content": x, "special": y, "normalized": not y, **flags}
            for i, (x, y) in enumerate(ADDED.items(), len(TOKENS))
        }
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    theirs = transformers.BertTokenizer.from_pretrained(tmp_path)
    ours = open_checkpoint(tmp_path).tokenizer()
    settings = ours.get_settings()
    del settings["special_tokens_in_strings"]
    plain = WordPieceTokenizer(ours.get_vocabulary(), **settings)
    rng = random.Random(0)
    pool = [*LETTERS, " ", "\t", "\u200b", *ADDED, "Covid19", "[e1]"]
    texts = ["".join(rng.choices(pool, k=rng.randrange(30))) for _ in range(500)]
    texts += ["é" * n for n in (99, 100, 101, 200)]
    expected = [theirs(x, add_special_tokens=False)["input_ids"] for x in texts]
    assert ours(texts).to_list() == expected
    assert list(map(plain.tokenize, texts)) == expected
