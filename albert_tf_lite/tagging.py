"""Tags such as B-PER and the entities that they encode, in NumPy."""

import re
import unicodedata
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from albert_tf_lite.errors import AlbertError
from albert_tf_lite.inputs import as_texts
from albert_tf_lite.spans import log_softmax

OUTSIDE = "O"
# Prefixes of BMES and BILOU as those of BIOES: begin, inside, end, single.
PREFIXES = {"B": "B", "I": "I", "M": "I", "E": "E", "L": "E", "S": "S", "U": "S"}
# Below any sum of log-probabilities of a text.
_NEVER = np.float32(-1e9)


def split_tag(tag: str) -> tuple[str, str]:
    """Return the prefix (`B`, `I`, `E`, `S` or `O`) and the label of a tag."""
    if tag == OUTSIDE:
        return OUTSIDE, ""
    if len(tag) > 2 and tag[1] in "-_" and tag[0] in PREFIXES:
        return PREFIXES[tag[0]], tag[2:]
    if tag == "X":
        hint = (
            "Tools write X for the pieces of a word after the first: write whole "
            "words, or replace X by O or by the I- tag of the word. "
        )
    else:
        hint = _hint(tag)
    raise AlbertError(
        f"{tag!r:.80} is not a tag. {hint}Expected O, or a prefix and a label such as "
        f"B-PER. The prefixes are {' '.join(PREFIXES)}. Write words without a label as "
        "B-W, M-W, E-W and S-W, and parts of speech as S-n."
    )


def _hint(tag):
    """Return a sentence with the tag that another spelling stands for, if any."""
    # Full-width letters and signs, too.
    tag = unicodedata.normalize("NFKC", tag)
    first, last = tag[:1].upper(), tag[-1:].upper()
    if first in PREFIXES and re.fullmatch(r"\w\W.+|\w_.+", tag):
        meant = f"{first}-{tag[2:]}"
    elif last in PREFIXES and re.fullmatch(r".+\W\w|.+_\w", tag):
        meant = f"{last}-{tag[:-2]}"
    elif tag.lower() in ("o", "0", "other", "none"):
        meant = OUTSIDE
    else:
        return ""
    return f"Did you mean {meant:.80}? All tags of a file have one form. "


def tags_to_spans(tags: Iterable[str]) -> list[tuple[int, int, str]]:
    """Return the spans of a sequence of tags, in tokens.

    As in the script of CoNLL-2000, an inside tag without a begin tag begins an entity,
    so IOB1 and IO are read, too.

    Args:
        tags: strings in BIO, BIOES, BMES, BILOU, IOB1 or IO.

    Returns:
        A list of (start, end, label).

    Raises:
        AlbertError: if a string is not a tag.

    Example:

    >>> tags_to_spans(["B-PER", "I-PER", "O", "B-LOC"])
    [(0, 2, 'PER'), (3, 4, 'LOC')]
    """
    spans = []
    pairs = list(map(split_tag, as_texts(tags, "tags")))
    start, label = 0, ""
    for position, (prefix, name) in enumerate([*pairs, (OUTSIDE, "")]):
        continues = prefix in "IE" and name == label
        if label and not continues:
            spans.append((start, position, label))
            label = ""
        if prefix != OUTSIDE and not continues:
            start, label = position, name
        if prefix in "ES":
            spans.append((start, position + 1, label))
            label = ""
    return spans


class Tagging:
    """Decoder of tags such as `O` and `B-PER`, in the order of the outputs.

    A model of words or parts of speech may have no `O`. Then it stands after the tags,
    for the edges of a text, and no token has it.
    """

    def __init__(self, tags: Sequence[str]):
        self.has_outside = OUTSIDE in tags
        self.tags = list(tags) if self.has_outside else [*tags, OUTSIDE]
        self.pairs = [split_tag(tag) for tag in self.tags]
        self.outside = self.tags.index(OUTSIDE)
        # [tags, tags]: whether the second may follow the first.
        self.allowed = np.array(
            [[self._allows(a, b) for b in self.pairs] for a in self.pairs]
        )

    def entities(
        self,
        logits: np.ndarray,
        starts: ArrayLike,
        ends: ArrayLike,
        temperature: float = 1.0,
    ) -> list[tuple[int, int, str, float]]:
        """Return (start, end, label, score) of the entities by the best valid tags.

        `logits` is a float32 array [tokens, tags]; `starts` and `ends` are the
        characters of each token. A token within the token before it is skipped. The
        score is the mean probability of the tags, whose logits `temperature` divides.
        """
        begins, stops = without_overlap(starts, ends)
        # Tokens of at least one character.
        kept = np.flatnonzero(begins < stops)
        scores = self._log_probabilities(logits[kept])
        tags = self._best(scores)
        if temperature != 1:
            scores = self._log_probabilities(logits[kept] / temperature)
        chosen = np.exp(scores[np.arange(len(tags)), tags]).astype("float64")
        entities = []
        for first, end, label in tags_to_spans(self.tags[tag] for tag in tags):
            start, stop = int(begins[kept[first]]), int(stops[kept[end - 1]])
            score = float(np.float32(chosen[first:end].mean()))
            entities.append((start, stop, label, score))
        return entities

    def _log_probabilities(self, logits):
        """Return the log-probabilities of the tags, also of a missing `O`."""
        scores = log_softmax(logits)
        if self.has_outside:
            return scores
        return np.pad(scores, [(0, 0), (0, 1)], constant_values=_NEVER)

    def _allows(self, first, second):
        """Return whether the second tag (prefix, label) may follow the first."""
        if continues(first, second):
            return True
        prefix, label = first
        is_open = prefix in "BI" and ("E", label) in self.pairs
        # A label without a B tag begins with I.
        has_begin = ("B", second[1]) in self.pairs
        begins = second[0] != "E" and (second[0] != "I" or not has_begin)
        return begins and not is_open

    def _best(self, scores):
        """Find the tags [tokens] with the highest sum of scores [tokens, tags]."""
        transitions = np.where(self.allowed, np.float32(0), _NEVER)
        edge = np.full(scores.shape[1], _NEVER)
        edge[self.outside] = 0
        # Outside before the text and after it.
        best, came_from = edge, []
        for step in (*scores, edge):
            paths = best[:, np.newaxis] + transitions
            came_from.append(paths.argmax(axis=0))
            best = paths.max(axis=0) + step
            # Sums over a long text would lose the differences, which decide.
            best = best - best.max()
        tag, tags = self.outside, []
        for before in reversed(came_from[1:]):
            tag = before[tag]
            tags.append(tag)
        return np.array(tags[::-1], int)


def continues(first: tuple[str, str], second: tuple[str, str]) -> bool:
    """Return whether two tags (prefix, label) in a row are of the same entity."""
    return first[0] in "BI" and second[0] in "IE" and first[1] == second[1]


def without_overlap(
    starts: ArrayLike, ends: ArrayLike
) -> tuple[np.ndarray, np.ndarray]:
    """Return offsets in which each character belongs to its first token only."""
    begins, stops = np.array(starts, int), np.array(ends, int)
    begins = np.maximum(begins, np.concatenate([[0], stops])[:-1])
    return begins, np.maximum(begins, stops)
