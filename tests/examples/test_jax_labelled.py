"""The supervised stage on JAX learns, and its head of reviews works in TensorFlow."""

import gzip
import itertools
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from albert_tf.models import AlbertPretrainer, AlbertTextClassifier

ROOT = pathlib.Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "albert_micro_zh"
THINGS = ["房间", "早餐", "手机", "电池", "屏幕", "快递"]
THINGS += ["客服", "位置", "味道", "剧情", "演员", "价格"]
GOOD, BAD = ["很好", "很棒", "不错", "满意"], ["很差", "太烂", "糟糕", "失望"]


def reviews_of(things):
    """Return labels and reviews of two things, named in the given order."""
    return [
        (label, f"{first}{word}，{second}也{word}")
        for first, second in itertools.combinations(things, 2)
        for label, words in enumerate((BAD, GOOD))
        for word in words
    ]


def write_labelled(folder):
    """Write labelled texts in the four formats."""
    folder.mkdir()
    reviews = [(label, "shop", text) for label, text in reviews_of(THINGS)]
    topics = [(x, "news", f"{x}的新闻{i}") for x in THINGS[:3] for i in range(40)]
    pairs = [
        (int(a == b), "paraphrase", "shop", f"{a}怎么样", f"{b}如何")
        for a in THINGS[:9]
        for b in (a, THINGS[9])
    ]
    for name, head, rows in (
        ("sentiment", "label domain text", reviews),
        ("topics", "label source text", topics),
        ("pairs", "label kind source text_a text_b", pairs),
    ):
        lines = ["\t".join(map(str, row)) for row in [head.split(), *rows]]
        with gzip.open(folder / f"{name}.tsv.gz", "wt", encoding="utf-8") as file:
            file.write("\n".join(lines))
    with gzip.open(folder / "entities.jsonl.gz", "wt", encoding="utf-8") as file:
        for thing in THINGS:
            spans = [[2, 2 + len(thing), "THING"]]
            row = {"text": f"看看{thing}", "spans": spans, "source": "shop_ner"}
            file.write(json.dumps(row) + "\n")


@pytest.mark.nightly
def test_the_head_of_the_reviews(tmp_path, monkeypatch):
    pytest.importorskip("jax", reason="JAX is not installed (extra [jax])")
    monkeypatch.syspath_prepend(str(FOLDER))
    import jax_labelled

    write_labelled(tmp_path / "labelled")
    monkeypatch.chdir(tmp_path)
    jax_labelled.main(["arrays", "labelled", "arrays", str(FOLDER)])
    settings = json.loads((tmp_path / "arrays" / "arrays.json").read_text("utf-8"))
    assert settings["heads"] == ["sentiment", "news", "shop", "shop_ner"]
    pretrainer = AlbertPretrainer.from_checkpoint(FOLDER)
    np.savez("start.npz", **{x.path: x.numpy() for x in pretrainer.weights})
    done = subprocess.run(
        [sys.executable, FOLDER / "jax_pretrain.py", "arrays", "stage"]
        + ["--start", "start.npz", "--steps", "60", "--steps-per-call", "10"]
        + ["--batch-tokens", "512", "--precision", "float32"]
        + ["--ema-momentum", "0.5"],
        env={**os.environ, "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"}
        | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    with np.load("stage/history.npz") as history:
        for name in ("text_loss", "tags_loss"):
            assert history[name][-10:].mean() < 0.5 * history[name][:10].mean()

    jax_labelled.main(["checkpoint", "stage", "checkpoint", "arrays"])
    classifier = AlbertTextClassifier.from_checkpoint("checkpoint")
    assert list(classifier.labels) == ["差评", "好评"]
    labels, texts = zip(*reviews_of(THINGS[::-1]), strict=True)
    found = classifier.predict(list(texts), verbose=0).argmax(-1)
    assert np.mean(found == labels) > 0.9
