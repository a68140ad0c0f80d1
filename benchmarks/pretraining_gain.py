"""Measure what the bundled weights are worth: test scores by the number of examples.

    python benchmarks/pretraining_gain.py [--assets ../shared] [--data LCQMC ...]
        [--sizes 50 200 500 all] [--seeds 5] [--start NAME CHECKPOINT ...]
        [--stage LABELLED]

For each data set, models are fine-tuned with the package's defaults (for entities, with
a higher rate), from the bundled or the given checkpoints and from random weights, and
compared with simple baselines on the same examples. No test example is used for tuning.
`--stage` adds a baseline that also trains on the reviews of the supervised stage (a
folder with sentiment.tsv.gz).
Results are cached in the output file: an interrupted run resumes. `--report` only
prints them, and `make figures` draws them. ASSETS is a folder as
`benchmarks/classify.py` takes; the baseline of entities needs
`pip install sklearn-crfsuite`.
"""

import argparse
from collections.abc import Callable
import csv
import dataclasses
import gzip
import io
import itertools
import json
import os
import pathlib
import re
import tempfile
import zipfile

from albert_tf import models
from albert_tf.checkpoints import open_checkpoint
from albert_tf.data import read_squad, read_tagged_texts
from albert_tf.evaluation import cmrc_scores, entity_scores, regression_scores
from albert_tf.files import BUNDLED, write_json
from albert_tf.training import fine_tuning_learning_rate
import keras
import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.sparse import hstack
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import MultinomialNB

EXAMPLES = pathlib.Path(__file__).resolve().parents[1] / "examples"
OUTPUT = pathlib.Path(__file__).parent / "results" / "pretraining_gain.json"
RANDOM = "random weights"
CHARACTERS = {"analyzer": "char", "ngram_range": (1, 2)}
# As in the head of the bundled checkpoint, which is fine-tuned for these labels.
SENTIMENT = {"0": "差评", "1": "好评"}


# === Data: lists of texts, or tuples of two lists, and a list of labels ===


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


# === Baselines: functions of training and test examples that return a score ===


def accuracy(labels, found):
    return float(np.mean(np.array(labels) == np.array(found)))


def linear(vectors, model):
    """Return a baseline of features of texts; of pairs, differences and products."""

    def baseline(train, test):
        x, y = train
        vectors.fit([*x[0], *x[1]] if isinstance(x, tuple) else x)

        def features(x):
            if not isinstance(x, tuple):
                return vectors.transform(x)
            first, second = map(vectors.transform, x)
            join = hstack if hasattr(first, "multiply") else np.hstack
            product = first.multiply(second) if join is hstack else first * second
            return join([abs(first - second), product])

        return accuracy(test[1], model.fit(features(x), y).predict(features(test[0])))

    return baseline


def cosine(vectors):
    """Return a baseline of the rank correlation of cosines, which learns no scores."""

    def baseline(train, test):
        vectors.fit([*train[0][0], *train[0][1]])
        first, second = (
            np.asarray(x.todense()) if hasattr(x, "todense") else x
            for x in map(vectors.transform, test[0])
        )
        norms = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
        scores = (first * second).sum(1) / np.maximum(norms, 1e-9)
        return regression_scores(np.array(test[1]), scores)["spearman"]

    return baseline


class TokenMeans:
    """Means of the token vectors of the bundled checkpoint, as model2vec has them."""

    def fit(self, texts):
        return self

    def transform(self, texts):
        if not hasattr(self, "tokenizer"):
            model = models.AlbertMaskedLM.from_checkpoint(BUNDLED[0])
            self.tokenizer = model.preprocessor.tokenizer
            self.table = np.array(model.backbone.embedding.token_embedding.embeddings)
        means = [
            self.table[row].mean(0) if len(row) else self.table[0] * 0
            for row in self.tokenizer(texts).to_list()
        ]
        return np.array(means)


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

    model = sklearn_crfsuite.CRF(max_iterations=100, all_possible_transitions=True)
    model.fit(list(map(features, train[0])), list(map(tags, *train)))
    found = []
    for row in model.predict(list(map(features, test[0]))):
        line = "".join(tag[0] for tag in row)
        spans = [match.span() for match in re.finditer("BI*", line)]
        found.append([(start, end, row[start][2:]) for start, end in spans])
    return entity_scores(test[1], found)["f1"]


def likeliest_clause(train, test):
    """Score the clause that shares the most character bigrams with the question."""

    def pairs(text):
        return {text[i : i + 2] for i in range(len(text) - 1)}

    found = []
    for question, context in zip(*test[0], strict=True):
        asked, clauses = pairs(question), re.split("[，。；！？]", context)
        found.append(max(clauses, key=lambda x, asked=asked: len(pairs(x) & asked)))
    return cmrc_scores(found, [[text for _, text in row] for row in test[1]])["f1"]


# === Models ===


@dataclasses.dataclass(frozen=True)
class Data:
    read: Callable
    model: type
    score: Callable  # Of a model and of test examples.
    baselines: dict
    sequence_length: int = 128
    is_sentiment: bool = False
    # If another is better on dev than the one stored with the bundled checkpoints.
    learning_rate: float | None = None


def class_score(model, x, y):
    found = model.predict(x, verbose=0).argmax(-1)
    return accuracy(y, np.array(model.labels)[found])


def correlation(model, x, y):
    first, second = (model.encode_text(part, verbose=0) for part in x)
    return regression_scores(np.array(y), (first * second).sum(1))["spearman"]


def entity_f1(model, x, y):
    return entity_scores(y, model.predict(x, verbose=0))["f1"]


def answer_f1(model, x, y):
    found = [answer["answer"] for answer in model.predict(x, verbose=0)]
    return cmrc_scores(found, [[text for _, text in row] for row in y])["f1"]


TFIDF = TfidfVectorizer(**CHARACTERS, sublinear_tf=True)
REGRESSION = LogisticRegression(C=10, max_iter=1000)
LINEAR = {
    "TF-IDF, logistic regression": linear(TFIDF, REGRESSION),
    "naive Bayes": linear(CountVectorizer(**CHARACTERS), MultinomialNB()),
    "mean of token vectors": linear(TokenMeans(), REGRESSION),
}
# Counts cannot be subtracted for naive Bayes.
PAIRS = {name: x for name, x in LINEAR.items() if name != "naive Bayes"}
COSINES = {"cosine of TF-IDF": cosine(TFIDF), "of token means": cosine(TokenMeans())}
CLASSES = (models.AlbertTextClassifier, class_score)
DATA = {
    "ChnSentiCorp": Data(chnsenticorp, *CLASSES, LINEAR, is_sentiment=True),
    "the demo's reviews": Data(reviews, *CLASSES, LINEAR, is_sentiment=True),
    "THUCNews headlines": Data(headlines, *CLASSES, LINEAR),
    "LCQMC": Data(lcqmc, *CLASSES, PAIRS),
    "STS-B": Data(stsb, models.AlbertTextEmbedder, correlation, COSINES, 64),
    "People's Daily": Data(
        *(peoples_daily, models.AlbertTokenClassifier, entity_f1),
        {"CRFsuite on characters": conditional_random_field},
        learning_rate=5e-4,
    ),
    "CMRC 2018": Data(
        *(cmrc, models.AlbertQuestionAnswering, answer_f1),
        {"the clause most like the question": likeliest_clause},
    ),
}


def fine_tune(data, train, test, start, seed):
    """Return the test score of a model trained with the package's defaults."""
    keras.utils.set_random_seed(seed)
    options = {"sequence_length": data.sequence_length}
    if data.model is models.AlbertTextClassifier:
        options["labels"] = (
            list(SENTIMENT.values()) if data.is_sentiment else sorted(set(train[1]))
        )
        options["num_classes"] = len(options["labels"])
    if data.model is models.AlbertTokenClassifier:
        options["labels"] = sorted({label for row in train[1] for *_, label in row})
    if start == RANDOM:
        bundled = open_checkpoint(BUNDLED[0])
        rate = fine_tuning_learning_rate(
            bundled.arguments["hidden_dim"], random_weights=True
        )
        settings = {"pooling_mode": "mean", "learning_rate": rate}
        backbone = models.AlbertBackbone(
            **{**bundled.arguments, "fine_tuning": settings}
        )
        model = data.model.from_backbone(backbone, bundled.tokenizer(), **options)
    else:
        model = data.model.from_checkpoint(start, **options)
        if data.learning_rate:
            model.compile(learning_rate=data.learning_rate)
    model.fit(*train, verbose=0)
    return float(data.score(model, *test))


def with_stage(path):
    """Return the baseline that also learns from the reviews of the supervised stage."""
    with gzip.open(path / "sentiment.tsv.gz", "rt", encoding="utf-8") as file:
        x, y = table(file.read(), "text", "label")

    def baseline(train, test):
        both = [*train[0], *x], [*train[1], *map(SENTIMENT.get, y)]
        vectors = TfidfVectorizer(**CHARACTERS, sublinear_tf=True, min_df=3)
        return linear(vectors, REGRESSION)(both, test)

    return baseline


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


def main():
    arguments = read_arguments()
    path = pathlib.Path(arguments.output)
    done = json.loads(path.read_text("utf-8")) if path.exists() else {}
    starts = dict(arguments.start or [(name, name) for name in BUNDLED])
    starts[RANDOM] = RANDOM
    seeds = range(1, arguments.seeds + 1)
    for name in () if arguments.report else arguments.data:
        data = DATA[name]
        train, test = data.read(pathlib.Path(arguments.assets))
        baselines = dict(data.baselines)
        if arguments.stage and data.is_sentiment:
            baselines["TF-IDF, also on the stage"] = with_stage(arguments.stage)
        # Seeds come first, so that an interrupted run has all settings for some seeds.
        for seed, size, start in itertools.product(
            seeds, arguments.sizes, [*starts, *baselines]
        ):
            key = "/".join(map(str, (name, size, start, seed)))
            if key in done or (seed > 1 and size == "all" and start in baselines):
                continue
            is_class = data.model is models.AlbertTextClassifier
            few = choose(*train, size, seed, is_class)
            if start in baselines:
                done[key] = baselines[start](few, test)
            else:
                done[key] = fine_tune(data, few, test, starts[start], seed)
            write_json(path, done)
            print(key, f"{done[key]:.4f}", flush=True)
    report(done)


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = os.environ.get("ALBERT_TF_ASSETS", "../shared")
    parser.add_argument("--assets", default=default, help="folder with the data")
    parser.add_argument("--data", nargs="+", default=list(DATA), choices=DATA)
    parser.add_argument("--sizes", nargs="+", default=["50", "200", "500", "all"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--start", nargs=2, action="append", metavar=("NAME", "PATH"))
    parser.add_argument("--stage", type=pathlib.Path, help="folder of its data")
    parser.add_argument("--report", action="store_true", help="only print results")
    parser.add_argument("--output", default=OUTPUT)
    return parser.parse_args()


# === Report ===


def report(done):
    """Print a table per data set, with mean and spread by number of examples."""
    found = {}
    for key, value in done.items():
        name, size, start, _ = key.split("/")
        found.setdefault(name, {}).setdefault(start, {}).setdefault(size, []).append(
            value
        )
    console = Console(width=120)
    for name, starts in found.items():
        sizes = {size for row in starts.values() for size in row}
        # "all" is the last.
        sizes = sorted(sizes, key=lambda size: (size == "all", len(size), size))
        shown = Table("", *sizes, title=f"{name}: test scores (number of seeds)")
        for start, row in starts.items():
            shown.add_row(start, *(cell(row.get(size)) for size in sizes))
        console.print(shown)


def cell(values):
    if not values:
        return "-"
    spread = f" ± {np.std(values):.3f}" if len(values) > 1 else ""
    return f"{np.mean(values):.3f}{spread} ({len(values)})"


if __name__ == "__main__":
    main()
