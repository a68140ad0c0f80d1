"""Make the text for the next pretraining of albert_micro_zh.

    python examples/albert_micro_zh/make_text.py CORPUS LABELLED OUTPUT

CORPUS has .txt.gz files, a sentence per line and an empty line after each document.
LABELLED has sentiment.tsv.gz, topics.tsv.gz and pairs.tsv.gz, whose texts without
their labels are documents, too. Every 150th document of a file goes to OUTPUT/dev,
the others to OUTPUT/train. A document that was in an earlier file is left out.
"""

import argparse
import csv
import gzip
import pathlib
import unicodedata

from zh import split_sentences

TEXT_COLUMNS = {
    "sentiment": ["text"],
    "topics": ["text"],
    "pairs": ["text_a", "text_b"],
}


def documents(path):
    """Yield the documents of a file, each a list of lines."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        if path.name.endswith(".txt.gz"):
            for document in file.read().split("\n\n"):
                yield document.split("\n")
            return
        name = path.name.removesuffix(".tsv.gz")
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            for column in TEXT_COLUMNS[name]:
                yield split_sentences(row[column])


def key(lines):
    """Return the letters and digits of a document, to find it again."""
    text = unicodedata.normalize("NFKC", "".join(lines)).lower()
    return hash("".join(char for char in text if char.isalnum()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("corpus", "labelled", "output"):
        parser.add_argument(name, type=pathlib.Path)
    arguments = parser.parse_args()
    paths = sorted(arguments.corpus.glob("*.txt.gz"))
    paths += [arguments.labelled / f"{name}.tsv.gz" for name in TEXT_COLUMNS]
    seen = set()
    for part in ("train", "dev"):
        (arguments.output / part).mkdir(parents=True)
    for path in paths:
        name = f"{path.name.split('.')[0]}.txt"
        with (
            open(arguments.output / "train" / name, "w", encoding="utf-8") as train,
            open(arguments.output / "dev" / name, "w", encoding="utf-8") as dev,
        ):
            count = 0
            for document in documents(path):
                lines = [line.strip() for line in document if line.strip()]
                if not lines or key(lines) in seen:
                    continue
                seen.add(key(lines))
                text = "\n".join(lines)
                print(text, end="\n\n", file=train if count % 150 else dev)
                count += 1
        print(f"{name}: {count:,} documents")


if __name__ == "__main__":
    main()
