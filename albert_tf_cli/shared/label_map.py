"""The option --label-map: the labels of files, and those of a checkpoint or model."""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from albert_tf_lite.errors import AlbertError, listed

_EXAMPLE = "such as 1=好评,0=差评: a label of the file, =, and that of the model"
# Keys of answers whose values are labels.
_LABEL_KEYS = ("label", "entity_group")
# Names of the same class, in heads of two and of three classes.
_SYNONYMS = (
    {"0", "-1", "负", "负面", "负向", "负类", "消极", "差", "差评", "坏", "坏评"}
    | {"不满意", "不好", "踩", "neg", "negative", "bad"},
    {"1", "正", "正面", "正向", "正类", "积极", "好", "好评", "满意", "赞", "pos"}
    | {"positive", "good"},
    {"0", "不同", "不相同", "不相似", "否", "different", "no"},
    {"1", "相同", "相似", "同", "是", "same", "yes"},
    {"蕴含", "entailment", "entails"},
    {"中立", "neutral"},
    {"矛盾", "contradiction", "contradicts"},
)


def parse_label_map(text: str | None) -> dict[str, str]:
    """Return the label of the model for each label of a file: "1=好评,0=差评"."""
    if text is None:
        return {}
    label_map: dict[str, str] = {}
    for pair in re.split("[,，]", text):
        first, mark, second = (part.strip() for part in pair.partition("="))
        if not (first and mark and second):
            raise AlbertError(f"--label-map has {pair!r}. Expected pairs {_EXAMPLE}.")
        if first in label_map:
            raise AlbertError(f"--label-map has the label {first!r} twice.")
        if second in label_map.values():
            raise AlbertError(
                f"--label-map gives several labels the name {second!r}, which would "
                "merge them. Merge classes in the file itself."
            )
        label_map[first] = second
    return label_map


def check_label_map(
    label_map: Mapping[str, str],
    labels: Iterable[str],
    path: str,
    classes: Collection[str] | None,
) -> None:
    """Raise if a map does not fit the labels of a file.

    `classes` are those of the model. `None` is a file that decides them, which must
    have all labels of the map; another may lack some.
    """
    if not label_map:
        return
    labels = set(labels)
    if classes is None and (missing := [x for x in label_map if x not in labels]):
        raise AlbertError(
            f"--label-map has the labels {listed(missing, 10)}, but {path} has "
            f"{listed(sorted(labels), 10)}. Expected pairs {_EXAMPLE}."
        )
    check_new_names(label_map, classes)
    renamed = {label_map[label] for label in labels & label_map.keys()}
    if merged := sorted(renamed & (labels - label_map.keys())):
        raise AlbertError(
            f"--label-map would merge labels of {path} into {listed(merged, 10)}, "
            "which it has already. Merge classes in the file itself."
        )


def check_new_names(
    label_map: Mapping[str, str], classes: Collection[str] | None
) -> None:
    """Raise if a map names other classes than those of a model."""
    if classes is None:
        return
    if unknown := [x for x in label_map.values() if x not in classes]:
        raise AlbertError(
            f"--label-map names {listed(unknown, 10)}, but the classes of the model "
            f"are {listed(list(classes), 10)}. Expected pairs {_EXAMPLE}."
        )


def rename_answer(answer: Any, names: Mapping[str, str]) -> Any:
    """Return an answer of a pipeline, or a list of them, with other labels."""
    if isinstance(answer, list):
        return [rename_answer(part, names) for part in answer]
    if not isinstance(answer, dict):
        return answer
    renamed = {}
    for key, value in answer.items():
        if key in _LABEL_KEYS and isinstance(value, str):
            renamed[key] = names.get(value, value)
        else:
            renamed[key] = rename_answer(value, names)
    return renamed


def likely_label_map(
    labels: Collection[str], classes: Collection[str]
) -> dict[str, str]:
    """Return the class that each label seems to mean; empty if that is in doubt."""
    if len(labels) != len(classes) or set(labels) == set(classes):
        return {}
    label_map: dict[str, str] = {}
    for name in classes:
        synonyms = set().union(*(x for x in _SYNONYMS if name.lower() in x))
        same = [label for label in labels if label.lower() in synonyms]
        if len(same) != 1:
            return {}
        label_map[same[0]] = name
    return label_map if len(label_map) == len(classes) else {}


def likely_option(labels: Collection[Any], classes: Collection[str]) -> str:
    """Return a sentence with the option for labels that seem to mean the classes.

    It is empty if they do not, and else begins with a space.
    """
    names = [label for label in labels if isinstance(label, str)]
    label_map = likely_label_map(names, classes)
    return f" {_sentence(label_map)}." if label_map else ""


def head_option(
    checkpoint: str, config: str | None, task: str, arguments: Mapping[str, Any]
) -> str:
    """Return a line about a head whose classes the labels of a file seem to mean.

    It is empty if there is none, or a head with these labels.

    Args:
        checkpoint: the name of the checkpoint, or CHECKPOINT:HEAD.
        config: optional path of its config file.
        task: the name of the task.
        arguments: dict, `labels` and `pairs` of the examples.
    """
    from albert_tf.checkpoints import open_checkpoint
    from albert_tf.models import TASKS

    model_class = TASKS[task]
    (part,) = model_class.heads
    labels, pairs = arguments["labels"], arguments.get("pairs", False)
    opened = open_checkpoint(checkpoint, config=config)
    line = ""
    for view in (opened, *opened.views().values()):
        fields = view.head_config(part)
        classes = [str(name) for name in fields.get("labels") or ()]
        if set(classes) == set(labels):
            return ""
        takes_these = fields.get("pairs", False) == pairs
        label_map = likely_label_map(labels, classes)
        if label_map and takes_these and model_class.has_heads_in(view) and not line:
            line = (
                f"{view.name if view.head is None else f'{view.name}:{view.head}'} "
                f"classifies {' and '.join(classes)}. {_sentence(label_map)} to start "
                "from its head."
            )
    return line


def _sentence(label_map: Mapping[str, str]) -> str:
    """Return the beginning of a sentence about a map, as words and as the option."""
    words = " and ".join(f"{label} is {name}" for label, name in label_map.items())
    pairs = ",".join(f"{label}={name}" for label, name in label_map.items())
    return f"If {words}, pass --label-map {pairs}"
