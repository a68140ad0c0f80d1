"""Find columns by their names in a header or, without one, by their content."""

from __future__ import annotations

import collections
import itertools
import re
from collections.abc import Sequence

from albert_tf.data.forms import label_studio_label
from albert_tf_lite.errors import AlbertError

# Names of columns in a header. The first name that a header has is taken.
COLUMN_NAMES = {
    "label": (
        *("label_desc", "label_des", "label", "labels", "class", "category"),
        *("sentiment", "target", "entities"),
        *("score", "similarity", "rating", "标签", "标注", "类别", "分类", "类型"),
        *("情感", "情感倾向", "情绪", "倾向", "评分", "打分", "分数", "相似度"),
        *("標籤", "標註", "類別", "分類", "類型", "評分", "分數"),
    ),
    "text": (
        *("text", "text_a", "sentence", "sentence1", "sentence_a", "review"),
        *("content", "query", "question1", "title", "comment", "文本", "文本1"),
        *("内容", "正文", "评论", "评论内容", "评价", "评价内容", "句子", "句子1"),
        *("abst", "问题1", "标题", "文本内容", "data"),
        *("內容", "評論", "評論內容", "評價", "標題", "文本內容"),
    ),
    "text_b": (
        *("text_b", "sentence2", "sentence_b", "question2"),
        *("文本2", "句子2", "问题2"),
    ),
    "original": ("original_text", "source"),
    "correct": ("correct_text", "target"),
    "article": ("article", "text", "content", "abst"),
    "summary": ("summary", "summarization", "title"),
    "question": ("question", "query", "问题"),
    "context": ("context", "passage", "document", "article", "text", "上下文", "原文"),
    "choices": ("choices", "options", "choice", "选项"),
}
# A number, a date or a time, such as "2024-01-01 08:00" or "3月5日".
_UNITS = "年月日号时点分秒天岁元块%$¥￥"
_NUMBER = re.compile(rf"(?=.*\d)[\d\s:/.,TZ+()\-−~{_UNITS}]+")
# Also a code, such as "A001", or an address.
_PLAIN = re.compile(rf"\s*|{_NUMBER.pattern}|(?=.*\d)[!-~]+|(https?:|www\.)\S+|\S+@\S+")
# From here on, the values of a tenth of the rows are classes.
_MANY_ROWS = 20


def named_columns(names: list[str]) -> dict[str, int]:
    """Return the column of each role that has a known name in a header."""
    columns = {
        role: names.index(name)
        for role, known in COLUMN_NAMES.items()
        for name in reversed(known)
        if name in names
    }
    if {"abst", "keyword"} <= {*names}:
        # CSL asks whether the keywords are those of the abstract.
        columns["text_b"] = names.index("keyword")
    if (label := label_studio_label(names, COLUMN_NAMES["text"])) is not None:
        columns["label"] = names.index(label)
    return columns


def distinct_names(names: Sequence[str]) -> list[str]:
    """Return the names with a number after each that occurs before.

    >>> distinct_names(["id", "id", "id_2", ""])
    ['id', 'id_3', 'id_2', '']
    """
    distinct: list[str] = []
    for name in names:
        numbered = (f"{name}_{i}" for i in itertools.count(2))
        free = (x for x in numbered if x not in (*names, *distinct))
        distinct.append(next(free) if name in distinct else name)
    return distinct


def begins_with_names(rows: list[list]) -> bool:
    """Return whether a column has numbers only, but for the first row."""
    if len(rows) < 3 or len(rows[0]) < 2:
        return False
    columns = (x for x in zip(*rows, strict=True) if not _PLAIN.fullmatch(x[0]))
    return any(all(map(_NUMBER.fullmatch, others)) for _, *others in columns)


def may_have_header(labels: Sequence[str]) -> bool:
    """Return whether the first label is no number and the only one of its kind."""
    first, *others = labels
    counts = collections.Counter(others)
    is_name = first not in counts and not _PLAIN.fullmatch(first)
    return is_name and len(others) > 4 and min(counts.values()) > 1


def find_by_content(
    source: str,
    cells: list[tuple],
    given: dict[str, int],
    roles: Sequence[str],
    pairs: bool | None,
) -> dict[str, int]:
    """Return the columns of roles, without those given.

    Args:
        source: string, the name of the file for errors.
        cells: list of tuples, the cells of each column.
        given: dict, the columns of some roles.
        roles: list of strings, such as "label" and "text".
        pairs: optional bool. With `None`, a second text is "text_b".

    Raises:
        AlbertError: if a role has no column, or several are as likely.
    """
    found = {}
    free = [i for i in range(len(cells)) if i not in given.values()]
    if "label" in roles and len(cells) == 1:
        raise AlbertError(
            f"{source} has one column. Expected a label and a text, separated by tabs, "
            "in .csv files by commas."
        )
    if "label" in roles and "label" not in given:
        found["label"] = _find_label(source, {i: cells[i] for i in free})
        free.remove(found["label"])
    texts = [i for i in free if _are_texts(cells[i])] if len(cells) > 1 else free
    wanted = [role for role in roles if role not in (*found, *given)]
    if pairs is None and wanted == ["text"] and "text_b" not in given:
        wanted += ["text_b"] * (len(texts) == 2)
    if wanted and len(texts) != len(wanted):
        raise AlbertError(
            f"{source} has no header and {len(texts)} columns that may be text. "
            f"Expected {', '.join(wanted)}. Number the text column with `text=`."
        )
    return found | dict(zip(wanted, texts, strict=False))


def _find_label(source, cells):
    """Return the column of the fewest values; raise if another one is as likely."""
    likely = [i + 1 for i, x in cells.items() if "" not in x and _are_classes(x)]
    if len(likely) > 1:
        raise AlbertError(
            f"{source} has no header, and each of the columns {likely} may be the "
            "label. Number it with `label=`."
        )
    counts = {i: len({*x}) for i, x in cells.items()}
    repeated = [i for i, x in cells.items() if counts[i] < len(x) or counts[i] == 1]
    if not repeated:
        raise AlbertError(
            f"{source} has no header with known names, and no column of labels: in "
            "each column every line is different. Name or number it with `label=`."
        )

    def rank(i):
        # Few labels are missing.
        is_likely = _are_classes(cells[i]), "" not in cells[i]
        return *(not x for x in is_likely), counts[i], sum(map(len, cells[i]))

    label = min([i for i in repeated if counts[i] > 1] or repeated, key=rank)
    if may_have_header(cells[label]):
        raise AlbertError(
            f"The first line of {source} may be a header: no other line has the label "
            f"{cells[label][0]!r}. Name its columns with `label=` and `text=` or, if "
            "it is an example, number them."
        )
    return label


def _are_texts(cells):
    """Return whether cells are not numbers, dates, codes, classes or all the same."""
    is_plain = all(map(_PLAIN.fullmatch, cells))
    return not is_plain and not _are_repeated(cells, few_rows=0.3)


def _are_classes(cells):
    return len({*cells}) > 1 and _are_repeated(cells, few_rows=0.5)


def _are_repeated(cells, few_rows):
    """Return whether a tenth of the cells are distinct, or a share of few, at most."""
    share = 0.1 if len(cells) >= _MANY_ROWS else few_rows
    return len({*cells}) <= len(cells) * share
