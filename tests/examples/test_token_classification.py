"""The example of entities learns more than the names it was shown."""

import importlib.util
import pathlib

import pytest

from albert_tf.data import read_tagged_texts
from albert_tf.evaluation import entity_scores

pytest.importorskip("seqeval", reason="seqeval is not installed")

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
ENTITIES = EXAMPLES / "data" / "entities"


@pytest.fixture(scope="module")
def data():
    return {x: read_tagged_texts(ENTITIES / f"{x}.jsonl") for x in ("train", "dev")}


def test_the_data_are_sentences_of_their_own(data):
    texts = data["train"].x + data["dev"].x
    assert len(texts) == len(set(texts)) == 201
    for part in data.values():
        assert part.labels == ["LOC", "ORG", "PER"]
        for text, spans in zip(part.x, part.spans, strict=True):
            for start, end, _ in spans:
                assert text[start:end].strip(" ，。") == text[start:end]


def looked_up(train, texts):
    """The names of the training sentences, found in others; the longest first."""
    names = {
        text[start:end]: label
        for text, spans in zip(train.x, train.spans, strict=True)
        for start, end, label in spans
    }
    found = []
    for text in texts:
        row, start = [], 0
        while start < len(text):
            ends = range(len(text), start, -1)
            end = next((x for x in ends if text[start:x] in names), None)
            if end:
                row.append((start, end, names[text[start:end]]))
            start = end or start + 1
        found.append(row)
    return found


@pytest.mark.slow
def test_it_learns(data, capsys):
    path = EXAMPLES / "token_classification.py"
    spec = importlib.util.spec_from_file_location("token_classification", path)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    scores = example.main(ENTITIES)
    dev = data["dev"]
    baseline = entity_scores(dev.spans, looked_up(data["train"], dev.x))
    print(baseline)
    assert scores["f1"] > baseline["f1"] + 0.1
    assert f"{scores['f1']:.3f}" in capsys.readouterr().out
