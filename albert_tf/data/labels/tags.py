"""Tags such as B-PER: their names, and those of a sequence with entities."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from albert_tf.data.labels.cleaning import visible
from albert_tf.data.labels.text_spans import Span
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.inputs import as_label, as_list, complete
from albert_tf_lite.tagging import OUTSIDE

# The prefixes that each scheme writes. More schemes are read.
SCHEMES = {"BIO": "BI", "BIOES": "BIES"}


def tag_names(labels: Sequence[str], scheme: str = "BIO") -> list[str]:
    """Return the tags of distinct labels: `O`, then those of each label."""
    if scheme not in SCHEMES:
        raise AlbertError(
            f"`scheme` must be one of {list(SCHEMES)}. Received: {scheme}"
        )
    names = [] if isinstance(labels, str) else as_list(labels, "labels")
    names = [str(as_label(name)) for name in complete(names, "labels")]
    if OUTSIDE in names:
        raise AlbertError(
            f"`labels` are kinds of entities, without O and prefixes. Received "
            f"{labels!r}. Pass tags in the order of the outputs as `tags=`."
        )
    # Names that look alike are not distinct.
    if not names or "" in names or len(set(map(visible, names))) < len(names):
        raise AlbertError(
            "`labels` should be a list of distinct names of entity types, such as "
            f'["PER", "LOC", "ORG"]. Received: {labels!r:.200}'
        )
    tags = [OUTSIDE]
    for name in names:
        tags.extend(f"{prefix}-{name}" for prefix in SCHEMES[scheme])
    return tags


def spans_to_tags(spans: Iterable[Span], length: int, scheme: str = "BIO") -> list[str]:
    """Return the tags of a sequence of tokens with the entities `spans`.

    Args:
        spans: (start, end, label) in tokens, which do not overlap.
        length: int. Number of tokens.
        scheme: `"BIO"` or `"BIOES"`.

    Returns:
        A list of `length` strings.

    Example:

    >>> spans_to_tags([(0, 2, "PER")], 3)
    ['B-PER', 'I-PER', 'O']
    """
    tags = [OUTSIDE] * length
    for start, end, label in spans:
        for position, prefix in enumerate(prefixes_of(end - start, scheme), start):
            tags[position] = f"{prefix}-{label}"
    return tags


def prefixes_of(length: int, scheme: str) -> str:
    """Return the prefixes of an entity of `length` tokens, such as `"BIE"`."""
    if scheme == "BIO":
        return "B" + "I" * (length - 1)
    return "S" if length == 1 else "B" + "I" * (length - 2) + "E"
