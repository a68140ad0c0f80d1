"""All heads of the supervised stage on JAX learn."""

import gzip
import importlib
import itertools
import json
import pathlib
import zipfile

import numpy as np
import pytest
from processes import run_python

from albert_tf.models import AlbertPretrainer

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
        for source in jax_labelled().SIMILARITIES
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
    table(labelled / "entities.jsonl.gz", *[[json.dumps(row)]] * 6)
    for name in (*jax_labelled().STORIES, "news_cctv"):
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


def jax_labelled():
    return importlib.import_module("jax_labelled")


@pytest.mark.nightly
def test_all_heads_learn(tmp_path, monkeypatch):
    for name in ("jax", "opencc"):
        pytest.importorskip(name, reason=f"{name} is not installed")
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.setattr(jax_labelled(), "LONG_REVIEWS", 20)
    monkeypatch.setattr(jax_labelled(), "DEV_QUESTIONS", 2)
    write_data(tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    names = ["--vocab", str(FOLDER / "vocab.txt")]
    names += ["--config", str(FOLDER / "albert_config.json")]
    jax_labelled().main(["data", "arrays", *names])
    settings = json.loads((tmp_path / "arrays" / "arrays.json").read_text("utf-8"))
    heads = ["sentiment", "topics", "paraphrase", "inference", "entities"]
    assert set(heads) < set(settings["heads"])
    # Text to pretrain on, of the same tokens.
    write_text_arrays(tmp_path / "text", settings)
    pretrainer = AlbertPretrainer.from_checkpoint(FOLDER)
    np.savez("start.npz", **{x.path: x.numpy() for x in pretrainer.weights})
    run_python(
        *(FOLDER / "jax_pretrain.py", "arrays", "stage"),
        *("--text", "text", "--start", "start.npz", "--steps", 60),
        *("--steps-per-call", 10, "--batch-tokens", 1024),
        *("--precision", "float32", "--ema-momentum", 0.5),
        **{"KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"},
    )
    with np.load("stage/history.npz") as history:
        for name in ("text", "tags", "spans", "score", "pairs"):
            losses = history[f"{name}_loss"]
            losses = losses[losses > 0]
            assert losses[-5:].mean() < 0.7 * losses[:5].mean(), name


def write_text_arrays(folder, settings):
    draw = np.random.default_rng(0)
    folder.mkdir()
    lengths = draw.integers(8, 60, 400)
    np.savez(
        folder / "arrays-000.npz",
        tokens=draw.integers(200, 400, lengths.sum()).astype("uint16"),
        lengths=lengths.astype("uint16"),
        seconds=(lengths // 3).astype("uint16"),
        labels=np.zeros(len(lengths), "uint8"),
    )
    (folder / "arrays.json").write_text(json.dumps(settings))
