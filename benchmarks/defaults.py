"""Whether the default settings train every size, from weights and from random ones.

Fine-tunes a classifier of the demo's reviews with the default optimizer, rate and
epochs, for each size, and prints its accuracy on dev beside that of guessing.

Run: python benchmarks/defaults.py --sizes albert_micro_zh albert_tiny_zh
"""

import argparse
import collections
import pathlib
import time

import keras
from rich.console import Console
from rich.table import Table

from albert_tf.data import class_names, read_labelled_texts
from albert_tf.models import AlbertBackbone, AlbertTextClassifier
from zh.sizes import SIZES

EXAMPLES = pathlib.Path(__file__).resolve().parents[1] / "examples"
SHIPPED = "albert_micro_zh"
# Those of `albert-tf finetune`.
EPOCHS, BATCH_SIZE, SEQUENCE_LENGTH = 3, 32, 128


def main():
    arguments = read_arguments()
    train, dev = (
        read_labelled_texts(EXAMPLES / "reviews" / f"{part}.tsv")
        for part in ("train", "dev")
    )
    labels = class_names(train.labels)
    guessing = max(collections.Counter(dev.labels).values()) / len(dev.labels)
    table = Table("size", "from", "rate", "accuracy on dev", "guessing", "seconds")
    for size in arguments.sizes:
        for pretrained in (True, False) if size == SHIPPED else (False,):
            keras.utils.set_random_seed(arguments.seed)
            classifier = new_classifier(size, labels, pretrained)
            classifier.compile()
            began = time.monotonic()
            classifier.fit(
                train.x,
                train.labels,
                epochs=EPOCHS,
                batch_size=BATCH_SIZE,
                verbose=arguments.verbose,
            )
            seconds = time.monotonic() - began
            found = classifier.predict(dev.x, verbose=0).argmax(-1)
            right = sum(labels[i] == y for i, y in zip(found, dev.labels, strict=True))
            table.add_row(
                size,
                "its weights" if pretrained else "random weights",
                f"{classifier.default_learning_rate:g}",
                f"{right / len(dev.labels):.3f}",
                f"{guessing:.3f}",
                f"{seconds:.0f}",
            )
            Console(width=90).print(table)


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    sizes = [SHIPPED, "albert_tiny_zh", "albert_base_zh"]
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=sizes)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--verbose", type=int, default=0)
    return parser.parse_args()


def new_classifier(size, labels, pretrained):
    """A classifier of a size, with the vocabulary of the shipped checkpoint."""
    shipped = AlbertTextClassifier.from_checkpoint(
        EXAMPLES / SHIPPED, labels=labels, sequence_length=SEQUENCE_LENGTH
    )
    if pretrained:
        return shipped
    tokens = shipped.backbone.vocabulary_size
    backbone = AlbertBackbone(**{**SIZES[size], "vocabulary_size": tokens})
    return AlbertTextClassifier(
        backbone, len(labels), shipped.preprocessor, labels=labels
    )


if __name__ == "__main__":
    main()
