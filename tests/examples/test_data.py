"""The data of the examples can be learned from: no leaks, no give-aways."""

import pathlib
import re

import pytest

from albert_tf.data import (
    read_choices,
    read_labelled_texts,
    read_spelling,
    read_squad,
    read_tagged_texts,
)

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
DATA = EXAMPLES / "data"


@pytest.mark.parametrize(
    ("file", "test"),
    [("topics/headlines", 48), ("spam/messages", 24), ("aspects/reviews", 120)]
    + [("questions/pairs", 240), ("scenes/pairs", 120)],
)
def test_the_last_fifth_of_a_file_is_new(file, test):
    _, *rows = (DATA / f"{file}.tsv").read_text("utf-8").strip().split("\n")
    assert len(rows) == test * 5
    first = [row.split("\t")[1].strip("。！") for row in rows]
    # Reviews of aspects consist of clauses.
    parts = [re.split("，" if "aspects" in file else "\t", text) for text in first]
    known, new = (
        {x for part in y for x in part} for y in (parts[:-test], parts[-test:])
    )
    assert not known & new


def test_what_is_tested_on_is_not_trained_on():
    texts = read_labelled_texts(DATA / "intents" / "questions.tsv").x
    assert len(set(texts)) == len(texts) == 16 * 9
    splits = ("train", "dev", "test")
    reviews = [read_labelled_texts(EXAMPLES / f"reviews/{x}.tsv").x for x in splits]
    assert len({text for split in reviews for text in split}) == 2046 + 2 * 298
    train, test = (read_spelling(DATA / f"spelling/{x}.tsv") for x in ("train", "test"))
    assert not set(train[1]) & set(test[1])
    names = ("train", "dev")
    train, dev = (read_squad(DATA / f"questions/{x}.json") for x in names)
    assert not set(train.contexts) & set(dev.contexts)
    train, dev = (read_tagged_texts(DATA / f"entities/{x}.jsonl") for x in names)
    assert len(set(train.x + dev.x)) == len(train.x + dev.x) == 201
    assert train.labels == dev.labels == ["LOC", "ORG", "PER"]
    # A choice is not given away by its place.
    dev = read_choices(DATA / "choices" / "dev.json")
    assert all(dev.labels.count(label) < len(dev) / 2 for label in range(3))
    assert {len(choices) for choices in dev.choices} == {2, 3, 4}
