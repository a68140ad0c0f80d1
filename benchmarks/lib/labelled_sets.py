"""Labelled data sets in two parts, to train and to test.

A reader takes the folder of the data and returns both parts: texts, or tuples of two
lists, and a list of labels.
"""

import csv
import gzip
import io
import tempfile
import zipfile

from albert_tf.data import read_squad, read_tagged_texts
from sklearn.model_selection import train_test_split

from benchmarks.lib.paths import EXAMPLES

# As in the head of the bundled checkpoint, which is fine-tuned for these labels.
SENTIMENT = {"0": "差评", "1": "好评"}


def table(text, *columns):
    """Read the columns of a tab-separated table with a header."""
    rows = csv.DictReader(io.StringIO(text), delimiter="\t", quoting=csv.QUOTE_NONE)
    *texts, labels = zip(
        *([row[name] for name in columns] for row in rows), strict=True
    )
    return tuple(map(list, texts)) if len(texts) > 1 else list(texts[0]), list(labels)


def held_out(x, y, share=0.2):
    """Return training and test examples, the same ones every time."""
    train, test = train_test_split(
        range(len(y)), test_size=share, random_state=0, stratify=y
    )
    return select(x, y, train), select(x, y, test)


def select(x, y, rows):
    if isinstance(x, tuple):
        return tuple([part[i] for i in rows] for part in x), [y[i] for i in rows]
    return [x[i] for i in rows], [y[i] for i in rows]


def reviews(assets):
    parts = (EXAMPLES / "reviews" / f"{part}.tsv" for part in ("train", "test"))
    return tuple(table(part.read_text("utf-8"), "text", "label") for part in parts)


def chnsenticorp(assets):
    with zipfile.ZipFile(assets / "data" / "chnsenticorp_clean.zip") as archive:
        parts = [archive.read(f"{part}.tsv").decode() for part in ("train", "test")]
    for x, y in (table(part, "text_a", "label") for part in parts):
        yield x, list(map(SENTIMENT.get, y))


def shops(assets):
    path = assets / "data" / "labelled" / "sentiment.tsv.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        rows = [row for row in rows if row["domain"] == "shop_nlpcc2014"]
    labels = [SENTIMENT[row["label"]] for row in rows]
    return held_out([row["text"] for row in rows], labels)


def headlines(assets):
    text = (assets / "data" / "thucnews" / "dev.tsv").read_text("utf-8")
    return held_out(*table(f"text\tlabel\n{text}", "text", "label"))


def lcqmc(assets):
    text = (assets / "data" / "lcqmc" / "dev.tsv").read_text("utf-8")
    return held_out(*table(f"a\tb\tlabel\n{text}", "a", "b", "label"))


def stsb(assets):
    for part in ("train", "dev"):
        path = assets / "data" / "stsb_zh" / f"stsb-zh-{part}.csv"
        rows = list(csv.reader(io.StringIO(path.read_text("utf-8"))))
        first, second, scores = map(list, zip(*rows, strict=True))
        yield (first, second), list(map(float, scores))


def peoples_daily(assets):
    with (
        zipfile.ZipFile(assets / "data" / "peopledaily.zip") as archive,
        tempfile.TemporaryDirectory() as folder,
    ):
        for part in ("train", "dev"):
            data = read_tagged_texts(archive.extract(f"{part}.txt", folder))
            yield data.x, data.spans


def cmrc(assets):
    for part in ("dev", "trial"):
        data = read_squad(assets / "data" / "cmrc2018" / f"cmrc2018_{part}.json")
        data = data.for_training() if part == "dev" else data
        yield data.x, data.answers


def choose(x, y, size, seed, stratify):
    """Draw examples by seed, with the class frequencies of the whole set."""
    if size == "all" or int(size) >= len(y):
        return x, y
    rows, _ = train_test_split(
        range(len(y)),
        train_size=int(size),
        random_state=seed,
        stratify=y if stratify else None,
    )
    return select(x, y, rows)
