"""The reviews of the demo are data one may learn from: many, varied, not leaking."""

import collections
import itertools
import pathlib
import statistics

import pytest

from albert_tf.data.tables import read_labelled_texts

REVIEWS = pathlib.Path(__file__).parents[2] / "examples" / "reviews"
SPLITS = ("train", "dev", "test")
# As the titles of the demo say.
COUNTS = {"train": 4453, "dev": 360, "test": 360}


def columns(split):
    """The columns of a file, by name."""
    header, *rows = (REVIEWS / f"{split}.tsv").read_text("utf-8").rstrip().split("\n")
    cells = zip(*(row.split("\t") for row in rows), strict=True)
    return dict(zip(header.split("\t"), cells, strict=True))


@pytest.fixture(scope="module")
def texts():
    return {split: columns(split)["text"] for split in SPLITS}


@pytest.fixture(scope="module")
def all_texts(texts):
    return [text for split in SPLITS for text in texts[split]]


@pytest.mark.parametrize("split", SPLITS)
def test_the_package_reads_them(split, texts):
    data = read_labelled_texts(REVIEWS / f"{split}.tsv")
    assert data.x == list(texts[split])
    assert data.labels == list(columns(split)["label"])
    assert len(data.x) == COUNTS[split]


def test_they_are_many_and_distinct(all_texts):
    assert len(all_texts) >= 1200
    assert len(set(all_texts)) == len(all_texts)


@pytest.mark.parametrize("split", SPLITS)
def test_three_domains_with_both_labels(split):
    parts = columns(split)
    counts = collections.Counter(zip(parts["domain"], parts["label"], strict=True))
    domains = ("electronics", "food", "hotel")
    assert set(counts) == set(itertools.product(domains, ("好评", "差评")))
    for domain in domains:
        good, bad = counts[domain, "好评"], counts[domain, "差评"]
        assert 0.4 < good / (good + bad) < 0.6
        assert good + bad > 0.15 * len(parts["text"])
    assert 0.45 < parts["label"].count("好评") / len(parts["label"]) < 0.55


def test_lengths_vary(all_texts):
    first, _, third = statistics.quantiles(map(len, all_texts), n=4)
    assert third >= 2 * first
    assert min(map(len, all_texts)) >= 2


def test_neither_length_nor_domain_gives_the_label_away():
    parts = columns("train")
    lengths = collections.defaultdict(list)
    for text, label in zip(parts["text"], parts["label"], strict=True):
        lengths[label].append(len(text))
    good, bad = (statistics.median(lengths[label]) for label in ("好评", "差评"))
    assert 0.67 < good / bad < 1.5


def test_they_follow_no_template(all_texts):
    openings = collections.Counter(text[:4] for text in all_texts)
    endings = collections.Counter(
        text.rstrip("。！？!?~～…")[-4:] for text in all_texts
    )
    for shared in (openings, endings):
        (_, most), *_ = shared.most_common(1)
        assert most <= 0.01 * len(all_texts)


def bigrams(text):
    letters = "".join(filter(str.isalnum, text.lower()))
    return {letters[i : i + 2] for i in range(len(letters) - 1)}


def test_no_split_has_a_sentence_much_like_one_of_another(texts):
    pieces = {
        split: [(text, bigrams(text)) for text in texts[split]] for split in SPLITS
    }
    alike = [
        (one, other)
        for first, second in itertools.combinations(SPLITS, 2)
        for one, ours in pieces[first]
        for other, theirs in pieces[second]
        if 3 * len(ours & theirs) >= len(ours) + len(theirs)  # Jaccard >= 0.5
    ]
    assert alike == []
    # That the test can fail.
    text = texts["train"][1]
    ours, theirs = bigrams(text), bigrams(f"{text[:-3]}！")
    assert 3 * len(ours & theirs) >= len(ours) + len(theirs)
