"""Tasks of the heads of pretraining, which only predict."""

import functools

from albert_tf_cli.tasks.pages import Page, ranking
from albert_tf_cli.tasks.task import Task

_RANKING = functools.partial(ranking, name="token_str")
_MASKED = (("今天天[MASK]很好",), ("房间很干[MASK]，服务员也很热情",))
_PAIRS = (("今天下雨了。", "所以我带了伞。"), ("所以我带了伞。", "今天下雨了。"))


class FillMask(Task):
    """The likeliest tokens of each [MASK] in a text."""

    name = "fill-mask"
    page = Page(("probabilities",), _RANKING, _MASKED, required="[MASK]")

    def columns(self, answer):
        if not answer or isinstance(answer[0], list):
            return super().columns(answer)
        return {
            "tokens": " ".join(f"{x['token_str']}/{x['score']:.4f}" for x in answer)
        }


class SentenceOrder(Task):
    """The order of two sentences: the second follows the first, or not."""

    name = "sentence-order"
    page = Page(("probabilities",), ranking, _PAIRS)
