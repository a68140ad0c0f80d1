"""The heads of all tasks, a row each.

A new head is one row here, its tensor names in the table of each layout that has a
place for it, and its name in `heads` of the task that holds it.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Head:
    """What a head is called and how checkpoints keep it."""

    part: str  # Its name in every layout's table.
    attribute: str  # Of the task that holds it.
    reads: str  # "pooled" or "sequence", the output of the backbone it reads.
    axes: dict  # Attribute path of each weight to its axes, as in `weights`.
    # The task's arguments that the config keeps, see `head_fields`.
    fields: tuple = ()
    # The classes of transformers that have this head. The first is what a model is
    # saved as whose last head this is.
    architectures: tuple = ()
    # Heads of other tasks have the same tensor names: it is this one if
    # `architectures` in the config says so. Where the config says nothing, it is the
    # first row with these names.
    by_architecture: bool = False
    # The values of `problem_type` in the config with which the names are this head's;
    # without the field they are the first row's.
    problem_types: tuple = ()

    @property
    def has_classes(self):
        """Whether the number of outputs is the task's, not the backbone's."""
        return any("C" in axes for axes in self.axes.values())

    def may_be_in(self, config):
        """Whether a config does not say that the head is another task's."""
        problem = config.get("problem_type")
        if problem and self.problem_types and problem not in self.problem_types:
            return False
        given = config.get("architectures")
        if not self.by_architecture or not isinstance(given, list):
            return True
        return not given or not set(self.architectures).isdisjoint(map(str, given))


_DENSE = {"kernel": "HC", "bias": "C"}
_ROWS = (
    Head(
        part="masked_lm_head",
        attribute="masked_lm_head",
        reads="sequence",
        axes={
            "dense.kernel": "HW",
            "dense.bias": "W",
            "layer_norm.gamma": "W",
            "layer_norm.beta": "W",
            "bias": "V",
        },
        architectures=("AlbertForMaskedLM", "AlbertForPreTraining"),
    ),
    Head(
        part="sop_head",
        attribute="sop_head",
        reads="pooled",
        axes=_DENSE,
        architectures=("AlbertForPreTraining",),
    ),
    Head(
        part="classifier",
        attribute="output_dense",
        reads="pooled",
        axes=_DENSE,
        fields=(
            *("labels", "dropout", "activation"),
            *("multi_label", "thresholds", "pooling_mode"),
        ),
        architectures=("AlbertForSequenceClassification",),
        by_architecture=True,
        problem_types=("single_label_classification", "multi_label_classification"),
    ),
    Head(
        part="regressor",
        attribute="output_dense",
        reads="pooled",
        axes=_DENSE,
        fields=("dropout", "pooling_mode"),
        architectures=("AlbertForSequenceClassification",),
        by_architecture=True,
        problem_types=("regression",),
    ),
    Head(
        part="token_classifier",
        attribute="tag_dense",
        reads="sequence",
        axes=_DENSE,
        fields=("tags", "dropout"),
        architectures=("AlbertForTokenClassification",),
        by_architecture=True,
    ),
    # The first and the last token of an answer.
    Head(
        part="span_head",
        attribute="span_dense",
        reads="sequence",
        axes=_DENSE,
        architectures=("AlbertForQuestionAnswering",),
    ),
    Head(
        part="choice_head",
        attribute="score_dense",
        reads="pooled",
        axes=_DENSE,
        architectures=("AlbertForMultipleChoice",),
        by_architecture=True,
    ),
    # Whether a sentence belongs to the summary; only our own files have a place for it.
    Head(
        part="sentence_head",
        attribute="sentence_dense",
        reads="sequence",
        axes=_DENSE,
        fields=("dropout",),
    ),
)
HEADS = {head.part: head for head in _ROWS}


def heads_in(layout, names, config):
    """The heads that a file holds whole, a list of parts in the order of `HEADS`.

    Args:
        layout: a `Layout`.
        names: the names in the file, as in the tables.
        config: dict, the fields of the config.
    """
    found = {}
    pooler = layout.names(["pooler"])
    for part, head in HEADS.items():
        own = layout.names([part])
        needed = pooler if head.reads == "pooled" else []
        is_shared = any(own == layout.names([x]) for x in HEADS if x != part)
        guessed = is_shared and head.by_architecture and not config.get("architectures")
        if guessed and head.reads == "sequence" and not set(pooler).isdisjoint(names):
            # Beside a pooler, or what is left of one, it is the head that reads it.
            continue
        if own and {*own, *needed} <= set(names) and head.may_be_in(config):
            found.setdefault(frozenset(own), part)
    return list(found.values())


def architectures(parts):
    """The class of transformers with a place for all of some parts, in a list."""
    heads = [HEADS[part] for part in parts if part in HEADS]
    return [heads[-1].architectures[0] if heads else "AlbertModel"]
