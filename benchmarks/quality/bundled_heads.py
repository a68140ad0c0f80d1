"""Measure the heads of a bundled checkpoint on sets of which they saw no label.

    python -m benchmarks.quality.bundled_heads [--model albert_micro_zh]
        [--assets ../shared] [--rows topics ...] [--examples 2000]

Each head answers test examples as it is, beside a simple baseline that needs no labels
either. The score of a head is accuracy, the F1 of entities, or the rank correlation.
ASSETS is a folder as `benchmarks/speed/classify.py` takes. The results are in
`results/bundled_heads.json`.
"""

import argparse
import collections
from collections.abc import Callable, Iterator
import dataclasses
import os
import pathlib
from typing import Any

import albert_tf
from albert_tf.evaluation import entity_scores, regression_scores
import numpy as np
import opencc

from benchmarks.lib.baselines import COSINES, accuracy
from benchmarks.lib.harness import write_results
from benchmarks.lib.labelled_sets import (
    SENTIMENT,
    chnsenticorp,
    headlines,
    lcqmc,
    peoples_daily,
    reviews,
    select,
    shops,
    stsb,
)

# Names of the head for the classes of THUCNews, in the order of class.txt. Share prices
# are one of two classes of the head, and all of its society is one class here.
TOPICS = [
    "财经",
    "房产",
    "股票",
    "教育",
    "科技",
    "社会",
    "时政",
    "体育",
    "游戏",
    "娱乐",
]
PARAPHRASE = {"0": "不同", "1": "相同"}
# Words that praise or complain, for a baseline without labels.
PRAISE = "好", "喜欢", "满意", "推荐", "不错", "漂亮"
BLAME = "差", "不", "没", "失望", "退", "坏", "贵", "慢", "脏"


# === Data: test texts or columns of them, and what is right ===


def topics(assets):
    _, (x, y) = headlines(assets)
    return x, [TOPICS[int(i)] for i in y]


def pairs(assets):
    _, (x, y) = lcqmc(assets)
    return x, list(map(PARAPHRASE.get, y))


def test_part(read):
    """Return a reader of the test part of data with two parts."""
    return lambda assets: tuple(read(assets))[1]


def long_reviews(assets):
    """Return 600 reviews of ChnSentiCorp with 150 to 480 characters."""
    reviews = []
    for texts, classes in chnsenticorp(assets):
        reviews += zip(texts, classes, strict=True)
    long = [(text, label) for text, label in reviews if 150 <= len(text) <= 480]
    order = np.random.default_rng(0).permutation(len(long))[:600]
    chosen = [long[i] for i in order]
    return [text for text, _ in chosen], [label for _, label in chosen]


def traditional(read):
    """Return a reader of the same texts in Traditional characters."""
    convert = opencc.OpenCC("s2t").convert

    def converted(assets):
        x, y = read(assets)
        if isinstance(x, tuple):
            return tuple([convert(text) for text in part] for part in x), y
        return [convert(text) for text in x], y

    return converted


# === Scores ===


def labels(answer, x):
    return [row["label"] for row in answer(rows_of(x))]


def zero_shot(answer, x):
    ranked = answer(rows_of(x), candidate_labels=TOPICS, hypothesis_template="{}")
    return [row["labels"][0] for row in ranked]


def rows_of(x):
    return list(zip(*x, strict=True)) if isinstance(x, tuple) else x


def scores(answer, x):
    return [row["score"] for row in answer(rows_of(x))]


def spans(answer, x):
    return [
        [(part["start"], part["end"], part["entity_group"]) for part in row]
        for row in answer(x)
    ]


def rank_correlation(y, found):
    return regression_scores(np.array(y), np.array(found))["spearman"]


def entity_f1(y, found):
    return entity_scores(y, found)["f1"]


# === Baselines, which learn nothing ===


def commonest(x, y):
    """Score the most frequent label."""
    return collections.Counter(y).most_common(1)[0][1] / len(y)


def words(x, y):
    """Score the words of praise against those of blame."""
    answers = []
    for text in x:
        praise = sum(text.count(word) for word in PRAISE)
        blame = sum(text.count(word) for word in BLAME)
        answers.append(SENTIMENT["1" if praise >= blame else "0"])
    return accuracy(y, answers)


def shared_characters(x, y):
    """Score pairs that share at least two thirds of their characters."""
    answers = []
    for first, second in zip(*x, strict=True):
        shared, either = set(first) & set(second), set(first) | set(second)
        is_similar = len(shared) / max(1, len(either)) >= 2 / 3
        answers.append(PARAPHRASE["1" if is_similar else "0"])
    return accuracy(y, answers)


def cosines(x, y):
    return COSINES["cosine of TF-IDF"]((x, y), (x, y))


@dataclasses.dataclass(frozen=True)
class Row:
    """A head and the data that it is measured on."""

    task: str
    head: str | None
    read: Callable
    answers: Callable
    score: Callable
    baseline: Callable | None


def sentiment(read: Callable) -> Row:
    """Return a row of the head that classifies reviews."""
    return Row("sentiment-analysis", "sentiment", read, labels, accuracy, words)


def similarity(task: str, head: str | None) -> Row:
    """Return a row that scores the pairs of STS-B."""
    return Row(task, head, test_part(stsb), scores, rank_correlation, cosines)


ROWS = {
    "ChnSentiCorp": sentiment(test_part(chnsenticorp)),
    "ChnSentiCorp, 150 to 480 characters": sentiment(long_reviews),
    "NLPCC 2014 shops": sentiment(test_part(shops)),
    "the demo's reviews": sentiment(test_part(reviews)),
    "THUCNews": Row(
        "topic-classification", "topics", topics, labels, accuracy, commonest
    ),
    "THUCNews, zero-shot": Row(
        "zero-shot-classification", "inference", topics, zero_shot, accuracy, commonest
    ),
    "LCQMC": Row(
        "paraphrase", "paraphrase", pairs, labels, accuracy, shared_characters
    ),
    "STS-B": similarity("text-similarity", "similarity"),
    "STS-B, cosine of vectors": similarity("feature-extraction", None),
    "People's Daily": Row(
        "ner", "entities", test_part(peoples_daily), spans, entity_f1, None
    ),
}
for name in ("ChnSentiCorp", "THUCNews", "LCQMC"):
    ROWS[f"{name}, in Traditional"] = dataclasses.replace(
        ROWS[name], read=traditional(ROWS[name].read)
    )


def measured(
    model: str, assets: pathlib.Path, names: list[str], count: int
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name and the scores of each row."""
    for name in names:
        row = ROWS[name]
        all_x, all_y = row.read(assets)
        # The same examples every time.
        order = np.random.default_rng(0).permutation(len(all_y))[:count]
        x, y = select(all_x, all_y, order)
        answer = albert_tf.pipeline(row.task, model, head=row.head)
        score = float(row.score(y, row.answers(answer, x)))
        baseline = None if row.baseline is None else float(row.baseline(x, y))
        yield name, {"examples": len(y), "score": score, "baseline": baseline}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = os.environ.get("ALBERT_TF_ASSETS", "../shared")
    parser.add_argument("--assets", default=default, type=pathlib.Path)
    parser.add_argument("--model", default="albert_micro_zh")
    parser.add_argument("--rows", nargs="+", default=list(ROWS), choices=ROWS)
    parser.add_argument("--examples", type=int, default=2000)
    given = parser.parse_args()
    rows: dict[str, Any] = {}
    for name, row in measured(given.model, given.assets, given.rows, given.examples):
        rows[name] = row
        baseline = "" if row["baseline"] is None else f"{row['baseline']:.3f}"
        print(f"{name:<32}{row['score']:.3f}  {baseline}", flush=True)
        settings = {"model": given.model, "examples": given.examples}
        write_results("bundled_heads", {"settings": settings, "rows": rows})


if __name__ == "__main__":
    main()
