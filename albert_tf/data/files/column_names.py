"""The names of columns in a header, and the roles that they stand for."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from albert_tf.data.files.annotation_tools import label_studio_label
from albert_tf.data.labels.cleaning import visible

# The names of each role, one line for each language or kind. The first name that a
# header has is taken.
_LABEL = (
    "label_desc label_des label labels class category sentiment target entities",
    "score similarity rating",
    "标签 标注 类别 分类 类型 情感 情感倾向 情绪 倾向 评分 打分 分数 相似度",
    "標籤 標註 類別 分類 類型 評分 分數",
)
_TEXT = (
    "text text_a sentence sentence1 sentence_a review content query question1 title",
    "comment",
    "文本 文本1 内容 正文 评论 评论内容 评价 评价内容 句子 句子1",
    "abst 问题1 标题 文本内容 data",
    "內容 評論 評論內容 評價 標題 文本內容",
)
_TEXT_B = (
    "text_b sentence2 sentence_b question2",
    "文本2 句子2 问题2",
)
COLUMN_NAMES = {
    "label": tuple(" ".join(_LABEL).split()),
    "text": tuple(" ".join(_TEXT).split()),
    "text_b": tuple(" ".join(_TEXT_B).split()),
    "original": ("original_text", "source"),
    "correct": ("correct_text", "target"),
    "article": ("article", "text", "content", "abst"),
    "summary": ("summary", "summarization", "title"),
    "question": ("question", "query", "问题"),
    "context": ("context", "passage", "document", "article", "text", "上下文", "原文"),
    "choices": ("choices", "options", "choice", "选项"),
}


def comparable(cells: Sequence[object]) -> list[str]:
    """Return the cells of a header as names to compare."""
    return [visible(str(cell)).lower() for cell in cells]


def named_columns(names: Sequence[str]) -> dict[str, int]:
    """Return the column of each role that has a known name in a header."""
    columns = {}
    for role, known in COLUMN_NAMES.items():
        name = next((name for name in known if name in names), None)
        if name is not None:
            columns[role] = names.index(name)
    if "abst" in names and "keyword" in names:
        # CSL asks whether the keywords are those of the abstract.
        columns["text_b"] = names.index("keyword")
    label = label_studio_label(names, COLUMN_NAMES["text"])
    if label is not None:
        columns["label"] = names.index(label)
    return columns


def distinct_names(names: Sequence[str]) -> list[str]:
    """Return the names with a number after each that occurs before.

    >>> distinct_names(["id", "id", "id_2", ""])
    ['id', 'id_3', 'id_2', '']
    """
    distinct: list[str] = []
    for name in names:
        if name in distinct:
            numbered = (f"{name}_{number}" for number in itertools.count(2))
            taken = {*names, *distinct}
            name = next(other for other in numbered if other not in taken)
        distinct.append(name)
    return distinct
