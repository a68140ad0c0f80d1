"""The pages of `albert-tf demo`: their words, components and common answers."""

import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from albert_tf.pipelines import TaskPipeline

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
        "zh": "各字贡献：蓝色表示支持，橙色表示不支持",
    },
    "empty": {"en": "Fill in every field.", "zh": "请填写所有输入框。"},
    "required": {"en": "The text needs one {}.", "zh": "文本中需要有一个 {}。"},
}
# Gradio's components of the outputs, with their arguments.
COMPONENTS: dict[str, tuple[str, dict]] = {
    "probabilities": ("Label", {"num_top_classes": 20}),
    "score": ("Label", {}),
    "marked": ("HighlightedText", {}),
    "characters": ("HTML", {"show_label": True, "container": True, "padding": True}),
}


class Page(NamedTuple):
    """The page of a task, whose inputs are the fields of the task."""

    outputs: tuple[str, ...]  # Names in `COMPONENTS`.
    answer: Callable[[Any, dict], list]  # (pipeline, fields) -> a value per output.
    examples: tuple[tuple[str, ...], ...]  # For models without a file of examples.
    required: str = ""  # The first text must contain it once.


def ranking(
    answer: "TaskPipeline", x: dict, name: str = "label", **options: Any
) -> list[dict[str, float]]:
    """Return the scores of answers by their `name`, for a label."""
    answers = answer(x, **options)
    if not isinstance(answers, list):
        answers = [answers]
    return [{one[name]: one["score"] for one in answers}]


all_labels = functools.partial(ranking, top_k=None)


def marked(text: str, spans: Iterable[tuple]) -> dict[str, Any]:
    """Return a text with spans (start, end, label), for a highlighted text."""
    names = ("start", "end", "entity")
    return {"text": text, "entities": [dict(zip(names, x, strict=True)) for x in spans]}


# Texts and pairs; those with as many parts as the model takes are shown.
TEXTS: tuple[tuple[str, ...], ...] = (
    ("房间很干净，服务员也很热情",),
    ("味道不错，就是太贵",),
    ("太差了，别买",),
    ("怎么申请退货", "退货怎么办理"),
    ("一个人在弹吉他", "有人在做饭"),
)
