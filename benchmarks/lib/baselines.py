"""Baselines: functions of training and test examples that return a score."""

import re

from albert_tf import models
from albert_tf.evaluation import cmrc_scores, entity_scores, regression_scores
from albert_tf.files import BUNDLED
import numpy as np
from scipy.sparse import hstack, issparse
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB

CHARACTERS = {"analyzer": "char", "ngram_range": (1, 2)}


def accuracy(labels, found):
    return float(np.mean(np.array(labels) == np.array(found)))


def linear(vectors, model):
    """Return a baseline of features of texts; of pairs, differences and products."""

    def features(x):
        if not isinstance(x, tuple):
            return vectors.transform(x)
        first, second = (vectors.transform(texts) for texts in x)
        if issparse(first):
            return hstack([abs(first - second), first.multiply(second)])
        return np.hstack([abs(first - second), first * second])

    def baseline(train, test):
        x, y = train
        vectors.fit([*x[0], *x[1]] if isinstance(x, tuple) else x)
        model.fit(features(x), y)
        test_x, test_y = test
        return accuracy(test_y, model.predict(features(test_x)))

    return baseline


def cosine(vectors):
    """Return a baseline of the rank correlation of cosines, which learns no scores."""

    def transform(texts):
        table = vectors.transform(texts)
        return table.toarray() if issparse(table) else table

    def baseline(train, test):
        (first_texts, second_texts), _ = train
        vectors.fit([*first_texts, *second_texts])
        (first_texts, second_texts), y = test
        first, second = transform(first_texts), transform(second_texts)
        norms = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
        scores = (first * second).sum(axis=1) / np.maximum(norms, 1e-9)
        return regression_scores(np.array(y), scores)["spearman"]

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
        means = np.zeros((len(texts), self.table.shape[1]), self.table.dtype)
        for number, ids in enumerate(self.tokenizer(texts).to_list()):
            if ids:
                means[number] = self.table[ids].mean(axis=0)
        return means


def conditional_random_field(train, test):
    """Score CRFsuite on the surrounding characters and their bigrams."""
    import sklearn_crfsuite

    def features_of(text):
        """Return a list of features per character of a text."""
        padded = ["^", "^", *text, "$", "$"]
        features = []
        for i in range(len(text)):
            # Two characters on either side.
            window = padded[i : i + 5]
            single = [f"{at}={window[at]}" for at in range(5)]
            double = [f"{at}{at + 1}={window[at]}{window[at + 1]}" for at in range(4)]
            features.append(single + double)
        return features

    def tags_of(text, spans):
        tags = ["O"] * len(text)
        for start, end, label in spans:
            for i in range(start, end):
                tags[i] = f"B-{label}" if i == start else f"I-{label}"
        return tags

    def spans_of(tags):
        prefixes = "".join(tag[0] for tag in tags)
        spans = [match.span() for match in re.finditer("BI*", prefixes)]
        return [(start, end, tags[start][2:]) for start, end in spans]

    train_texts, train_spans = train
    test_texts, test_spans = test
    model = sklearn_crfsuite.CRF(max_iterations=100, all_possible_transitions=True)
    model.fit(
        [features_of(text) for text in train_texts],
        [tags_of(*pair) for pair in zip(train_texts, train_spans, strict=True)],
    )
    tagged = model.predict([features_of(text) for text in test_texts])
    return entity_scores(test_spans, [spans_of(tags) for tags in tagged])["f1"]


def likeliest_clause(train, test):
    """Score the clause that shares the most character bigrams with the question."""

    def bigrams(text):
        return {text[i : i + 2] for i in range(len(text) - 1)}

    (questions, contexts), answers = test
    chosen = []
    for question, context in zip(questions, contexts, strict=True):
        clauses = re.split("[，。；！？]", context)
        shared = [len(bigrams(clause) & bigrams(question)) for clause in clauses]
        chosen.append(clauses[int(np.argmax(shared))])
    expected = [[text for _, text in row] for row in answers]
    return cmrc_scores(chosen, expected)["f1"]


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
