"""The page of each task in `albert-tf demo`: texts, answers and examples."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

# The texts of the page.
WORDS = {
    "text": {"en": "Text", "zh": "文本"},
    "text_pair": {"en": "Second text", "zh": "第二段文本"},
    "question": {"en": "Question", "zh": "问题"},
    "context": {"en": "Passage", "zh": "原文"},
    "choices": {"en": "Choices, one per line", "zh": "选项（每行一个）"},
    "run": {"en": "Run", "zh": "运行"},
    "examples": {"en": "Examples", "zh": "示例"},
    "probabilities": {"en": "Probabilities", "zh": "概率"},
    "score": {"en": "Score", "zh": "得分"},
    "marked": {"en": "In the text", "zh": "文中结果"},
    "characters": {
        "en": "Contribution of each character: blue for, orange against",
        "zh": "各字贡献：蓝色支持，橙色反对",
    },
    "empty": {"en": "Fill in every field.", "zh": "请填写所有输入框。"},
    "required": {"en": "The text needs one {}.", "zh": "文本中需要有一个 {}。"},
}
# Gradio's components of the outputs, with their arguments.
COMPONENTS: dict[str, tuple[str, dict]] = {
    "probabilities": ("Label", {}),
    "score": ("Label", {}),
    "marked": ("HighlightedText", {}),
    "characters": ("HTML", {"show_label": True, "container": True, "padding": True}),
}

# === Answers, as values of the components ===


def _ranking(answer, x, name="label", **options):
    found = answer(x, **options)
    rows = found if isinstance(found, list) else [found]
    return [{row[name]: row["score"] for row in rows}]


_all_labels = functools.partial(_ranking, top_k=None)
_tokens = functools.partial(_ranking, name="token_str")


def _checked_labels(answer, x):
    (chosen,), (ranking,) = _ranking(answer, x), _all_labels(answer, x)
    return [{"✓ " * (name in chosen) + name: ranking[name] for name in ranking}]


def _score(answer, x):
    return [f"{answer(x)['score']:.3f}"]


def _marked(text, spans):
    names = ("start", "end", "entity")
    return {"text": text, "entities": [dict(zip(names, x, strict=True)) for x in spans]}


def _entities(answer, x):
    return [{"text": x["text"], "entities": answer(x)}]


def _answers(answer, x):
    best, *others = answer(x, top_k=3)
    spans = [(best["start"], best["end"], f"{best['score']:.2f}")]
    # The empty answer is "—". An answer may occur twice: the best score stays.
    ranking = {row["answer"] or "—": row["score"] for row in [*others[::-1], best]}
    return [ranking, _marked(x["context"], spans if best["answer"] else [])]


def _corrections(answer, x):
    found = answer(x)
    spans = [(i, i + 1, f"{wrong} → {right}") for wrong, right, i in found["errors"]]
    return [_marked(found["target"], spans)]


def _sentences(answer, x):
    spans = [(*span, f"{score:.2f}") for *span, score in answer(x)["sentences"]]
    return [_marked(x["text"], spans)]


class Page(NamedTuple):
    """The page of a task, whose inputs are the fields of the task."""

    outputs: tuple[str, ...]  # Names in `COMPONENTS`.
    answer: Callable[[Any, dict], list]  # (pipeline, fields) -> a value per output.
    examples: tuple[tuple[str, ...], ...]  # For models without a file of examples.
    required: str = ""  # The first text must contain it once.


_TEXTS: tuple[tuple[str, ...], ...] = (
    *(("房间很干净，服务员也很热情",), ("味道不错，就是太贵",), ("太差了，别买",)),
    *(("怎么申请退货", "退货怎么办理"), ("一个人在弹吉他", "有人在做饭")),
)
_SENTENCES = (("李芳在杭州的东方电子厂上班。",), ("记者王磊从成都发回了报道。",))
_STORY = "罗明月今年30岁，住在西安，是一名律师。周末的时候，罗明月喜欢爬山。"
_NEWS = "路上的人很多。走失四天的男孩周三被一位摄影师找到，身体没有大碍。饭菜凉了。"
_QUESTIONS = (("罗明月多大了？", _STORY), ("罗明月喜欢什么？", _STORY))
_CHOICES = (("男：几点考试？女：九点，别迟到。", "考试几点开始？", "五点\n九点"),)
_MISSPELT = (("你再饭店看书。",), ("姐姐想在来一次车站。",))
_MASKED = (("今天天[MASK]很好",), ("房间很干[MASK]，服务员也很热情",))
_ORDER = (("今天下雨了。", "所以我带了伞。"), ("所以我带了伞。", "今天下雨了。"))
_LABEL, _MARKED = ("probabilities",), ("marked",)
PAGES = {
    "text-classification": Page(_LABEL, _all_labels, _TEXTS),
    "multi-label": Page(_LABEL, _checked_labels, _TEXTS),
    "regression": Page(("score",), _score, _TEXTS),
    "token-classification": Page(_MARKED, _entities, _SENTENCES),
    "question-answering": Page(_LABEL + _MARKED, _answers, _QUESTIONS),
    "multiple-choice": Page(_LABEL, _all_labels, _CHOICES),
    "text-embedding": Page(("score",), _score, _TEXTS),
    "spelling-correction": Page(_MARKED, _corrections, _MISSPELT),
    "summarization": Page(_MARKED, _sentences, ((_NEWS,),)),
    "fill-mask": Page(_LABEL, _tokens, _MASKED, required="[MASK]"),
    "sentence-order": Page(_LABEL, _ranking, _ORDER),
}
