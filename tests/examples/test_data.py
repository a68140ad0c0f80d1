"""The data of the examples can be learned from: no leaks, no give-aways."""

import collections
import itertools
import pathlib
import statistics

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
# As the demo says.
REVIEWS = {"train": 4453, "dev": 360, "test": 360}


@pytest.mark.parametrize(
    ("file", "test"),
    [("topics/headlines", 48), ("spam/messages", 24), ("aspects/reviews", 120)]
    + [("questions/pairs", 240), ("scenes/pairs", 120)],
)
def test_the_last_fifth_of_a_file_is_new(file, test):
    _, *rows = (DATA / f"{file}.tsv").read_text("utf-8").strip().split("\n")
    assert len(rows) == test * 5
    first = [row.split("\t")[1].strip("。！") for row in rows]
    if file == "aspects/reviews":
        first = [text.split("，") for text in first]
        known, new = (
            {*itertools.chain(*part)} for part in (first[:-test], first[-test:])
        )
    else:
        known, new = set(first[:-test]), set(first[-test:])
    assert not known & new


def test_what_is_tested_on_is_not_trained_on():
    texts = read_labelled_texts(DATA / "intents" / "questions.tsv").x
    assert len(set(texts)) == len(texts) == 16 * 9
    names = ("train", "test")
    train, test = (read_spelling(DATA / "spelling" / f"{x}.tsv") for x in names)
    assert (len(train[0]), len(test[0])) == (480, 120)
    assert not set(train[1]) & set(test[1])
    names = ("train", "dev")
    train, dev = (read_squad(DATA / "questions" / f"{x}.json") for x in names)
    assert not set(train.contexts) & set(dev.contexts)
    assert [(x.moved, x.absent) for x in (train, dev)] == [(0, 0)] * 2
    train, dev = (read_tagged_texts(DATA / "entities" / f"{x}.jsonl") for x in names)
    assert len(set(train.x + dev.x)) == len(train.x + dev.x) == 201
    assert train.labels == dev.labels == ["LOC", "ORG", "PER"]
    # Neither place nor number gives a choice away.
    dev = read_choices(DATA / "choices" / "dev.json")
    assert all(dev.labels.count(label) < len(dev) / 2 for label in range(3))
    assert {len(choices) for choices in dev.choices} == {2, 3, 4}


@pytest.fixture(scope="module")
def reviews():
    """The columns of each split, by name."""
    splits = {}
    for split in REVIEWS:
        text = (EXAMPLES / "reviews" / f"{split}.tsv").read_text("utf-8")
        header, *rows = (line.split("\t") for line in text.rstrip().split("\n"))
        splits[split] = dict(zip(header, zip(*rows, strict=True), strict=True))
    return splits


@pytest.mark.parametrize("split", REVIEWS)
def test_reviews_have_three_domains_with_both_labels(split, reviews):
    parts = reviews[split]
    data = read_labelled_texts(EXAMPLES / "reviews" / f"{split}.tsv")
    assert (data.x, data.labels) == (list(parts["text"]), list(parts["label"]))
    assert len(data.x) == REVIEWS[split]
    counts = collections.Counter(zip(parts["domain"], parts["label"], strict=True))
    domains = ("electronics", "food", "hotel")
    assert set(counts) == set(itertools.product(domains, ("好评", "差评")))
    for domain in domains:
        good, bad = counts[domain, "好评"], counts[domain, "差评"]
        assert 0.4 < good / (good + bad) < 0.6
        assert good + bad > 0.15 * len(data.x)


def test_reviews_follow_no_template(reviews):
    texts = [text for parts in reviews.values() for text in parts["text"]]
    assert len(set(texts)) == len(texts)
    endings = [text.rstrip("。！？!?~～…")[-4:] for text in texts]
    for shared in ([text[:4] for text in texts], endings):
        assert max(collections.Counter(shared).values()) <= 0.01 * len(texts)
    parts = zip(reviews["train"]["text"], reviews["train"]["label"], strict=True)
    lengths = collections.defaultdict(list)
    for text, label in parts:
        lengths[label].append(len(text))
    good, bad = map(statistics.median, lengths.values())
    assert 0.67 < good / bad < 1.5


def bigrams(text):
    letters = "".join(filter(str.isalnum, text.lower()))
    return {letters[i : i + 2] for i in range(len(letters) - 1)}


@pytest.mark.nightly
def test_no_review_is_much_like_one_of_another_split(reviews):
    pieces = {x: list(map(bigrams, reviews[x]["text"])) for x in REVIEWS}
    for first, second in itertools.combinations(REVIEWS, 2):
        for ours, theirs in itertools.product(pieces[first], pieces[second]):
            # Jaccard < 0.5.
            assert 3 * len(ours & theirs) < len(ours) + len(theirs)
