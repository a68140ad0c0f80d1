"""The test vectors for ports to other languages."""

import json
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PAGE = ROOT / "docs/guides/other_languages.md"


@pytest.fixture
def vectors():
    path = ROOT / "docs/guides/tokenizer_vectors.json"
    return json.loads(path.read_text("utf-8"))


def test_the_vectors_are_those_of_the_tokenizer(vectors, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "scripts")
    import tokenizer_vectors

    assert vectors == tokenizer_vectors.vectors()
    assert len({x["text"] for x in vectors}) == 300


def test_a_port_of_the_rules_on_the_page_has_the_same_ids(vectors):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    (code,) = [x for x in blocks if "IDEOGRAPHS" in x]
    vocabulary = (ROOT / "examples/albert_micro_zh/vocab.txt").read_text("utf-8")
    names = {"settings": {"vocabulary": vocabulary.removesuffix("\n").split("\n")}}
    exec(code, names)
    for vector in vectors:
        words = names["split"](vector["text"])
        ids = [i for word in words for i in names["pieces"](word, names["ids"])]
        assert ids == vector["ids"], vector["text"]
