"""Model cards: the README.md beside a model, in English and Chinese."""

import math
import os
import pathlib
import re
from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from albert_tf.files import read_template, write_text

MARK = "<!-- Written by albert-tf. Delete this line to keep your changes. -->"
UNKNOWN = "**?**"
# The most labels that a card shows.
SHOWN_LABELS = 20
# Chinese names of the rows of a table of baselines.
_CHINESE_ROWS = {
    "this model": "本模型",
    "constant answer": "固定预测",
    "TF-IDF with logistic regression": "TF-IDF + 逻辑回归",
    "TF-IDF with ridge regression": "TF-IDF + 岭回归",
    "cosine of TF-IDF": "TF-IDF 余弦相似度",
    "dictionary of training entities": "训练集实体词典",
}
# Inputs to try by name, in English and Chinese.
INPUTS: dict[str, tuple[Any, Any]] = {
    "text": ("Mary moved to Berlin. She likes it.", "小明去了北京。他很喜欢那里。"),
    "text_b": ("She left Berlin.", "他离开了北京。"),
    "masked": ("The weather is [MASK] today.", "今天[MASK]气很好。"),
    "context": ("Mary moved to Berlin.", "小明去了北京。"),
    "question": ("Where did Mary move?", "小明去了哪里？"),
    "choices": (["Berlin", "Paris"], ["北京", "上海"]),
}


def write_model_card(
    folder: str | os.PathLike,
    model: keras.Model,
    *,
    tokenizer: keras.layers.Layer | None = None,
    start: str | None = None,
    data: Mapping[str, tuple[str, int, Mapping[str, float]]] | None = None,
    examples: Mapping[str, str] | None = None,
    usage: tuple[str, str, str] | None = None,
    monitor: str | None = None,
    baselines: Mapping[str, Mapping[str, float]] | None = None,
) -> None:
    """Write the model card of a task or backbone, unless a person wrote the README.md.

    `start` is the checkpoint that the training started from, `data` file, number of
    examples and scores by part ("train"), `examples` a text by label, and `usage` the
    needed packages, Python code and a command. `monitor` is the score that chose the
    epoch, and `baselines` that score of simple predictors, by name and part.
    """
    path = pathlib.Path(folder, "README.md")
    # A file in another encoding was written by a person.
    if path.exists() and MARK not in path.read_text("utf-8", errors="replace"):
        return
    preprocessor = getattr(model, "preprocessor", None)
    if tokenizer is None and preprocessor is not None:
        tokenizer = preprocessor.tokenizer
    language = _language(tokenizer)
    tag = model.pipeline_tag
    encoder = getattr(model, "backbone", model)
    english, chinese = model.summaries or (UNKNOWN, UNKNOWN)
    needs, python, command = usage or _usage(model, language)
    length = getattr(preprocessor, "sequence_length", encoder.max_sequence_length)
    scores = (data or {}, monitor, baselines or {})
    card = read_template("albert_tf", "model_card.md").substitute(
        language=f"language: {language}" if language else "# language: fill in",
        pipeline_tag=f"pipeline_tag: {tag}" if tag else "# pipeline_tag: fill in",
        mark=MARK,
        name=type(model).__name__,
        summary_english=english,
        summary_chinese=chinese,
        labels="<br>".join(_labels(model, examples)) or "—",
        num_layers=encoder.num_layers,
        hidden_dim=encoder.hidden_dim,
        vocabulary_size=f"{encoder.vocabulary_size:,}",
        length=length,
        parameters=f"{model.count_params():,}",
        megabytes=f"{_num_bytes(model) / 1e6:.1f}",
        start=_file_name(start) if start else UNKNOWN,
        needs=needs,
        code=f"```python\n{python}\n```\n\n```sh\n{command}\n```",
        data=_data_rows(data or {}),
        baselines_english=_baseline_table(*scores, {}),
        baselines_chinese=_baseline_table(*scores, _CHINESE_ROWS),
    )
    write_text(path, card)


def excerpt(text: str) -> str:
    """Return the beginning of a text in one line."""
    # JSON can have halves of surrogate pairs.
    text = " ".join(text.encode("utf-8", "replace").decode().split())
    return text if len(text) <= 40 else f"{text[:39]}…"


def _language(tokenizer: keras.layers.Layer | None) -> str | None:
    """Return the language of a vocabulary, `None` without one."""
    if tokenizer is None or not tokenizer.get_vocabulary():
        return None
    tokens = tokenizer.get_vocabulary()
    chinese = [token for token in tokens if re.search("[\u4e00-\u9fff]", token)]
    # English vocabularies have some Chinese characters, too.
    return "zh" if len(chinese) > len(tokens) / 10 else "en"


def _num_bytes(model: keras.Model) -> int:
    """Return the bytes of the weights."""
    sizes = [math.prod(x.shape) * np.dtype(x.dtype).itemsize for x in model.weights]
    return sum(sizes)


def _labels(model: keras.Model, examples: Mapping[str, str] | None) -> list[str]:
    """Return the first labels with their examples, and the number of all if more."""
    if not examples:
        names = getattr(model, "class_names", getattr(model, "labels", None))
        examples = dict.fromkeys(names or (), "")
    labels = []
    for label, example in examples.items():
        labels.append(_escape(label))
        if example:
            labels[-1] += f": {_escape(example)}"
    if len(labels) <= SHOWN_LABELS:
        return labels
    return [*labels[:SHOWN_LABELS], f"… ({len(labels):,})"]


def _data_rows(data: Mapping[str, tuple[str, int, Mapping[str, float]]]) -> str:
    """Return the rows of the table of data files."""
    if not data:
        return f"| {' | '.join([UNKNOWN] * 5)} |"
    rows = []
    for name, (file, count, scores) in data.items():
        shown = ", ".join(f"`{x}` {y:.4g}" for x, y in scores.items() if y is not None)
        rows.append(
            f"| {name} | {_file_name(file)} | {count:,} | {shown} | {UNKNOWN} |"
        )
    return "\n".join(rows)


def _baseline_table(
    data: Mapping[str, tuple[str, int, Mapping[str, float]]],
    monitor: str | None,
    baselines: Mapping[str, Mapping[str, float]],
    names: Mapping[str, str],
) -> str:
    """Return a table of the model and its baselines, after an empty line, if any.

    `names` are other names of rows.
    """
    if not monitor or not baselines:
        return ""
    parts = list(next(iter(baselines.values())))
    model = {part: data[part][2][monitor] for part in parts}
    rows = [[f"`{monitor}`", *parts], ["---"] * (1 + len(parts))]
    for name, scores in {"this model": model, **baselines}.items():
        rows.append([names.get(name, name), *(f"{scores[x]:.4g}" for x in parts)])
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n" + "\n".join(lines) + "\n"


def _file_name(path: str) -> str:
    """Return the name of a file, or an address, for a table."""
    # Without the folders of this machine.
    return _escape(path if "://" in path else pathlib.Path(path).resolve().name)


def _escape(markdown: str) -> str:
    return re.sub(r"([\\`*_\[\]<>|~$#])", r"\\\1", markdown)


def _usage(model: keras.Model, language: str | None) -> tuple[str, str, str]:
    """Return the needed packages, Python code and a command."""
    if language is None:  # Without a vocabulary.
        load = f'model = albert_tf.models.{type(model).__name__}.from_preset(".")'
        return "albert-tf", f"import albert_tf\n\n{load}", "albert-tf inspect ."
    task = getattr(model, "name_of_task", None) or "fill-mask"
    names = ["masked"] if task == "fill-mask" else model.text_inputs
    example = tuple(example_input(name, language == "zh") for name in names)
    shown = repr(example[0] if len(example) == 1 else example)
    python = f"""\
import albert_tf

answer = albert_tf.pipeline("{task}", ".")
print(answer({shown}))"""
    texts: list[str] = []
    for value in example:
        texts += [value] if isinstance(value, str) else value
    line = f"'{texts[0]}'"
    if len(texts) > 1:
        # In this form a shell reads a tab.
        line = "$'" + r"\t".join(texts) + "'"
    return "albert-tf", python, f"albert-tf predict . --task {task} {line}"


def example_input(name: str, is_chinese: bool) -> str | list[str]:
    """Return an example of an input of a task, by its name in `text_inputs`."""
    english, chinese = INPUTS.get(name, INPUTS["text"])
    return chinese if is_chinese else english
