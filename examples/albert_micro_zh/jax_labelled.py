"""Prepare arrays of labelled data sets for the supervised stage of `jax_pretrain.py`,
and convert the weights that it writes.

    python examples/albert_micro_zh/jax_labelled.py arrays LABELLED ARRAYS \\
        examples/albert_micro_zh
    python examples/albert_micro_zh/jax_labelled.py checkpoint OUTPUT CHECKPOINT ARRAYS

LABELLED has sentiment.tsv.gz, topics.tsv.gz, pairs.tsv.gz and entities.jsonl.gz. Each
data set has a head of its own, except the reviews, which share one. In an epoch a data
set is seen by the square root of its size. CHECKPOINT gets the encoder and the
head of the reviews.
"""

import argparse
import collections
import csv
import dataclasses
import gzip
import json
import pathlib
import shutil
import sys

import numpy as np
from jax_arrays import array_settings, write_part

import albert_tf
from albert_tf.checkpoints import config_arguments
from albert_tf.files import complete_directory, write_json
from albert_tf.models import (
    AlbertBackbone,
    AlbertTextClassifier,
    AlbertTokenClassifier,
)
from albert_tf.preprocessing import AlbertTextClassifierPreprocessor
from albert_tf.tokenizers import load_tokenizer

SEQUENCE_LENGTH = 128
# The weakest labels, and a mixture with rows of LCQMC, on which the model is measured.
LEFT_OUT = {"shop_nlpcc2014", "simclue_train_1w", "qbqtc_dev"}
# Data sets with the same classes share a head.
SAME_CLASSES = {"toutiao_titles": "tnews_train"}
SENTIMENT, SENTIMENT_LABELS = "sentiment", ("差评", "好评")
# Stored with the checkpoint; chosen on dev sets with 500 examples.
FINE_TUNING = {"pooling_mode": "mean", "learning_rate": 2e-4}
IGNORED = -1


@dataclasses.dataclass
class DataSet:
    """Texts as ids, with classes of texts or of tokens."""

    head: str
    tokens: list  # int arrays, one per text.
    first_lengths: np.ndarray  # Tokens up to the first [SEP].
    labels: list  # Names, or int arrays of the tags of each token.
    is_tagged: bool = False
    # Set by `number_classes`, among the classes of all heads of texts or of tokens:
    classes: list | None = None  # Numbers, or int arrays of those of each token.
    range: tuple[int, int] = (0, 0)  # The first and the last of the head, exclusive.

    def __len__(self):
        return len(self.tokens)


# === Reading ===


def read_data(folder, checkpoint, preprocessor):
    """Return the data sets of the four files."""
    sets = []
    for file, source, columns in (
        ("sentiment", "domain", ["text"]),
        ("topics", "source", ["text"]),
        ("pairs", "source", ["text_a", "text_b"]),
    ):
        groups = collections.defaultdict(list)
        with gzip.open(folder / f"{file}.tsv.gz", "rt", encoding="utf-8") as lines:
            for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
                groups[row[source]].append(row)
        for name, rows in groups.items():
            if name in LEFT_OUT:
                continue
            head = SENTIMENT if file == SENTIMENT else SAME_CLASSES.get(name, name)
            texts = tuple([row[column] for row in rows] for column in columns)
            packed = preprocessor.pack_texts(texts if len(texts) > 1 else texts[0])
            labels = [row["label"] for row in rows]
            sets.append(DataSet(head, *as_arrays(packed), labels))
    return [*sets, *read_entities(folder / "entities.jsonl.gz", checkpoint)]


def read_entities(path, checkpoint):
    """Yield the data sets of tagged texts."""
    groups = collections.defaultdict(list)
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            groups[row["source"]].append((row["text"], row["spans"]))
    for name, rows in groups.items():
        texts, spans = map(list, zip(*rows, strict=True))
        labels = sorted({label for row in spans for *_, label in row})
        tagger = AlbertTokenClassifier.from_checkpoint(
            checkpoint, labels=labels, sequence_length=SEQUENCE_LENGTH
        )
        packed = tagger.preprocessor.pack_texts(texts)
        tags = tagger.targets(texts, spans, packed)
        tags = np.split(tags.values.numpy(), tags.row_splits.numpy()[1:-1])
        yield DataSet(name, *as_arrays(packed), tags, is_tagged=True)


def as_arrays(packed):
    tokens = packed.tokens
    values = tokens.values.numpy().astype("uint16")
    rows = np.split(values, tokens.row_splits.numpy()[1:-1])
    return rows, packed.first_lengths.numpy()


def number_classes(sets):
    """Number the classes of the heads one after another, and return their count."""
    first = 0
    for head in dict.fromkeys(data.head for data in sets):
        group = [data for data in sets if data.head == head]
        if group[0].is_tagged:
            count = 1 + max(int(max(tags)) for data in group for tags in data.labels)
            for data in group:
                # [CLS] and [SEP] have no tag.
                data.classes = [
                    np.where(tags == IGNORED, IGNORED, first + tags)
                    for tags in data.labels
                ]
        else:
            names = sorted({label for data in group for label in data.labels})
            numbers, count = {x: first + i for i, x in enumerate(names)}, len(names)
            for data in group:
                data.classes = [numbers[label] for label in data.labels]
        for data in group:
            data.range = first, first + count
        first += count
    return first


# === Writing ===


def draw_weights(sets):
    """Return how often each row of each data set is seen in an epoch.

    Both labels of a data set of reviews are equally frequent, and its size is twice
    that of the rarer one.
    """
    groups = []
    for data in sets:
        kinds = np.array(data.labels if data.head == SENTIMENT else [""] * len(data))
        groups.append({kind: np.flatnonzero(kinds == kind) for kind in set(kinds)})
    counts = [
        2 * min(len(group.get(kind, ())) for kind in "01")
        if data.head == SENTIMENT
        else len(data)
        for data, group in zip(sets, groups, strict=True)
    ]
    shares = np.sqrt(counts) / np.sqrt(counts).sum() * sum(map(len, sets))
    for data, group, share in zip(sets, groups, shares, strict=True):
        weights = np.zeros(len(data), "float32")
        for rows in group.values():
            weights[rows] = share / len(group) / len(rows)
        yield weights


def write_sets(sets, folder, settings):
    """Write a file of arrays per data set."""
    heads = list(dict.fromkeys(data.head for data in sets))
    ranges = {data.head: data.range for data in sets}
    settings = {**settings, "heads": heads, "ranges": [ranges[x] for x in heads]}
    for data, weights in zip(sets, draw_weights(sets), strict=True):
        tokens, lengths = np.concatenate(data.tokens), [len(x) for x in data.tokens]
        count, tags = len(data), np.full(len(tokens), IGNORED)
        labels = np.full(count, IGNORED) if data.is_tagged else data.classes
        if data.is_tagged:
            tags = np.concatenate(data.classes)
        write_part(
            folder,
            {
                "tokens": tokens,
                "tags": np.asarray(tags, "int16"),
                "lengths": np.array(lengths, "uint16"),
                "seconds": (lengths - data.first_lengths).astype("uint16"),
                "labels": np.asarray(labels, "int16"),
                "heads": np.full(count, heads.index(data.head), "uint8"),
                "weights": weights,
            },
        )
    write_json(folder / "arrays.json", settings)


def write_arrays(labelled, arrays, checkpoint):
    """Write the arrays, for a model of the size and vocabulary of a checkpoint."""
    tokenizer = load_tokenizer(checkpoint / "vocab.txt")
    preprocessor = AlbertTextClassifierPreprocessor(
        tokenizer, sequence_length=SEQUENCE_LENGTH
    )
    sets = read_data(labelled, checkpoint, preprocessor)
    classes = {
        "text": number_classes([data for data in sets if not data.is_tagged]),
        "tags": number_classes([data for data in sets if data.is_tagged]),
    }
    size = config_arguments(checkpoint / "albert_config.json")
    settings = array_settings(tokenizer, size, SEQUENCE_LENGTH)
    with complete_directory(arrays) as folder:
        write_sets(sets, folder, {**settings, "classes": classes})
        shutil.copy(checkpoint / "vocab.txt", folder)


def write_checkpoint(output, checkpoint, arrays):
    """Write a classifier of reviews with the weights of a `jax_pretrain.py` output."""
    settings = json.loads((arrays / "arrays.json").read_text("utf-8"))
    backbone = AlbertBackbone(**{**settings["size"], "fine_tuning": FINE_TUNING})
    classifier = AlbertTextClassifier(
        backbone,
        len(SENTIMENT_LABELS),
        labels=list(SENTIMENT_LABELS),
        pooling_mode=FINE_TUNING["pooling_mode"],
    )
    first, end = settings["ranges"][settings["heads"].index(SENTIMENT)]
    with np.load(output / "weights.npz") as weights:
        for variable in backbone.weights:
            variable.assign(weights[variable.path])
        head = weights["text/kernel"][:, first:end], weights["text/bias"][first:end]
    classifier.output_dense.set_weights(head)
    albert_tf.save_checkpoint(classifier, checkpoint, "albert_zh", arrays / "vocab.txt")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    for command, names in (
        (write_arrays, ("labelled", "arrays", "checkpoint")),
        (write_checkpoint, ("output", "checkpoint", "arrays")),
    ):
        added = commands.add_parser(command.__name__.removeprefix("write_"))
        for name in names:
            added.add_argument(name, type=pathlib.Path)
        added.set_defaults(command=command)
    given = vars(parser.parse_args(arguments))
    given.pop("command")(**given)


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:
        sys.exit(f"Error: {error}")
