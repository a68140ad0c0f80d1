"""Warnings about labelled examples before they are learned."""

import warnings
from typing import TYPE_CHECKING

from albert_tf_cli.shared.console import format_value
from albert_tf_cli.tasks.task import Examples, as_columns

if TYPE_CHECKING:
    from albert_tf.models import AlbertTask

# Without a warning: the least number of dev examples, and the most examples of the most
# frequent class per example of the rarest.
LEAST_DEV = 20
MOST_FREQUENT = 50


def warn_of_copies(parts: dict[str, Examples]) -> None:
    """Warn of training examples in dev and test, and of texts with other labels."""
    texts = {
        name: [repr(row) for row in zip(*as_columns(part.x), strict=True)]
        for name, part in parts.items()
    }
    train = set(texts["train"])
    for name in ("dev", "test"):
        if count := sum(text in train for text in texts.get(name, ())):
            warnings.warn(
                f"{count:,} of {len(texts[name]):,} {name} examples are training "
                "examples, too. The score is too high for new texts.",
                stacklevel=2,
            )
    if parts["train"].arguments.get("labels"):
        _warn_of_several_labels(texts["train"], parts["train"].y)


def _warn_of_several_labels(texts, labels):
    """Warn of equal texts with different labels."""
    labels_of: dict[str, set[str]] = {}
    for text, label in zip(texts, labels, strict=True):
        labels_of.setdefault(text, set()).add(repr(label))
    if several := [text for text, names in labels_of.items() if len(names) > 1]:
        warnings.warn(
            f"{len(several):,} training texts have different labels, such as "
            f"{several[0][1:-1].rstrip(','):.60}: "
            f"{' and '.join(sorted(labels_of[several[0]]))}.",
            stacklevel=3,
        )


def warn_of_rare_class(counts: dict[str, int], model: "AlbertTask") -> None:
    """Warn if a model may never predict the rarest class."""
    if not counts:
        return
    rarest = min(counts, key=lambda label: counts[label])
    most = max(counts, key=lambda label: counts[label])
    if counts[most] < MOST_FREQUENT * counts[rarest]:
        return
    remedy = "Add examples of it"
    if model.takes_class_weight:
        remedy += ", or pass --class-weight balanced and --monitor macro_f1"
    warnings.warn(
        f"The class {rarest!r} has {counts[rarest]:,} training examples, {most!r} has "
        f"{counts[most]:,}. The model may never predict the rare class. {remedy}.",
        stacklevel=2,
    )


def warn_of_dev(dev: Examples, counts: dict[str, int]) -> None:
    """Warn if dev hardly distinguishes good epochs from bad ones."""
    if len(dev) < LEAST_DEV:
        warnings.warn(
            f"Only {len(dev)} dev examples choose the epoch. A single one can change "
            f"the score by {1 / len(dev):.0%}. Pass --dev with 100 or more.",
            stacklevel=2,
        )
    if missing := [label for label, count in counts.items() if not count]:
        warnings.warn(
            f"{len(missing)} of {len(counts)} classes have no dev example: "
            f"{format_value(missing)}. Mistakes on them do not change the "
            "score. Pass --dev with examples of each class.",
            stacklevel=2,
        )
