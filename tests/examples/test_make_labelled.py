"""The labelled sets of the bundled model."""

import gzip
import importlib
import itertools
import json
import pathlib
import zipfile

import pytest

from albert_tf.pretraining import LabelledRecords

ROOT = pathlib.Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "albert_micro_zh"
THINGS = ["房间", "早餐", "手机", "电池", "屏幕", "快递"]
THINGS += ["客服", "位置", "味道", "剧情", "演员", "价格"]
# By the first letters of a source; others are paraphrases.
NLI = ("nli", ("neutral", "entailment", "contradiction"))
KINDS = {"snli": NLI, "ocnl": NLI, "kuak": ("similarity", "02")}
GOOD, BAD = ["很好", "很棒", "不错", "满意"], ["很差", "太烂", "糟糕", "失望"]


def reviews_of(things):
    """Return labels and reviews of two things, named in the given order."""
    return [
        (label, f"{first}{word}，{second}也{word}")
        for first, second in itertools.combinations(things, 2)
        for label, words in enumerate((BAD, GOOD))
        for word in words
    ]


def table(path, *rows):
    path.parent.mkdir(exist_ok=True)
    lines = ["\t".join(map(str, row)) for row in rows]
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write("\n".join(lines))


def write_data(folder):
    """Write a few rows in the form of each data set."""
    labelled = folder / "labelled"
    folder.mkdir()
    reviews = [(label, "shop", text) for label, text in reviews_of(THINGS)]
    topics = [
        (label, "tnews_train", f"{x}的新闻{i}")
        for x, label in zip(THINGS[:3], ("tech", "food", "car"), strict=True)
        for i in range(40)
    ]
    pairs = [
        (label, kind, source, f"{a}怎么样", f"{b}如何")
        for source in make_labelled().SIMILARITIES
        for kind, labels in [KINDS.get(source[:4], ("paraphrase", "01"))]
        for a in THINGS[:9]
        for label, b in zip(labels, (THINGS[9], a, a), strict=False)
    ]
    table(labelled / "sentiment.tsv.gz", ("label", "domain", "text"), *reviews)
    table(labelled / "topics.tsv.gz", ("label", "source", "text"), *topics)
    head = ("label", "kind", "source", "text_a", "text_b")
    table(labelled / "pairs.tsv.gz", head, *pairs)
    spans = [[2, 4, "THING"]]
    row = {"text": "看看房间", "spans": spans, "source": "shop_ner"}
    table(labelled / "entities.jsonl.gz", *([json.dumps(row)] for _ in range(6)))
    for name in (*make_labelled().STORIES, "news_cctv"):
        lines = [[f"第{i}件事与评价无关。"] + [""] * (i % 2) for i in range(80)]
        table(folder / "corpus_modern" / f"{name}.txt.gz", *lines)
    tags = "小 B-PER\n红 I-PER\n去 O\n上 B-LOC\n海 I-LOC\n\n"
    with zipfile.ZipFile(folder / "peopledaily.zip", "w") as archive:
        archive.writestr("train.txt", tags * 20)
    context = "黄河长5464公里，长江更长。"
    question = {"question": "黄河多长？", "id": "1"}
    question["answers"] = [{"text": "5464公里", "answer_start": 3}]
    paragraph = {"context": context, "qas": [question]}
    article = {"paragraphs": [paragraph] * 12}
    (folder / "cmrc2018").mkdir()
    path = folder / "cmrc2018" / "cmrc2018_dev.json"
    path.write_text(json.dumps({"data": [article]}), "utf-8")


def make_labelled():
    return importlib.import_module("make_labelled")


def test_all_sets_are_written(tmp_path, monkeypatch):
    pytest.importorskip("opencc", reason="opencc is not installed")
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.setattr(make_labelled(), "LONG_REVIEWS", 20)
    monkeypatch.setattr(make_labelled(), "DEV_QUESTIONS", 2)
    write_data(tmp_path / "data")
    output = str(tmp_path / "labelled")
    names = ["--vocab", str(FOLDER / "vocab.txt"), "--sequence-length", "128"]
    make_labelled().main([str(tmp_path / "data"), output, *names])
    records = LabelledRecords(output)
    labels = {name: head["labels"] for name, head in records.heads.items()}
    assert labels.pop("topics") == ["时政", "汽车", "科技", "美食"]
    assert labels == {
        "sentiment": ["好评", "差评"],
        "paraphrase": ["不同", "相同"],
        "inference": ["中立", "矛盾", "蕴含"],
        "kuake_qqr_train": ["0", "2"],
        "similarity": [],
        "entities": ["PER", "LOC", "ORG"],
        "shop_ner_own": ["THING"],
        "answers": [],
    }
    # No headline of this source has the class 时政, but some could.
    assert records.sets[2]["labels"] == ["时政", "汽车", "科技", "美食"]
    assert records.pairs is not None
    counts = {x["set"]: x["sequences"] for x in records.sets}
    assert counts["cmrc2018"] == 10 and counts["long_reviews"] == 20
