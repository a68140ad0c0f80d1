"""Baselines: functions of training and test examples that return a score."""

import re

from albert_tf import models
from albert_tf.evaluation import cmrc_scores, entity_scores, regression_scores
from albert_tf.files import BUNDLED
import numpy as np
from scipy.sparse import hstack
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB

CHARACTERS = {"analyzer": "char", "ngram_range": (1, 2)}


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
