"""Tags as tools spell them, and the tags such as B-PER that they stand for."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable

from albert_tf.data.labels.cleaning import visible
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.tagging import OUTSIDE, PREFIXES, split_tag

# The label of words whose tags have none.
WORD = "W"
# The form of a part of speech, or of a label without a prefix.
_PLAIN = re.compile("[!-~]+")
# A prefix and a label with a separator that no tool reads.
_OTHER_SEPARATOR = re.compile(r"[BIESMLU][^\w\s-].+|.+[^\w\s-][BIESMLU]", re.IGNORECASE)
# Spellings of O, in lower case.
_OUTSIDE_NAMES = frozenset(
    ("o", "0", "other", "others", "none", "null", "out", "outside", "_", "-")
)
# Tags that programs write for tokens which are not text, in brackets or by name.
_MARK = re.compile(r"\[[A-Za-z]+\]|</?[A-Za-z]+>")
_MARK_NAMES = frozenset(("CLS", "SEP", "PAD", "UNK", "START", "STOP", "BOS", "EOS"))
# The tag of the pieces of a word after its first.
PIECE = "X"
# Tags of nouns, verbs, particles and punctuation: such a file has parts of speech.
_PARTS_OF_SPEECH = frozenset(("n", "v", "u", "w", "NN", "VV", "NOUN", "VERB"))


@dataclasses.dataclass(frozen=True)
class TagReading:
    """The reading of the tags of a file, or of a head.

    Attributes:
        tags: dict, the tag such as B-PER or O for each name; a name that has no reading
            stands for itself, and `split_tag` refuses it.
        notes: list of strings, what was assumed. Empty for tags as this package writes
            them.
        are_plain: bool. The tags are labels without a prefix, such as parts of speech.
    """

    tags: dict[str, str]
    notes: list[str]
    are_plain: bool = False


def is_mark(name: str) -> bool:
    """Return whether a tag or a token is a mark of a program, such as [CLS]."""
    return _MARK.fullmatch(name) is not None


def is_tag(name: str) -> bool:
    """Return whether a name is O, or a prefix and a label such as B-PER."""
    try:
        return bool(split_tag(name))
    except AlbertError:
        return False


def read_tags(
    names: Iterable[str], may_be_plain: bool = True, joins_equal: bool = True
) -> TagReading:
    """Return the tags that names stand for; all names have one form.

    The forms, in this order: a prefix before the label (`B-PER`), also in lower case
    (`b-per`); after it (`PER-B`); a prefix alone (`B`, for words); a label alone.

    Args:
        names: strings, the distinct tags of a file or a head.
        may_be_plain: bool. Read labels without a prefix; else they have no reading.
        joins_equal: bool. Neighbours with the same label without a prefix are one
            entity if some tokens are outside of entities. `False` for words: each is an
            entity.
    """
    clean = {name: visible(name) for name in names}
    # In the order of the names, without repetition.
    distinct = list(dict.fromkeys(clean.values()))
    others = [x for x in distinct if x != OUTSIDE and not _may_be_outside(x)]
    tags, notes = _with_prefixes(others)
    are_plain = False
    if tags is not None:
        outside = [name for name in distinct if name not in tags]
    else:
        between = _outside_among_labels(distinct)
        outside = between + [name for name in distinct if is_mark(name)]
        labels = [name for name in distinct if name not in outside]
        # Words with slashes have labels in any script.
        has_form = not joins_equal or all(map(_PLAIN.fullmatch, labels))
        are_plain = may_be_plain and has_form and _are_labels(labels)
        tags = {}
        if are_plain:
            is_run = bool(between) and joins_equal
            tags, notes = _without_prefixes(labels, is_run)
    tags.update(dict.fromkeys(outside, OUTSIDE))
    spellings = [x for x in distinct if tags.get(x) == OUTSIDE and x != OUTSIDE]
    if spellings:
        notes.append(f"The tags {spellings} are read as O, outside of all entities.")
    readings = {name: tags.get(shown, shown) for name, shown in clean.items()}
    return TagReading(readings, notes, are_plain)


def _may_be_outside(name: str) -> bool:
    """Return whether a name is outside of entities, beside tags with a prefix."""
    is_name = name.casefold() in _OUTSIDE_NAMES or name.upper() in _MARK_NAMES
    return is_name or name.upper() == PIECE or is_mark(name)


# === The forms of tags ===


def _before(name: str) -> str | None:
    """Return the tag of a name such as B-PER or b_per, `None` if it is none."""
    is_tag = len(name) > 2 and name[1] in "-_" and name[0].upper() in PREFIXES
    return name[0].upper() + name[1:] if is_tag else None


def _after(name: str) -> str | None:
    """Return the tag of a name such as PER-B."""
    is_tag = len(name) > 2 and name[-2] in "-_" and name[-1].upper() in PREFIXES
    return f"{name[-1].upper()}-{name[:-2]}" if is_tag else None


def _alone(name: str) -> str | None:
    """Return the tag of a name such as B or B-, a tag of words."""
    prefix = name.rstrip("-_")
    return f"{prefix}-{WORD}" if prefix in PREFIXES else None


def _alone_in_lower_case(name: str) -> str | None:
    return None if name.upper() == name else _alone(name.upper())


def _with_prefixes(names: list[str]) -> tuple[dict[str, str] | None, list[str]]:
    """Return the tags of names that all have one form with prefixes, and notes."""
    before = _read_all(_before, names)
    after = _read_all(_after, names)
    if before is not None:
        if after is not None:
            _, label = split_tag(before[names[0]])
            return before, [
                f"Tags such as {names[0]!r} may have the prefix before the label or "
                f"after it. They are read with the label {label!r}."
            ]
        if all(name == tag for name, tag in before.items()):
            return before, []
        return before, _note(before, "a prefix in lower case")
    if after is not None:
        return after, _note(after, "the prefix after the label")
    alone = _read_all(_alone, names)
    # One of these letters is a part of speech, too.
    if alone is None and {"b", "e"} <= {*names}:
        alone = _read_all(_alone_in_lower_case, names)
    if alone is not None:
        return alone, _note(alone, "no label", "those of words, ")
    return None, []


def _read_all(
    form: Callable[[str], str | None], names: list[str]
) -> dict[str, str] | None:
    """Return the tag of each name; `None` if one has another form, or without names."""
    tags = {}
    for name in names:
        tag = form(name)
        if tag is None:
            return None
        tags[name] = tag
    return tags or None


def _note(tags: dict[str, str], problem: str, kind: str = "") -> list[str]:
    name = min(name for name, tag in tags.items() if name != tag)
    return [
        f"Tags such as {name!r} have {problem}. They are read as {kind}{tags[name]}."
    ]


# === Labels without a prefix ===


def _without_prefixes(
    labels: list[str], is_run: bool
) -> tuple[dict[str, str], list[str]]:
    """Return the tags of labels, each of a run of tokens or of one, and a note."""
    prefix, unit = ("I", "run of equal tags") if is_run else ("S", "token")
    note = (
        f"Tags such as {min(labels)!r} have no prefix. Each {unit} is an entity with "
        "its tag as label."
    )
    return {label: f"{prefix}-{label}" for label in labels}, [note]


def _are_labels(names: list[str]) -> bool:
    """Return whether names are labels or parts of speech, without a prefix."""
    return bool(names) and not any(_may_have_prefix(name) for name in names)


def _may_have_prefix(name: str) -> bool:
    """Return whether a name looks like a label with a prefix, or a suffix."""
    if _OTHER_SEPARATOR.fullmatch(name):
        return True
    if name[:1].isupper() and _before(name):
        return True
    return name[-1:].isupper() and bool(_after(name))


def _outside_among_labels(names: list[str]) -> list[str]:
    """Return the names that mean outside among labels without a prefix.

    `o` is a part of speech beside others. Beside O, all others but it are
    labels.
    """
    if OUTSIDE in names:
        return [OUTSIDE, *(x for x in names if x == "o")]
    if not _PARTS_OF_SPEECH.isdisjoint(names):
        return []
    found = [x for x in names if x.casefold() in _OUTSIDE_NAMES]
    return found if len(found) == 1 else []
