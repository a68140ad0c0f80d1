"""Fine-tune on real Chinese data sets and compare with simple baselines.

ASSETS is a folder with chnsenticorp_clean.zip, thucnews/dev.tsv, lcqmc/dev.tsv,
stsb_zh/, peopledaily.zip and cmrc2018/, as distributed. `albert-tf finetune` trains the
models. It chooses the epoch on a tenth of the training examples; the score is computed
on separate test examples. Results are cached in OUTPUT; finished data sets are skipped.
The entity baseline needs `pip install sklearn-crfsuite`.

Run: python benchmarks/real_data.py ASSETS OUTPUT
"""

import argparse
import dataclasses
import json
import pathlib
import random
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.sparse import hstack
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from albert_tf.data import read_labelled_texts, read_squad, read_tagged_texts
from albert_tf.evaluation import cmrc_scores, entity_scores, regression_scores
from albert_tf.files import write_json

ROOT = pathlib.Path(__file__).parents[1]


# === Input files of `finetune` ===


def unpacked(archive, folder, **names):
    with zipfile.ZipFile(archive) as file:
        for name, member in names.items():
            target = folder / f"{name}{pathlib.Path(member).suffix}"
            target.write_bytes(file.read(member))


def split_table(path, folder, columns, count):
    """Hold out a reproducible random sample of `count` rows for testing."""
    rows = path.read_text("utf-8").splitlines()
    random.Random(0).shuffle(rows)
    for name, part in (("test", rows[:count]), ("train", rows[count:])):
        text = "\n".join(["\t".join(columns), *part])
        (folder / f"{name}.tsv").write_text(f"{text}\n", "utf-8")


def chnsenticorp(assets, folder):
    unpacked(
        assets / "chnsenticorp_clean.zip", folder, train="train.tsv", test="test.tsv"
    )


def thucnews(assets, folder):
    split_table(assets / "thucnews" / "dev.tsv", folder, ("text", "label"), 2000)


def lcqmc(assets, folder):
    columns = ("text", "text_b", "label")
    split_table(assets / "lcqmc" / "dev.tsv", folder, columns, 1802)


def stsb(assets, folder):
    for name, part in (("train", "train"), ("test", "dev")):
        lines = (assets / "stsb_zh" / f"stsb-zh-{part}.csv").read_text("utf-8")
        (folder / f"{name}.csv").write_text(f"text,text_b,label\n{lines}", "utf-8")


def peopledaily(assets, folder):
    unpacked(assets / "peopledaily.zip", folder, train="train.txt", test="dev.txt")


def cmrc(assets, folder):
    for name, part in (("train", "dev"), ("test", "trial")):
        source = assets / "cmrc2018" / f"cmrc2018_{part}.json"
        shutil.copyfile(source, folder / f"{name}.json")


# === Baselines ===


def texts_and_vectors(train, test):
    """Read both files and fit TF-IDF of character unigrams and bigrams to `train`."""
    train, test = map(read_labelled_texts, (train, test))
    vectors = TfidfVectorizer(analyzer="char", ngram_range=(1, 2), sublinear_tf=True)
    vectors.fit([*train.x[0], *train.x[1]] if train.pairs else train.x)
    return train, test, vectors


def logistic_regression(train, test):
    """Score logistic regression on TF-IDF; for pairs, on differences and products."""
    train, test, vectors = texts_and_vectors(train, test)

    def features(x):
        if not isinstance(x, tuple):
            return vectors.transform(x)
        first, second = map(vectors.transform, x)
        return hstack([abs(first - second), first.multiply(second)])

    model = LogisticRegression(C=10, max_iter=1000)
    model.fit(features(train.x), train.labels)
    return float(np.mean(model.predict(features(test.x)) == np.array(test.labels)))


def cosine(train, test):
    """Return the Spearman correlation of the cosine of TF-IDF vectors."""
    _, test, vectors = texts_and_vectors(train, test)
    first, second = map(vectors.transform, test.x)
    scores = np.asarray(first.multiply(second).sum(axis=1)).ravel()
    return regression_scores(np.array(test.labels, float), scores)["spearman"]


def conditional_random_field(train, test):
    """Score CRFsuite on the surrounding characters and their bigrams."""
    import sklearn_crfsuite

    def features(text):
        around = ["^", "^", *text, "$", "$"]
        return [
            [f"{at}={around[i + at]}" for at in range(5)]
            + [f"{at}{at + 1}={around[i + at]}{around[i + at + 1]}" for at in range(4)]
            for i in range(len(text))
        ]

    def tags(text, spans):
        row = ["O"] * len(text)
        for start, end, label in spans:
            row[start:end] = [f"B-{label}"] + [f"I-{label}"] * (end - start - 1)
        return row

    train, test = map(read_tagged_texts, (train, test))
    model = sklearn_crfsuite.CRF(max_iterations=100, all_possible_transitions=True)
    model.fit(
        [features(text) for text in train.x],
        [tags(text, spans) for text, spans in zip(train.x, train.spans, strict=True)],
    )
    found = []
    for row in model.predict([features(text) for text in test.x]):
        line = "".join(tag[0] for tag in row)
        spans = [match.span() for match in re.finditer("BI*", line)]
        found.append([(start, end, row[start][2:]) for start, end in spans])
    return entity_scores(test.spans, found)["f1"]


def likeliest_clause(train, test):
    """Score the clause that shares the most character bigrams with the question."""
    del train
    data = read_squad(test)

    def pairs(text):
        return {text[i : i + 2] for i in range(len(text) - 1)}

    found = []
    for question, context in zip(data.questions, data.contexts, strict=True):
        asked = pairs(question)
        clauses = re.split("[，。；！？]", context)
        found.append(max(clauses, key=lambda x, asked=asked: len(pairs(x) & asked)))
    return cmrc_scores(found, data.texts)["f1"]


# === The table ===


@dataclasses.dataclass(frozen=True)
class Data:
    """A data set: its files, its options of `finetune` and its baseline."""

    prepare: Callable
    score: str
    baseline: Callable
    baseline_name: str
    options: tuple = ()


CHARACTERS = "TF-IDF of characters, logistic regression"
DATA = {
    "ChnSentiCorp": Data(
        *(chnsenticorp, "accuracy", logistic_regression, CHARACTERS),
        ("--pooling-mode", "mean", "--sequence-length", "128", "--batch-size", "16"),
    ),
    "THUCNews headlines": Data(
        *(thucnews, "accuracy", logistic_regression, CHARACTERS),
        ("--pooling-mode", "mean", "--sequence-length", "48")
        + ("--learning-rate", "1e-3"),
    ),
    "LCQMC": Data(
        *(lcqmc, "accuracy", logistic_regression, f"{CHARACTERS} (both texts)"),
        ("--pooling-mode", "mean", "--sequence-length", "64", "--epochs", "5"),
    ),
    "STS-B zh": Data(
        *(stsb, "spearman", cosine, "TF-IDF of characters, cosine"),
        ("--task", "text-embedding", "--sequence-length", "64", "--epochs", "5"),
    ),
    "People's Daily": Data(
        *(peopledaily, "f1", conditional_random_field, "CRFsuite on characters"),
        ("--task", "token-classification", "--sequence-length", "128")
        + ("--learning-rate", "1e-3"),
    ),
    "CMRC 2018": Data(
        *(cmrc, "f1", likeliest_clause, "the clause most like the question"),
        ("--task", "question-answering", "--sequence-length", "128", "--epochs", "5"),
    ),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("assets", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--checkpoint", default=str(ROOT / "examples/albert_micro_zh"))
    parser.add_argument("--seed", default="1")
    parser.add_argument("--only", nargs="+", choices=DATA, default=list(DATA))
    arguments = parser.parse_args()
    results = arguments.output / "results.json"
    done = json.loads(results.read_text("utf-8")) if results.exists() else {}
    for name in arguments.only:
        if name not in done:
            done[name] = measured(name, DATA[name], arguments)
            write_json(results, done)
    table = Table("data", "score on test", "albert", "baseline", "which")
    for name, (score, baseline) in done.items():
        data = DATA[name]
        values = (f"{score:.4f}", f"{baseline:.4f}")
        table.add_row(name, data.score, *values, data.baseline_name)
    Console(width=110).print(table)


def measured(name, data, arguments):
    """Return the test scores of the model and of the baseline."""
    folder = arguments.output / name.split()[0]
    folder.mkdir(parents=True, exist_ok=True)
    data.prepare(arguments.assets, folder)
    (train,), (test,) = (list(folder.glob(f"{x}.*")) for x in ("train", "test"))
    model = folder / "model"
    command = [
        *(sys.executable, "-m", "albert_tf_cli", "finetune"),
        *("--checkpoint", arguments.checkpoint, "--train", str(train)),
        *("--test", str(test), "--output", str(model), "--seed", arguments.seed),
        *data.options,
    ]
    print("albert-tf", *command[3:], flush=True)
    if not (model / "metrics.json").exists():
        subprocess.run(command, check=True, cwd=ROOT)
    metrics = json.loads((model / "metrics.json").read_text("utf-8"))
    return metrics["test"][data.score], data.baseline(train, test)


if __name__ == "__main__":
    main()
