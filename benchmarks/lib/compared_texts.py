"""Texts that engines are compared on."""

import pathlib
import zipfile

from albert_tf.data import read_squad
from albert_tf_lite.lines import split_lines
import numpy as np


def read_pairs(path, examples):
    """Read a reproducible random sample of LCQMC's pairs and labels."""
    lines = split_lines(pathlib.Path(path).read_text("utf-8"))
    rows = [line.split("\t") for line in lines]
    chosen = np.random.default_rng(1).permutation(len(rows))[:examples]
    first, second, labels = zip(*(rows[row] for row in chosen), strict=True)
    return (list(first), list(second)), np.array(labels, "int32")


def read_contexts(path, examples=None):
    """Read long texts, the contexts of CMRC 2018, with meaningless labels."""
    contexts = sorted(set(read_squad(path).contexts))
    order = np.random.default_rng(1).permutation(len(contexts))[:examples]
    return [contexts[i] for i in order], np.arange(len(order)) % 2


def read_reviews(path, member, examples=None):
    """Read the texts and labels of a .tsv file in ChnSentiCorp's archive."""
    with zipfile.ZipFile(path) as archive:
        lines = split_lines(archive.read(member).decode("utf-8"))
    header, *rows = (line.split("\t") for line in lines if line)
    text, label = header.index("text_a"), header.index("label")
    order = np.random.default_rng(1).permutation(len(rows))[:examples]
    rows = [rows[i] for i in order]
    return [row[text] for row in rows], np.array([int(row[label]) for row in rows])


# Reader and sequence length of each data set.
DATA = {
    "lcqmc": (
        lambda assets, count: read_pairs(assets / "data/lcqmc/dev.tsv", count),
        128,
    ),
    "chnsenticorp": (
        lambda assets, count: read_reviews(
            assets / "data/chnsenticorp_clean.zip", "test.tsv", count
        ),
        128,
    ),
    "long": (
        lambda assets, count: read_contexts(
            assets / "data/cmrc2018/cmrc2018_dev.json", count
        ),
        512,
    ),
}
