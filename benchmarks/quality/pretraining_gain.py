"""Measure what the bundled weights are worth: test scores by the number of examples.

    python -m benchmarks.quality.pretraining_gain [--assets ../shared]
        [--data LCQMC ...] [--sizes 50 200 500 all] [--seeds 5]
        [--start NAME CHECKPOINT ...] [--stage LABELLED]

For each data set, models are fine-tuned with the package's defaults (for entities, with
a higher rate), from the bundled or the given checkpoints and from random weights, and
compared with simple baselines on the same examples. No test example is used for tuning.
`--stage` adds a baseline that also trains on the reviews of the supervised stage (a
folder with sentiment.tsv.gz).
Results are cached in the output file: an interrupted run resumes. `--report` only
prints them, and `make figures` draws them. ASSETS is a folder as
`benchmarks/speed/classify.py` takes; the baseline of entities needs `pip install
sklearn-crfsuite`.
"""

import argparse
from collections.abc import Callable
import dataclasses
import gzip
import itertools
import json
import os
import pathlib

from albert_tf import models
from albert_tf.checkpoints import open_checkpoint
from albert_tf.evaluation import cmrc_scores, entity_scores, regression_scores
from albert_tf.files import BUNDLED, write_json
from albert_tf.training import fine_tuning_learning_rate
import keras
import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.feature_extraction.text import TfidfVectorizer

from benchmarks.lib.baselines import (
    CHARACTERS,
    COSINES,
    LINEAR,
    PAIRS,
    REGRESSION,
    accuracy,
    conditional_random_field,
    likeliest_clause,
    linear,
)
from benchmarks.lib.labelled_sets import (
    SENTIMENT,
    chnsenticorp,
    choose,
    cmrc,
    headlines,
    lcqmc,
    peoples_daily,
    reviews,
    stsb,
    table,
)
from benchmarks.lib.paths import RESULTS

OUTPUT = RESULTS / "pretraining_gain.json"
RANDOM = "random weights"


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


CLASSES = (models.AlbertTextClassifier, class_score)
DATA = {
    "ChnSentiCorp": Data(chnsenticorp, *CLASSES, LINEAR, is_sentiment=True),
    "the demo's reviews": Data(reviews, *CLASSES, LINEAR, is_sentiment=True),
    "THUCNews headlines": Data(headlines, *CLASSES, LINEAR),
    "LCQMC": Data(lcqmc, *CLASSES, PAIRS),
    "STS-B": Data(stsb, models.AlbertTextEmbedder, correlation, COSINES, 64),
    "People's Daily": Data(
        peoples_daily,
        models.AlbertTokenClassifier,
        entity_f1,
        {"CRFsuite on characters": conditional_random_field},
        learning_rate=5e-4,
    ),
    "CMRC 2018": Data(
        cmrc,
        models.AlbertQuestionAnswering,
        answer_f1,
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
        stage_texts, stage_labels = table(file.read(), "text", "label")
    stage_classes = [SENTIMENT[label] for label in stage_labels]

    def baseline(train, test):
        texts, classes = train
        both = ([*texts, *stage_texts], [*classes, *stage_classes])
        vectors = TfidfVectorizer(**CHARACTERS, sublinear_tf=True, min_df=3)
        return linear(vectors, REGRESSION)(both, test)

    return baseline


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
    # By data set, start and number of examples: the scores of the seeds.
    scores = {}
    for key, value in done.items():
        name, size, start, _ = key.split("/")
        by_size = scores.setdefault(name, {}).setdefault(start, {})
        by_size.setdefault(size, []).append(value)
    console = Console(width=120)
    for name, starts in scores.items():
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
