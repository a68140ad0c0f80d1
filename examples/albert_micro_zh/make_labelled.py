"""Write the labelled records of the stage that made the bundled checkpoint.

    python examples/albert_micro_zh/make_labelled.py DATA LABELLED --vocab vocab.txt

DATA has labelled/ (sentiment.tsv.gz, topics.tsv.gz, pairs.tsv.gz, entities.jsonl.gz),
peopledaily.zip, cmrc2018/ and corpus_modern/. LABELLED is for `albert-tf pretrain
--labelled`. Data sets with labels of one kind share a head: sentiment, topics,
entities, paraphrase, inference, similarity and answers; each other one has a head of
its own. A tenth of the texts is in Traditional characters. Requires `opencc` and
scikit-learn.
"""

import argparse
import collections
import csv
import gzip
import itertools
import json
import pathlib
import random
import re
import sys
import tempfile
import zipfile

import albert_tf
from albert_tf.pretraining import LabelledSet, make_labelled_data
import numpy as np
import opencc
from sklearn.feature_extraction.text import TfidfVectorizer

CLASSES, TAGS = "text-classification", "token-classification"
# The weakest labels, and a mixture with rows of LCQMC, on which the model is measured.
LEFT_OUT = {"shop_nlpcc2014", "simclue_train_1w", "qbqtc_dev"}
SENTIMENT = {"0": "差评", "1": "好评"}
TOPICS = {
    **{"entertainment": "娱乐", "tech": "科技", "car": "汽车", "sports": "体育"},
    **{"finance": "财经", "game": "游戏", "world": "国际", "edu": "教育"},
    **{"travel": "旅游", "military": "军事", "culture": "文化", "house": "房产"},
    **{"agriculture": "农业", "story": "故事", "stock": "股票", "baby": "育儿"},
    **{"discovery": "探索", "essay": "美文", "fashion": "时尚", "food": "美食"},
    **{"history": "历史", "regimen": "健康", "society": "社会"},
}
POLITICS = "时政"
TOPIC_SOURCES = ("tnews_train", "toutiao_titles", "nlpcc2017_headlines")
# Headlines of the class finance that are about shares.
SHARES = re.compile(
    "A股|股市|沪指|大盘|涨停|跌停|股价|个股|港股|美股|股票|创业板|两市|股东|上证|"
    "深成指|牛股|股民|炒股|道指|纳指|减持|增持"
)
PARAPHRASE = {"0": "不同", "1": "相同"}
INFERENCE = {"entailment": "蕴含", "neutral": "中立", "contradiction": "矛盾"}
ENTITIES = ("PER", "LOC", "ORG")
ENTITY_NAMES = {
    "weibo_ner": {
        **{"PER.NAM": "PER", "GPE.NAM": "LOC", "LOC.NAM": "LOC", "ORG.NAM": "ORG"}
    },
    "resume_ner": {"NAME": "PER", "LOC": "LOC", "ORG": "ORG"},
}
# Similarities from 0 to 5 of the labels of pairs; random pairs have 0. The score of a
# pair is the mean of this and of 5 times the cosine of its characters.
SIMILARITIES = {
    **dict.fromkeys(
        ("oppo_xiaobu_dev", "chip_sts_train", "atec_ccks2018_sample", "bustm_train"),
        {"0": 2.0, "1": 5.0},
    ),
    "atec_train": {"0": 2.0, "1": 5.0},
    "kuake_qqr_train": {"0": 1.0, "1": 3.0, "2": 5.0},
    **dict.fromkeys(
        ("snli_zh_dev", "snli_zh_test", "ocnli_train"),
        {"entailment": 4.5, "neutral": 2.5, "contradiction": 1.5},
    ),
}
SIMILARITY_ROWS = 10_000
# Files of the corpus with sentences that judge nothing, for reviews with a long story.
STORIES = ("apps", "recipes", "abstracts", "news_cctv", "essays")
LONG_REVIEWS = 12_000
TRADITIONAL = ("s2t", "s2tw", "s2hk")
TRADITIONAL_SHARE = 0.1
QUOTES = str.maketrans("“”‘’", "「」『』")
# Questions at the end of the file that choose settings.
DEV_QUESTIONS = 300


class Reader:
    """The labelled sets of a folder."""

    def __init__(self, folder):
        self.folder, self.random = folder, random.Random(0)
        self.converters = [opencc.OpenCC(name) for name in TRADITIONAL]
        self.rows = {
            name: self.table(f"{name}.tsv.gz")
            for name in ("sentiment", "topics", "pairs")
        }

    def table(self, name):
        """Return the rows of a table by the data set they are of."""
        groups = collections.defaultdict(list)
        path = self.folder / "labelled" / name
        with gzip.open(path, "rt", encoding="utf-8", newline="") as lines:
            for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
                source = row.get("source") or row.get("domain")
                if source not in LEFT_OUT:
                    groups[source].append(row)
        return groups

    def lines(self, name):
        """Return the lines of a file of the corpus, empty ones between documents."""
        path = self.folder / "corpus_modern" / f"{name}.txt.gz"
        with gzip.open(path, "rt", encoding="utf-8") as file:
            return file.read().split("\n")

    def converted(self, *columns):
        """Return the columns with a tenth of the rows in Traditional characters."""
        rows = []
        for row in zip(*columns, strict=True):
            if self.random.random() < TRADITIONAL_SHARE:
                convert = self.random.choice(self.converters).convert
                changed = tuple(convert(x).translate(QUOTES) for x in row)
                # Positions of entities and answers stay.
                if list(map(len, changed)) == list(map(len, row)):
                    row = changed
            rows.append(row)
        return tuple(map(list, zip(*rows, strict=True)))

    def all(self):
        """Yield all labelled sets."""
        for name, rows in self.rows["sentiment"].items():
            labels = [SENTIMENT[row["label"]] for row in rows]
            if len(set(labels)) == 2:
                texts = [row["text"] for row in rows]
                yield self.classified(name, "sentiment", labels, texts, balanced=True)
        yield self.long_reviews()
        yield from self.topics()
        yield from self.pairs()
        yield self.similarities()
        yield from self.entities()
        yield self.answers()

    def classified(self, name, head, y, *columns, **options):
        x = self.converted(*columns)
        x = x if len(columns) > 1 else x[0]
        return LabelledSet(name, head, CLASSES, x, y, **options)

    def story(self, sentences, length):
        """Return consecutive sentences of about this length."""
        start = self.random.randrange(len(sentences) - 60)
        text = ""
        for sentence in sentences[start : start + 60]:
            if len(text) >= length:
                break
            text += sentence
        return text[: length + 60]

    def long_reviews(self):
        """Return short reviews behind, or sometimes before, a long story."""
        sentences = [[x for x in self.lines(name) if x] for name in STORIES]
        groups = collections.defaultdict(list)
        for rows in self.rows["sentiment"].values():
            for row in rows:
                if 6 <= len(row["text"]) <= 80:
                    groups[row["label"]].append(row["text"])
        texts, labels = [], []
        for label, reviews in sorted(groups.items()):
            for review in self.random.sample(reviews, LONG_REVIEWS // 2):
                source = self.random.choice(sentences)
                story = self.story(source, self.random.randrange(60, 420))
                parts = (
                    [story, review] if self.random.random() < 0.7 else [review, story]
                )
                texts.append("".join(parts))
                labels.append(SENTIMENT[label])
        name = "long_reviews"
        return self.classified(name, "sentiment", labels, texts, balanced=True)

    def topics(self):
        """Yield headlines by topic, and the other sets of texts by class."""
        for name, rows in self.rows["topics"].items():
            texts = [row["text"] for row in rows]
            labels, head, allowed = [row["label"] for row in rows], name, None
            if name in TOPIC_SOURCES:
                labels = [
                    TOPICS["stock" if x == "finance" and SHARES.search(text) else x]
                    for x, text in zip(labels, texts, strict=True)
                ]
                head, allowed = "topics", sorted({*labels, POLITICS})
            yield self.classified(name, head, labels, texts, labels=allowed)
        lines = ["", *self.lines("news_cctv")]
        titles = (x for before, x in itertools.pairwise(lines) if not before)
        titles = list(dict.fromkeys(x.strip() for x in titles))
        titles = [x for x in titles if 6 <= len(x) <= 60]
        labels = [POLITICS] * len(titles)
        yield self.classified("news_cctv", "topics", labels, titles)

    def pairs(self):
        for name, rows in self.rows["pairs"].items():
            labels, head = [row["label"] for row in rows], name
            if rows[0]["kind"] == "paraphrase":
                head, names = "paraphrase", PARAPHRASE
                labels = [names[x] for x in labels]
            elif rows[0]["kind"] == "nli" and name in SIMILARITIES:
                head, names = "inference", INFERENCE
                labels = [names[x] for x in labels]
            columns = ([row[x] for row in rows] for x in ("text_a", "text_b"))
            balanced = head == "paraphrase"
            yield self.classified(name, head, labels, *columns, balanced=balanced)

    def similarities(self):
        """Return pairs with a score from 0 to 5."""
        firsts, seconds, scores = [], [], []
        for name, by_label in SIMILARITIES.items():
            rows = self.rows["pairs"][name]
            for row in self.random.sample(rows, min(len(rows), SIMILARITY_ROWS)):
                firsts.append(row["text_a"])
                seconds.append(row["text_b"])
                scores.append(by_label[row["label"]])
        count = len(firsts) // 8
        firsts += self.random.sample(firsts, count)
        seconds += self.random.sample(seconds, count)
        scores += [0.0] * count
        # A text is as similar to itself as can be.
        same = self.random.sample(firsts, count // 8)
        firsts, seconds = firsts + same, seconds + same
        scores += [5.0] * len(same)
        vectors = TfidfVectorizer(analyzer="char", ngram_range=(1, 2))
        vectors.fit(firsts + seconds)
        first, second = map(vectors.transform, (firsts, seconds))
        cosines = np.asarray(first.multiply(second).sum(axis=1)).ravel()
        scores = np.array(scores) / 2 + 2.5 * cosines
        x = self.converted(firsts, seconds)
        return LabelledSet("similarity", "similarity", "regression", x, scores)

    def entities(self):
        """Yield tagged texts: those with people, places, organisations share a head."""
        with (
            zipfile.ZipFile(self.folder / "peopledaily.zip") as archive,
            tempfile.TemporaryDirectory() as folder,
        ):
            data = albert_tf.data.read_tagged_texts(
                archive.extract("train.txt", folder)
            )
        yield self.tagged("peopledaily", "entities", data.x, data.spans, ENTITIES)
        groups = collections.defaultdict(list)
        path = self.folder / "labelled" / "entities.jsonl.gz"
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for row in map(json.loads, lines):
                groups[row["source"]].append((row["text"], row["spans"]))
        for name, rows in groups.items():
            texts, spans = map(list, zip(*rows, strict=True))
            if names := ENTITY_NAMES.get(name):
                known = [
                    [[a, b, names[x]] for a, b, x in y if x in names] for y in spans
                ]
                yield self.tagged(name, "entities", texts, known, ENTITIES)
            labels = sorted({label for row in spans for *_, label in row})
            yield self.tagged(f"{name}_own", f"{name}_own", texts, spans, labels)

    def tagged(self, name, head, texts, spans, labels):
        (texts,) = self.converted(texts)
        spans = [list(map(tuple, row)) for row in spans]
        return LabelledSet(name, head, TAGS, texts, spans, list(labels))

    def answers(self):
        """Return the questions about contexts with the places of the answers."""
        path = self.folder / "cmrc2018" / "cmrc2018_dev.json"
        data = albert_tf.data.read_squad(path).for_training()
        count = len(data) - DEV_QUESTIONS
        x = self.converted(data.questions[:count], data.contexts[:count])
        answers = [
            [(at, x[1][i][at : at + len(text)]) for at, text in given if at is not None]
            for i, given in enumerate(data.answers[:count])
        ]
        return LabelledSet("cmrc2018", "answers", "question-answering", x, answers)

    def similar(self):
        """Return the lists of both texts of similar pairs."""
        firsts, seconds = [], []
        for rows in self.rows["pairs"].values():
            for row in rows:
                is_paraphrase = row["kind"] == "paraphrase" and row["label"] == "1"
                if is_paraphrase or row["label"] == "entailment":
                    firsts.append(row["text_a"])
                    seconds.append(row["text_b"])
        return self.converted(firsts, seconds)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("labelled", type=pathlib.Path)
    parser.add_argument("--vocab", type=pathlib.Path, required=True)
    parser.add_argument("--sequence-length", type=int, default=512)
    given = parser.parse_args(arguments)
    reader = Reader(given.data)
    sets = list(reader.all())
    make_labelled_data(
        *(sets, given.labelled, given.vocab, given.sequence_length),
        pairs=reader.similar(),
        progress=lambda done, total: print(f"{done} of {total} sets", flush=True),
    )


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:
        sys.exit(f"Error: {error}")
