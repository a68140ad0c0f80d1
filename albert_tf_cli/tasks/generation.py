"""Files of misspelt sentences, and of articles with summaries."""

from collections.abc import Sequence

import albert_tf
from albert_tf_cli.tasks.pages import Page, marked
from albert_tf_cli.tasks.task import Examples, Task

_MISSPELT = (("你再饭店看书。",), ("姐姐想在来一次车站。",))
_NEWS = "路上的人很多。走失四天的男孩周三被一位摄影师找到，身体没有大碍。饭菜凉了。"


def _marked_corrections(answer, x):
    found = answer(x)
    spans = [(i, i + 1, f"{wrong} → {right}") for wrong, right, i in found["errors"]]
    return [marked(found["target"], spans)]


class SpellingCorrection(Task):
    """A misspelt and a correct text of the same length."""

    name = "spelling-correction"
    page = Page(("marked",), _marked_corrections, _MISSPELT)

    def read(self, path, columns, arguments=None):
        found = albert_tf.data.read_spelling(path, columns.encoding, columns.sheet)
        return Examples(*found)

    def cells(self, table, roles):
        # The correct texts, if there are such, stand beside the misspelt ones.
        both = ("original", "correct")
        is_pair = not table.has_header and len(table.header) == 2
        if table.given or not (is_pair or {*both} <= {*table.columns}):
            return super().cells(table, roles)
        table.find(*both)
        return (table.strings("original"),)

    def predict(self, model, x, batch_size):
        return [answer["target"] for answer in model.correct(x, batch_size)]

    def scores(self, examples, predicted):
        return albert_tf.evaluation.spelling_scores(examples.x, examples.y, predicted)

    def columns(self, answer):
        errors = (
            f"{wrong}→{right}@{place}" for wrong, right, place in answer["errors"]
        )
        return {"target": answer["target"], "errors": " ".join(errors)}


def _marked_sentences(answer, x):
    spans = [(*span, f"{score:.2f}") for *span, score in answer(x)["sentences"]]
    return [marked(x["text"], spans)]


class Summarization(Task):
    """An article and its summary, sentences of the article; scored by ROUGE."""

    name = "summarization"
    page = Page(("marked",), _marked_sentences, ((_NEWS,),))
    requires = ("rouge_score",)

    def read(self, path, columns, arguments=None):
        found = albert_tf.data.read_articles(path, columns.encoding, columns.sheet)
        return Examples(*found)

    def roles(self, fields):
        return ("article",)

    def cells(self, table, roles):
        table.find(*roles)
        return ([_joined(article) for article in table.column("article")],)

    def scores(self, examples, predicted):
        summaries = [answer["summary"] for answer in predicted]
        return albert_tf.evaluation.rouge_scores(summaries, examples.y)

    def columns(self, answer):
        return {"summary": " ".join(answer["summary"].split())}


def _joined(article: str | Sequence[str]) -> str:
    """Return an article, or its sentences, as a text."""
    if isinstance(article, str):
        return article
    # Sentences of Chinese have no space between them.
    space = " " if article[0].isascii() else ""
    return space.join(article)
