"""Words of Chinese text, and the sizes of the Chinese releases."""

import json

import jieba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import albert_tf
import zh

TEXTS = [
    "我想吃鸡蛋",
    "",
    " 他来到了网易杭研大厦\n",
    "iPhone 15，真香😀！！",
    "１２３ＡＢＣ、全角　空格",
]


def test_words_are_those_of_jieba():
    assert zh.segment(TEXTS) == [jieba.lcut(text) for text in TEXTS]
    assert zh.segment(["我想吃鸡蛋"]) == [["我", "想", "吃", "鸡蛋"]]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(max_size=30), max_size=3))
def test_words_joined_give_the_text(texts):
    assert ["".join(words) for words in zh.segment(texts)] == texts


@pytest.mark.parametrize("texts", [tuple(TEXTS), np.array(TEXTS), iter(TEXTS)])
def test_any_iterable_of_strings_is_segmented(texts):
    assert zh.segment(texts) == zh.segment(TEXTS)


def test_no_texts_have_no_words():
    assert zh.segment([]) == []
    assert zh.segment([""]) == [[]]


def test_other_segmenter_may_be_given_even_as_a_generator():
    assert zh.segment(["好吃吗", ""], segmenter=list) == [["好", "吃", "吗"], []]
    assert zh.segment(["好吃吗"], segmenter=jieba.cut) == [jieba.lcut("好吃吗")]


@pytest.mark.parametrize(
    "segmenter",
    [str.split, lambda text: [text[:2]], lambda text: [text.upper()], reversed],
    ids=["drops spaces", "drops the end", "changes letters", "changes the order"],
)
def test_segmenter_that_changes_the_text_is_refused(segmenter):
    with pytest.raises(ValueError, match="segmenter changed the text: 'ab 好 '"):
        zh.segment(["ab 好 "], segmenter=segmenter)


def test_one_string_is_refused():
    with pytest.raises(TypeError, match="list of strings, not one string"):
        zh.segment("我想吃鸡蛋")


CONFIGS = {
    "albert_tiny_zh": [
        "configs/albert_config_tiny.json",
        "albert_tiny_zh_a/albert_config_tiny.json",
        "albert_tiny_zh_b/albert_config_tiny.json",
    ],
    "albert_base_zh": ["configs/albert_config_base.json"],
    "albert_large_zh": [
        "configs/albert_config_large.json",
        "albert_large_zh/albert_config_large.json",
    ],
    "albert_xlarge_zh": ["configs/albert_config_xlarge.json"],
    "albert_xxlarge_zh": ["configs/albert_config_xxlarge.json"],
    # The config in the archive albert_tiny_zh_google itself says one layer.
    "albert_tiny_zh_google": ["configs/albert_config_tiny_google.json"],
    "albert_small_zh_google": [
        "configs/albert_config_small_google.json",
        "albert_small_zh_google/albert_config.json",
    ],
    "albert_base_zh_google": ["albert_base_zh_google/albert_config.json"],
}
ACTIVATIONS = {"gelu": "gelu_approximate", "relu": "relu"}


def test_every_size_has_a_config_to_compare_with():
    assert set(zh.SIZES) == set(CONFIGS)


@pytest.mark.parametrize("name", CONFIGS)
def test_size_is_that_of_the_released_config(name, assets):
    size = zh.SIZES[name]
    google = name.endswith("_google")
    for path in CONFIGS[name]:
        config = json.loads((assets / "released" / path).read_text())
        assert {
            "num_layers": config["num_hidden_layers"],
            "hidden_dim": config["hidden_size"],
            "num_heads": config["num_attention_heads"],
            "intermediate_dim": config["intermediate_size"],
            "embedding_dim": config["embedding_size"],
            "vocabulary_size": config["vocab_size"],
        }.items() <= size.items()
        activation = size.get("activation", "gelu_approximate")
        assert activation == ACTIVATIONS[config["hidden_act"]]
        assert size.get("norm_first", False) == (config.get("ln_type") == "preln")
        projection = size.get("embedding_projection", "before_layer_norm")
        assert (projection == "after_layer_norm") == google
        assert config["max_position_embeddings"] == 512
        assert config["type_vocab_size"] == 2


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("albert_tiny_zh", "albert_tiny_zh_a/albert_model.ckpt.index.json"),
        ("albert_tiny_zh_google", "albert_tiny_zh_google/albert_model.ckpt.index.json"),
        (
            "albert_small_zh_google",
            "albert_small_zh_google/albert_model.ckpt.index.json",
        ),
        ("albert_base_zh_google", "albert_base_zh_google/model.ckpt-best.index.json"),
    ],
)
def test_size_has_as_many_weights_as_the_released_file(name, index, assets):
    tensors = json.loads((assets / "released" / index).read_text())["tensors"]
    released = sum(
        np.prod(tensor["shape"], dtype=int)
        for tensor_name, tensor in tensors.items()
        if tensor_name.startswith("bert/") and "adam" not in tensor_name
    )
    backbone = albert_tf.models.AlbertBackbone(**zh.SIZES[name])
    assert backbone.count_params() == released
