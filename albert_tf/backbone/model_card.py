"""Model cards: the README.md beside a model, in English and Chinese."""

import json
import math
import os
import pathlib
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from albert_tf.backbone.card_texts import KINDS, OTHER, TEXTS
from albert_tf.files import CARD, CARD_MARK, is_foreign_card, write_text

# Rows of the table of labels, and characters of an example in it.
MOST_LABELS, LONGEST_EXAMPLE = 20, 40
# Characters of a text in the commands.
LONGEST_INPUT = 80
_CHINESE = re.compile("[\u4e00-\u9fff]")
# Not scores.
_NO_SCORES = {"loss", "total"}


class Usage(NamedTuple):
    """Commands that run in the folder of the model.

    Attributes:
        needs: a sentence in English and Chinese.
        python, command: lines of Python and of the shell.
    """

    needs: tuple[str, str]
    python: str
    command: str


def write_model_card(folder: str | os.PathLike, model: Any, **facts: Any) -> None:
    """Write the README.md of a model, unless a person wrote the existing one.

    `facts` are the arguments of `model_card`.
    """
    path = pathlib.Path(folder, CARD)
    if not is_foreign_card(path):
        write_text(path, model_card(model, **facts))


def model_card(
    model: Any,
    *,
    tokenizer: Any = None,
    start: Mapping[str, str] | None = None,
    schedule: Mapping[str, Any] | None = None,
    data: Mapping[str, Mapping[str, Any]] | None = None,
    scores: Mapping[str, Mapping[str, float]] | None = None,
    labels: Mapping[str, str] | None = None,
    example: Sequence[Any] | None = None,
    usage: Usage | None = None,
) -> str:
    """Return the model card of a model for the Hugging Face Hub.

    What is unknown is left to fill in.

    Args:
        model: a task, or an `AlbertBackbone`.
        tokenizer: optional, the tokenizer that is saved with a model of ids.
        start: optional dict, `"checkpoint"` or `"config"` and its name.
        schedule: optional dict, `batch_size`, and `steps` or `epochs`, `best_epoch`
            and `monitor`.
        data: optional dict of dicts by part, such as `"train"`: `file`, `examples`,
            the number of them, and `split`, true if it is a tenth of `train`.
        scores: optional dict of dicts of scores by part of the data.
        labels: optional dict of examples by label. If empty, the labels of the model.
        example: optional, the parts of an input for the commands.
        usage: optional `Usage`. By default that of a checkpoint directory.
    """
    preprocessor = getattr(model, "preprocessor", None)
    tokenizer = tokenizer or getattr(preprocessor, "tokenizer", None)
    task = getattr(model, "name_of_task", None)
    kind = KINDS.get(task or type(model).__name__, OTHER)
    language = None
    if tokenizer is not None:
        chinese = any(map(_CHINESE.search, tokenizer.get_vocabulary()))
        language = "zh" if chinese else "en"
    if not labels:
        names = getattr(model, "class_names", None) or getattr(model, "labels", None)
        labels = dict.fromkeys(names or (), "")
    if usage is None and tokenizer is None:
        usage = _usage_of_ids(model)
    elif usage is None:
        parts = example or kind.examples[language == "zh"]
        # An embedder takes single texts, although it learns from pairs.
        usage = _usage_of_texts(task, parts[: len(getattr(model, "text_inputs", "x"))])
    blocks = [_front_matter(language, kind.pipeline_tag) + CARD_MARK]
    for say in (_Words(0), _Words(1)):
        each = say("pair" if getattr(model, "pairs", False) else "one text")
        blocks += [
            say("title", kind.titles[say.language]),
            kind.summaries[say.language].format(each=each),
            _properties(say, model, kind),
            *_labels(say, labels),
            f"## {say('use')}",
            usage.needs[say.language],
            f"```python\n{usage.python}\n```",
            f"```sh\n{usage.command}\n```",
            f"## {say('training')}",
            *_training(say, start, schedule, data),
            f"## {say('scores')}",
            *_scores(say, scores, data),
            f"## {say('limits')}",
            say.missing("no limits"),
        ]
    return "\n\n".join(blocks) + "\n"


def excerpt(text: str, longest: int = LONGEST_INPUT) -> str:
    """Return the beginning of a text in one line."""
    # JSON can have halves of surrogate pairs.
    text = " ".join(text.encode("utf-8", "replace").decode().split())
    return text if len(text) <= longest else text[: longest - 1] + "…"


# === Parts of a card ===


class _Words:
    """Function from keys to the words of a language: 0 for English, 1 for Chinese."""

    def __init__(self, language: int):
        self.language = language

    def __call__(self, key: str, *values: Any, **named: Any) -> str:
        return TEXTS[key][self.language].format(*values, **named)

    def missing(self, key: str) -> str:
        """Return what the author of the model has to fill in."""
        return self("to fill in") + self(key)


def _front_matter(language, pipeline_tag):
    fields = [
        "# license: fill in, see the licence of the data below",
        f"language: {language}" if language else "# language: fill in",
        "library_name: keras",
        *([f"pipeline_tag: {pipeline_tag}"] if pipeline_tag else []),
        *("tags:", "- albert", "- albert-tf"),
    ]
    return "\n".join(["---", *fields, "---", ""])


def _properties(say, model, kind):
    """Return the table of shape, size and maximum length."""
    backbone = getattr(model, "backbone", model)
    preprocessor = getattr(model, "preprocessor", None)
    weights = [math.prod(x.shape) * np.dtype(x.dtype).itemsize for x in model.weights]
    size = say("size", count=model.count_params(), size=sum(weights) / 1e6)
    length = getattr(preprocessor, "sequence_length", None)
    longer = "windows" if kind.reads_windows else "truncated"
    rows = (
        (say("encoder"), say("shape", backbone)),
        (say("parameters"), size),
        (
            say("longest"),
            say(longer if length else "tokens", length or backbone.max_sequence_length),
        ),
    )
    return _table((say("property"), say("value")), rows)


def _labels(say, labels):
    """Return the blocks of the labels; none without labels."""
    if not labels:
        return []
    rows = [
        (_escaped(label), _escaped(excerpt(text, LONGEST_EXAMPLE)))
        for label, text in list(labels.items())[:MOST_LABELS]
    ]
    table = "\n".join(f"- {label}" for label, _ in rows)
    if any(labels.values()):
        table = _table((say("label"), say("example")), rows)
    more = len(labels) - len(rows)
    return [f"## {say('labels')}", table, *([say("more", more)] if more else [])]


def _training(say, start, schedule, data):
    """Return the blocks about start and data of the training."""
    lines = [say(name, value) for name, value in (start or {}).items()]
    lines = lines or [say.missing("no start")]
    if schedule:
        lines.append(say("epochs" if "epochs" in schedule else "steps", **schedule))
    rows = [
        (
            name,
            say("split" if x.get("split") else "whole", _escaped(x["file"])),
            f"{x['examples']:,}",
        )
        for name, x in (data or {}).items()
    ]
    header = say("data"), say("file"), say("count")
    table = _table(header, rows) if rows else say.missing("no data")
    return [say("sentence end").join(lines), table, say.missing("licence")]


def _scores(say, scores, data):
    """Return the blocks of the scores, one column per part of the data."""
    if not scores:
        return [say.missing("no scores")]
    names = dict.fromkeys(name for x in scores.values() for name in x)
    counts = {name: x["examples"] for name, x in (data or {}).items()}
    header = [
        say("of examples", part, counts[part]) if part in counts else part
        for part in scores
    ]
    rows = [
        (f"`{name}`", *(_number(x.get(name)) for x in scores.values()))
        for name in names
        if name not in _NO_SCORES
    ]
    note = next(x for x in ("test", "train", "dev") if x in scores)
    return [_table((say("score"), *header), rows), say(f"scores of {note}")]


def _number(value):
    return "" if value is None else f"{value:.4g}"


def _table(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _escaped(text):
    """Escape what Markdown would read as markup."""
    return re.sub(r"([\\`*_\[\]<>|~$#])", r"\\\1", text)


# === Commands to try ===


def _usage_of_ids(model):
    """Return the commands for a model without a vocabulary."""
    name = type(model).__name__
    python = f'import albert_tf\n\nmodel = albert_tf.models.{name}.from_preset(".")'
    return Usage(TEXTS["run"], python, "albert-tf inspect .")


def _usage_of_texts(task, parts):
    """Return the commands that print the answer for an example."""
    # The command line would take a leading hyphen for an option.
    parts = [excerpt(x).lstrip("- ") if isinstance(x, str) else x for x in parts]
    example = ", ".join(json.dumps(x, ensure_ascii=False) for x in parts)
    example = f"({example})" if len(parts) > 1 else example
    name = task or "fill-mask"
    python = f"""\
import albert_tf

answer = albert_tf.pipeline("{name}", ".")
print(answer({example}))"""
    texts = [x for part in parts for x in ([part] if isinstance(part, str) else part)]
    words = " ".join(map(shlex.quote, texts))
    option = "" if task else f" --task {name}"
    command = f"albert-tf predict .{option} {words}"
    if len(texts) > 1:
        form = "\\t".join(["%s"] * len(texts))
        command = f"printf '{form}\\n' {words} | albert-tf predict .{option}"
    return Usage(TEXTS["run"], python, command)
