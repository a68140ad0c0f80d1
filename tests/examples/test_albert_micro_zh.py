"""The bundled checkpoint is complete, small and trained."""

import pathlib

import keras
import numpy as np
import pytest
from lite_tasks import needs_onnx

from albert_tf import inspect_checkpoint
from albert_tf.data.sets.labelled_texts import read_labelled_texts
from albert_tf.models import AlbertMaskedLM, AlbertTextClassifier
from albert_tf_cli.shared.exported_files import open_network
from zh.sizes import SIZES

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
CHECKPOINT = EXAMPLES / "albert_micro_zh"


def test_it_is_complete_and_small():
    found = inspect_checkpoint("albert_micro_zh")
    assert found.layout == "albert_zh"
    assert found.heads == ["masked_lm_head", "sop_head"]
    assert found.missing == found.unused == []
    assert sum(file.stat().st_size for file in CHECKPOINT.iterdir()) <= 11.6e6
    (weights,) = CHECKPOINT.glob("*.data-*")
    assert weights.stat().st_size <= 11e6


@needs_onnx
def test_reviews_are_classified_without_training():
    model = AlbertTextClassifier.from_checkpoint("albert_micro_zh:sentiment")
    assert (model.pooling_mode, model.default_learning_rate) == ("mean", 2e-4)
    reviews = {
        "房间很脏，再也不来": "差评",
        "物超所值，老婆很喜欢": "好评",
        "很好吃，推荐": "好评",
        "不好吃": "差评",
        "客服不理人，用了两天就坏了。": "差评",
        "老师讲课思路清晰，收获很大": "好评",
        "房間很髒，再也不來": "差评",
    }
    predicted = model.predict(list(reviews), verbose=0).argmax(-1)
    assert [model.labels[i] for i in predicted] == list(reviews.values())
    # The graph beside the checkpoint, by which the command line answers.
    network = open_network("albert_micro_zh:sentiment")
    np.testing.assert_allclose(
        network.predict([*reviews])["probabilities"],
        keras.ops.softmax(model.predict([*reviews], verbose=0)),
        atol=1e-5,
    )
    # The head is found by its labels, in the order of the caller.
    turned = AlbertTextClassifier.from_checkpoint(
        "albert_micro_zh", labels=model.labels[::-1]
    )
    assert (turned.predict(list(reviews), verbose=0).argmax(-1) == 1 - predicted).all()
    # Other labels have nothing to do with the trained head.
    other = AlbertTextClassifier.from_checkpoint(
        "albert_micro_zh", labels=["物流", "商品"]
    )
    kernels = (x.output_dense.kernel.numpy() for x in (model, other))
    assert abs(np.subtract(*kernels)).max() > 0.01


@needs_onnx
def test_each_head_answers_by_its_graph():
    network = open_network("albert_micro_zh:entities")
    text = "王小明昨天从上海飞到了成都。"
    assert [x["word"] for x in network.answers([text])[0]] == ["王小明", "上海", "成都"]
    pairs = ["一只猫在睡觉", "一只猫在睡觉"], ["一只小猫睡着了", "股市大涨"]
    for head, texts, expected in (
        ("topics", ["国足2比1战胜韩国队"], ["体育"]),
        (
            "paraphrase",
            (["怎么改密码", "怎么改密码"], ["密码在哪里改", "今天几号"]),
            ["相同", "不同"],
        ),
        ("inference", (["男人骑着白马"], ["男人骑着马"]), ["蕴含"]),
    ):
        answers = open_network(f"albert_micro_zh:{head}").answers(texts)
        assert [x["label"] for x in answers] == expected
    near, far = open_network("albert_micro_zh:similarity").answers(pairs)
    assert near["score"] > 2 > far["score"]


@pytest.mark.nightly
def test_it_predicts_more_than_the_most_frequent_character():
    model = AlbertMaskedLM.from_checkpoint(CHECKPOINT)
    size, tokenizer = SIZES["albert_micro_zh"], model.preprocessor.tokenizer
    assert size.items() <= model.backbone.get_config().items()
    assert tokenizer.vocabulary_size() == size["vocabulary_size"]
    assert model.fill("房间很[MASK]净", top_k=1)[0]["token_str"] == "干"
    texts = read_labelled_texts(EXAMPLES / "reviews" / "dev.tsv").x
    ids = tokenizer(texts).flat_values.numpy()
    assert (ids == tokenizer.get_vocabulary().index("[UNK]")).mean() < 0.01
    random = np.random.default_rng(0)
    # Not punctuation, where the comma is a good guess.
    places = [
        random.choice([i for i, x in enumerate(text[:100]) if x.isalpha()])
        for text in texts
    ]
    there = [text[i] for text, i in zip(texts, places, strict=True)]
    masked = [f"{x[:i]}[MASK]{x[i + 1 :]}" for x, i in zip(texts, places, strict=True)]
    found = [row[0]["token_str"] for row in model.fill(masked, top_k=1)]
    guessed = max(map(there.count, there)) / len(there)
    assert np.mean(np.array(found) == there) > 3 * guessed
