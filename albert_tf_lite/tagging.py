"""Decode tag scores to entities by the rules of a tagging scheme, in NumPy."""

from collections.abc import Sequence
from typing import Any

import numpy as np

OUTSIDE = "O"
# Prefixes of BMES and BILOU as those of BIOES: begin, inside, end, single.
PREFIXES = {"B": "B", "I": "I", "M": "I", "E": "E", "L": "E", "S": "S", "U": "S"}
# Below any sum of log-probabilities of a text.
_NEVER = np.float32(-1e9)


class Tagging:
    """Decoder of tags such as `O` and `B-PER`, in the order of the outputs."""

    def __init__(self, tags: Sequence[str]):
        self._pairs = [_split(tag) for tag in tags]
        self._outside = tags.index(OUTSIDE)
        rule = [[self._rule(a, b) for b in self._pairs] for a in self._pairs]
        self._transitions = np.array(rule, "float32")

    def entities(
        self, logits: np.ndarray, starts: Any, ends: Any
    ) -> list[tuple[int, int, str, float]]:
        """Return (start, end, label, score) of the entities by the best valid tags.

        `logits` is a float32 array [tokens, tags]; `starts` and `ends` are the
        characters of each token. A token within the token before it is skipped. The
        score is the mean probability of the tags.
        """
        starts, ends = without_overlap(starts, ends)
        kept = np.flatnonzero(starts < ends)
        scores = _log_softmax(logits[kept])
        tags = self._best(scores)
        entities = []
        for first, last in self._runs(tags):
            chosen = np.arange(first, last + 1), tags[first : last + 1]
            score = np.exp(scores[chosen]).astype("float64").mean()
            start, end = int(starts[kept[first]]), int(ends[kept[last]])
            label = self._pairs[tags[first]][1]
            entities.append((start, end, label, float(np.float32(score))))
        return entities

    def _rule(self, first, second):
        """Return 0 if the second tag may follow the first, else `_NEVER`."""
        if _continues(first, second):
            return 0
        prefix, label = first
        is_open = prefix in "BI" and ("E", label) in self._pairs
        # A label without a B tag begins with I.
        has_begin = ("B", second[1]) in self._pairs
        begins = second[0] != "E" and (second[0] != "I" or not has_begin)
        return 0 if begins and not is_open else _NEVER

    def _best(self, scores):
        """Find the tags [tokens] with the highest sum of scores [tokens, tags]."""
        edge = np.full(scores.shape[1], _NEVER)
        edge[self._outside] = 0
        # Outside before the text and after it.
        best, came_from = edge, []
        for step in (*scores, edge):
            paths = best[:, np.newaxis] + self._transitions
            came_from.append(paths.argmax(axis=0))
            best = paths.max(axis=0) + step
            # Sums over a long text would lose the differences, which decide.
            best = best - best.max()
        tag, tags = self._outside, []
        for before in reversed(came_from[1:]):
            tag = before[tag]
            tags.append(tag)
        return np.array(tags[::-1], int)

    def _runs(self, tags):
        """Return the first and the last token of each entity."""
        runs = []
        for i, tag in enumerate(tags):
            if i and _continues(self._pairs[tags[i - 1]], self._pairs[tag]):
                runs[-1][1] = i
            elif tag != self._outside:
                runs.append([i, i])
        return runs


def without_overlap(starts: Any, ends: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return offsets in which each character belongs to its first token only."""
    starts, ends = np.array(starts, int), np.array(ends, int)
    starts = np.maximum(starts, np.concatenate([[0], ends])[:-1])
    return starts, np.maximum(starts, ends)


def _split(tag):
    return (OUTSIDE, "") if tag == OUTSIDE else (PREFIXES[tag[0]], tag[2:])


def _continues(first, second):
    """Return whether two tags (prefix, label) in a row are of the same entity."""
    return first[0] in "BI" and second[0] in "IE" and first[1] == second[1]


def _log_softmax(logits):
    logits = logits - logits.max(axis=-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
