"""The heads of all tasks, one row each, and the config fields that describe them.

A new head is one row here, its tensor names in the table of each layout that has a
place for it, and its name in `heads` of the task that holds it.
"""

import dataclasses
import math
from collections.abc import Iterable
from typing import Any

import keras

from albert_tf.checkpoints.layout import CheckpointError, Layout


@dataclasses.dataclass(frozen=True)
class Head:
    """The name of a head, its weights, and its description in a config file."""

    part: str  # Its name in the table of each layout.
    attribute: str  # The attribute of the task that holds it.
    reads: str  # The output of the backbone that it reads: "pooled" or "sequence".
    # The classes of transformers with this head. A model with it as its last head is
    # saved as the first one.
    architectures: tuple[str, ...] = ()
    problem_types: tuple[str, ...] = ()  # Values of `problem_type` in the config.
    fields: tuple[str, ...] = ()  # Arguments of the task that the config file keeps.
    weights: tuple[str, ...] = ("kernel", "bias")  # Attribute paths.

    def reads_pooler(self, pooling_mode: str | None) -> bool:
        """Return whether the head reads the pooler in a task of a pooling mode."""
        is_cls = (pooling_mode or "cls") == "cls"
        return self.reads == "pooled" and (is_cls or "pooling_mode" not in self.fields)

    def fits(self, config: dict[str, Any]) -> bool:
        """Return whether the head can be the one that a config describes."""
        problem, names = config.get("problem_type"), config.get("architectures")
        if problem and self.problem_types and problem not in self.problem_types:
            return False
        return not names or not set(self.architectures).isdisjoint(names)


_ROWS = (
    Head(
        part="masked_lm_head",
        attribute="masked_lm_head",
        reads="sequence",
        architectures=("AlbertForMaskedLM", "AlbertForPreTraining"),
        weights=(
            "dense.kernel",
            "dense.bias",
            "layer_norm.gamma",
            "layer_norm.beta",
            "bias",
        ),
    ),
    Head("sop_head", "sop_head", "pooled", ("AlbertForPreTraining",)),
    Head(
        part="classifier",
        attribute="output_dense",
        reads="pooled",
        architectures=("AlbertForSequenceClassification",),
        problem_types=("single_label_classification", "multi_label_classification"),
        fields=(
            "labels",
            "dropout",
            "activation",
            "problem_type",
            "thresholds",
            "pairs",
            "pooling_mode",
            "temperature",
        ),
    ),
    Head(
        part="regressor",
        attribute="output_dense",
        reads="pooled",
        architectures=("AlbertForSequenceClassification",),
        problem_types=("regression",),
        fields=("dropout", "pairs", "pooling_mode"),
    ),
    Head(
        part="token_classifier",
        attribute="tag_dense",
        reads="sequence",
        architectures=("AlbertForTokenClassification",),
        fields=("tags", "dropout", "temperature"),
    ),
    # The first and the last token of an answer.
    Head("span_head", "span_dense", "sequence", ("AlbertForQuestionAnswering",)),
    Head("choice_head", "score_dense", "pooled", ("AlbertForMultipleChoice",)),
    # The score of a sentence in a summary. Only our own files have a place for it.
    Head("sentence_head", "sentence_dense", "sequence", fields=("dropout",)),
)
HEADS = {head.part: head for head in _ROWS}


def heads_in(layout: Layout, names: Iterable[str], config: dict[str, Any]) -> list[str]:
    """Return the heads that are complete in a file, in the order of `HEADS`.

    If several heads have the same tensor names, the config decides. A config without
    the fields stands for the first of these heads.
    """
    names, pooler = set(names), set(layout.names(["pooler"]))
    # The first head of each set of tensors.
    parts: dict[frozenset, str] = {}
    for head in _ROWS:
        tensors = frozenset(layout.names([head.part]))
        needed = set(tensors)
        if head.reads_pooler(config.get("classifier_pooling")):
            needed |= pooler
        if not tensors or not needed <= names:
            continue
        if _is_shared(layout, tensors):
            if not head.fits(config):
                continue
            # Beside a pooler, it is a head that reads the pooler.
            has_pooler = not pooler.isdisjoint(names)
            is_unnamed = not config.get("architectures")
            if head.reads == "sequence" and has_pooler and is_unnamed:
                continue
        parts.setdefault(tensors, head.part)
    return list(parts.values())


def _is_shared(layout: Layout, tensors: frozenset[str]) -> bool:
    """Return whether several heads have these names of tensors in a layout."""
    parts = [part for part in HEADS if tensors == set(layout.names([part]))]
    return len(parts) > 1


def missing_in(layout: Layout, names: Iterable[str]) -> dict[str, list[str]]:
    """Return the tensors that a file lacks of each head of which it has a part.

    Heads with equal tensor names are one, the first of them.
    """
    names, seen = set(names), set()
    missing = {}
    for part in HEADS:
        tensors = frozenset(layout.names([part]))
        if tensors in seen or names.isdisjoint(tensors):
            continue
        seen.add(tensors)
        if not tensors <= names:
            missing[part] = sorted(tensors - names)
    return missing


# === Config fields, partly with the names of transformers ===

# The fields that describe a head, see `write_head`.
HEAD_FIELDS = (
    "architectures",
    "id2label",
    "label2id",
    "problem_type",
    "classifier_activation",
    "classifier_dropout_prob",
    "classifier_thresholds",
    "classifier_pairs",
    "classifier_pooling",
    "classifier_temperature",
)


def read_head(part: str, config: dict[str, Any], source: str) -> dict[str, Any]:
    """Return the arguments of a task that a config, called `source`, has for a head."""
    dropout = config.get("classifier_dropout_prob")
    if dropout is None:
        dropout = 0.1
    elif type(dropout) not in (int, float) or not 0 <= dropout <= 1:
        raise CheckpointError(
            f"{source} has classifier_dropout_prob={dropout!r:.80}. Expected a number "
            "from 0 to 1."
        )
    temperature = config.get("classifier_temperature", 1.0)
    if type(temperature) not in (int, float) or not 0 < temperature < math.inf:
        raise CheckpointError(
            f"{source} has classifier_temperature={temperature!r:.80}. Expected a "
            "positive number."
        )
    labels = _read_labels(config, source)
    arguments = {
        "labels": labels,
        "tags": labels,
        "dropout": dropout,
        "activation": keras.activations.get(config.get("classifier_activation")),
        "problem_type": config.get("problem_type"),
        "thresholds": config.get("classifier_thresholds"),
        "pairs": config.get("classifier_pairs", False),
        "pooling_mode": config.get("classifier_pooling", "cls"),
        "temperature": temperature,
    }
    return {field: arguments[field] for field in HEADS[part].fields}


def _read_labels(config: dict[str, Any], source: str) -> list[str] | None:
    """Return the labels in a config, `None` for none or those of transformers."""
    names, ids = config.get("id2label"), config.get("label2id")
    if names is None:
        return None
    numbers = [str(i) for i in range(len(names))]
    if not isinstance(names, dict) or set(names) != set(numbers):
        raise CheckpointError(
            f"{source} must name each class under id2label, numbered from 0 on. Found: "
            f"{names!r:.200}"
        )
    if names == label_fields(len(names))["id2label"]:
        return None
    labels = [names[number] for number in numbers]
    for number, name in zip(numbers, labels, strict=True):
        stored = ids.get(name, number) if isinstance(ids, dict) else number
        # Several outputs may have one name, such as O.
        if names.get(str(stored)) != name:
            raise CheckpointError(
                f"{source} names class {number} {name!r} under id2label, but label2id "
                f"has {stored!r} for it. Correct one of them."
            )
    return labels


def write_head(part: str, count: int, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the config fields of a head with `count` classes; see `read_head`."""
    fields = label_fields(count, arguments.get("labels") or arguments.get("tags"))
    if problems := HEADS[part].problem_types:
        problem = arguments.get("problem_type") or problems[0]
        # transformers refuses this type with one output, because softmax makes it 1.
        if not (count == 1 and problem == "single_label_classification"):
            fields["problem_type"] = problem
    activation = keras.activations.serialize(
        keras.activations.get(arguments.get("activation"))
    )
    if activation != "linear":
        fields["classifier_activation"] = activation
    if "dropout" in arguments:
        fields["classifier_dropout_prob"] = arguments["dropout"]
    if arguments.get("thresholds"):
        fields["classifier_thresholds"] = list(arguments["thresholds"])
    if arguments.get("pairs"):
        fields["classifier_pairs"] = True
    if arguments.get("pooling_mode", "cls") != "cls":
        fields["classifier_pooling"] = arguments["pooling_mode"]
    if arguments.get("temperature", 1.0) != 1.0:
        fields["classifier_temperature"] = arguments["temperature"]
    return fields


def label_fields(count: int, labels: list | None = None) -> dict[str, Any]:
    """Return the config fields of classes; unnamed ones are called `LABEL_0` etc."""
    names = [f"LABEL_{i}" for i in range(count)]
    if labels:
        names = [str(label) for label in labels]
    return {
        "id2label": {str(i): name for i, name in enumerate(names)},
        "label2id": {name: i for i, name in enumerate(names)},
    }
