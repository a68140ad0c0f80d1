"""Model cards: the README.md beside a model, in English and Chinese."""

import math
import os
import pathlib
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from albert_tf.files import write_text

MARK = "<!-- Written by albert-tf. Delete this line to keep your changes. -->"
UNKNOWN = "**?**"
# The most labels that a card shows.
SHOWN_LABELS = 20
# Inputs to try by name, in English and Chinese.
INPUTS: dict[str, tuple[Any, Any]] = {
    "text": ("Mary moved to Berlin. She likes it.", "小明去了北京。他很喜欢那里。"),
    "text_b": ("She left Berlin.", "他离开了北京。"),
    "masked": ("The weather is [MASK] today.", "今天[MASK]气很好。"),
    "context": ("Mary moved to Berlin.", "小明去了北京。"),
    "question": ("Where did Mary move?", "小明去了哪里？"),
    "choices": (["Berlin", "Paris"], ["北京", "上海"]),
}
CARD = """\
---
# license: fill in
{language}
library_name: keras
{pipeline_tag}
tags: [albert, albert-tf]
---
{mark}

# {name}

[中文](#中文)

An ALBERT model that {summaries[0]}. Fill in what is marked **?**.

| property | value |
|---|---|
| labels, with an example from the data | {labels} |
| layers / hidden size | {encoder.num_layers} / {encoder.hidden_dim} |
| vocabulary / maximum length | {encoder.vocabulary_size:,} / {length} tokens |
| parameters | {parameters:,} ({megabytes:.1f} MB) |
| training started from | {start} |

Run this in the folder of this file. It needs {needs}.

{code}

| data | file | examples | scores | licence |
|---|---|---|---|---|
{data}

If dev chose the epoch, scores on new texts may be lower. The licence of the data may
forbid publishing the model.

Limits (intended texts, known mistakes, uses to avoid): **?**

# 中文

ALBERT 模型，用于{summaries[1]}。标有 **?** 的地方请自行填写。

| 项目 | 内容 |
|---|---|
| 标签及数据中的例子 | {labels} |
| 层数 / 隐藏维度 | {encoder.num_layers} / {encoder.hidden_dim} |
| 词表大小 / 最大长度 | {encoder.vocabulary_size:,} / {length} 个 token |
| 参数量 | {parameters:,}（{megabytes:.1f} MB） |
| 训练起点 | {start} |

在本文件所在目录下运行，需要安装 {needs}。

{code}

| 数据 | 文件 | 样本数 | 得分 | 许可证 |
|---|---|---|---|---|
{data}

如果用 dev 选择 epoch，在新文本上的得分可能更低。模型能否公开发布，取决于数据的许可证。

局限（适用的文本、已知的错误、不适用的场景）：**?**
"""


def write_model_card(
    folder: str | os.PathLike,
    model: Any,
    *,
    tokenizer: Any = None,
    start: str | None = None,
    data: Mapping[str, tuple[str, int, Mapping[str, float]]] | None = None,
    examples: Mapping[str, str] | None = None,
    usage: tuple[str, str, str] | None = None,
) -> None:
    """Write the model card of a task or backbone, unless a person wrote the README.md.

    `start` is the checkpoint that the training started from, `data` file, number of
    examples and scores by part ("train"), `examples` a text by label, and `usage` the
    needed packages, Python code and a command.
    """
    path = pathlib.Path(folder, "README.md")
    # A file in another encoding was written by a person.
    if path.exists() and MARK not in path.read_text("utf-8", errors="replace"):
        return
    preprocessor = getattr(model, "preprocessor", None)
    tokenizer = tokenizer or getattr(preprocessor, "tokenizer", None)
    tokens = tokenizer.get_vocabulary() if tokenizer is not None else []
    # English vocabularies have some Chinese characters, too.
    chinese = sum(bool(re.search("[\u4e00-\u9fff]", x)) for x in tokens)
    language = ("zh" if chinese > len(tokens) / 10 else "en") if tokens else None
    tag = model.pipeline_tag
    encoder = getattr(model, "backbone", model)
    size = sum(math.prod(x.shape) * np.dtype(x.dtype).itemsize for x in model.weights)
    names = getattr(model, "class_names", getattr(model, "labels", None)) or ()
    examples = examples or dict.fromkeys(names, "")
    labels = [": ".join(map(_escape, filter(None, x))) for x in examples.items()]
    needs, python, command = usage or _usage(model, language)
    card = CARD.format(
        language=f"language: {language}" if language else "# language: fill in",
        pipeline_tag=f"pipeline_tag: {tag}" if tag else "# pipeline_tag: fill in",
        mark=MARK,
        name=type(model).__name__,
        summaries=model.summaries or (UNKNOWN, UNKNOWN),
        labels="<br>".join(_first_labels(labels)) or "—",
        encoder=encoder,
        parameters=model.count_params(),
        megabytes=size / 1e6,
        length=getattr(preprocessor, "sequence_length", encoder.max_sequence_length),
        start=_file_name(start) if start else UNKNOWN,
        needs=needs,
        code=f"```python\n{python}\n```\n\n```sh\n{command}\n```",
        data=_rows(data or {}) or f"| {' | '.join([UNKNOWN] * 5)} |",
    )
    write_text(path, card)


def excerpt(text: str) -> str:
    """Return the beginning of a text in one line."""
    # JSON can have halves of surrogate pairs.
    text = " ".join(text.encode("utf-8", "replace").decode().split())
    return text if len(text) <= 40 else f"{text[:39]}…"


def _first_labels(labels):
    """Return the first labels, and the number of all if there are more."""
    if len(labels) <= SHOWN_LABELS:
        return labels
    return [*labels[:SHOWN_LABELS], f"… ({len(labels):,})"]


def _rows(data):
    rows = []
    for name, (file, count, scores) in data.items():
        file = _file_name(file)
        shown = ", ".join(f"`{x}` {y:.4g}" for x, y in scores.items() if y is not None)
        rows.append(f"| {name} | {file} | {count:,} | {shown} | {UNKNOWN} |")
    return "\n".join(rows)


def _file_name(path):
    # Without the folders of this machine.
    return _escape(path if "://" in path else pathlib.Path(path).resolve().name)


def _escape(markdown):
    return re.sub(r"([\\`*_\[\]<>|~$#])", r"\\\1", markdown)


def _usage(model, language):
    if language is None:  # Without a vocabulary.
        load = f'model = albert_tf.models.{type(model).__name__}.from_preset(".")'
        return "albert-tf", f"import albert_tf\n\n{load}", "albert-tf inspect ."
    task = getattr(model, "name_of_task", None) or "fill-mask"
    names = ["masked"] if task == "fill-mask" else model.text_inputs
    parts = [INPUTS.get(x, INPUTS["text"])[language == "zh"] for x in names]
    python = f"""\
import albert_tf

answer = albert_tf.pipeline("{task}", ".")
print(answer({tuple(parts) if len(parts) > 1 else parts[0]!r}))"""
    texts = [x for part in parts for x in ([part] if isinstance(part, str) else part)]
    line = ("$" if len(texts) > 1 else "") + "'" + r"\t".join(texts) + "'"
    return "albert-tf", python, f"albert-tf predict . --task {task} {line}"
