"""Open the records of labelled texts."""

import os
from typing import Any

import numpy as np

from albert_tf.pretraining.records.records_directory import (
    MANIFEST,
    Records,
    Shard,
    naming_damage,
)
from albert_tf.pretraining.records.shard_files import (
    LABELLED_ARRAYS,
    TARGETS,
    Arrays,
)
from albert_tf_lite.errors import AlbertError

# A text or token without a class or position.
IGNORED = -1


class LabelledRecords(Records):
    """The records of labelled texts, all of which are read into memory.

    Args:
        path: string, a directory written by `make_labelled_data`.

    Attributes:
        manifest: dict, the manifest.
        heads: dict by name, see `make_labelled_data`.
        sets: list of dicts, the `set`, `head` and `labels` of each shard.
        set: int array [texts], the index of the set of each text.
        texts: dict of arrays: `lengths`, `second_starts`, `starts` (index of the first
            token) [texts], and `token_ids` [tokens].
        pairs: such a dict of similar texts, in consecutive rows; `None` without any.
        targets: dict by kind (`classes`, `tags`, `spans`, `scores`) of arrays, -1 (of
            scores NaN) for texts of another kind. Classes and tags are numbered over
            all heads.
        weights: float array [texts], how often an epoch has each text. The share of a
            set is the square root of its size.

    Raises:
        FileNotFoundError: if there are no records, or a shard is missing.
        AlbertError: if a shard is damaged, or the records are incomplete or not
            labelled.
    """

    def __init__(self, path: str | os.PathLike):
        super().__init__(path)
        if not self.manifest:
            raise FileNotFoundError(
                f"There are no labelled records in {path}. Make them by `albert-tf "
                "pretrain-data --labelled`."
            )
        if "heads" not in self.manifest:
            raise AlbertError(
                f"{path} holds text without labels. Make labelled records by "
                "`albert-tf pretrain-data --labelled`."
            )
        with naming_damage(self.folder / MANIFEST):
            self._open()

    def _open(self) -> None:
        """Read the shards, and set the attributes."""
        self.heads = self.manifest["heads"]
        shards = self.read_shards(LABELLED_ARRAYS)
        self.sets = [entry for entry in self.manifest["shards"] if "set" in entry]
        # The shard of similar texts, if there is one, is the last.
        labelled, similar = shards[: len(self.sets)], shards[len(self.sets) :]
        self.texts = _joined(labelled)
        self.pairs = _joined(similar) if similar else None
        counts = [len(arrays["lengths"]) for arrays in labelled]
        self.set = np.repeat(np.arange(len(counts), dtype="int32"), counts)
        self.targets = {
            kind: self._joined_targets(kind, labelled)
            for kind in TARGETS.values()
            if self.heads_of(kind)
        }
        self.weights = self._weights()
        for kind in self.targets:
            # Raises if the labels of a set or a head are damaged.
            self.allowed(kind)

    def __len__(self) -> int:
        """Return the number of texts."""
        return len(self.set)

    def heads_of(self, kind: str) -> dict[str, int]:
        """Return the number of outputs of each head of a kind, such as `"tags"`."""
        return {
            name: 1 if kind in ("scores", "spans") else len(_outputs(head))
            for name, head in self.heads.items()
            if TARGETS[head["task"]] == kind
        }

    def allowed(self, kind: str) -> np.ndarray:
        """Return the outputs of a kind that each set may have, bool [sets, outputs].

        Sets of another kind may have all.

            set         a  b  c     of the heads x (2 outputs) and y (3), c of neither
            head        x  y  -
            allowed     1 1 0 0 0
                        0 0 1 0 1   y's second label is not among those of b
                        1 1 1 1 1
        """
        firsts = _first_outputs(self.heads_of(kind))
        count = sum(self.heads_of(kind).values())
        allowed = np.ones((len(self.sets), count), bool)
        for number, entry in enumerate(self.sets):
            if entry["head"] in firsts:
                own_outputs = self._allowed_in_head(kind, entry)
                first = firsts[entry["head"]]
                allowed[number] = False
                allowed[number, first : first + len(own_outputs)] = own_outputs
        return allowed

    def _allowed_in_head(self, kind: str, entry: Shard) -> np.ndarray:
        """Return the outputs of its head that a set may have, bool [outputs]."""
        count, labels = self.heads_of(kind)[entry["head"]], entry["labels"]
        if labels is None or kind not in ("classes", "tags"):
            return np.ones(count, bool)
        outputs = _outputs(self.heads[entry["head"]])
        if kind == "classes":
            return np.isin(outputs, labels)
        # A tag is O, or B- or I- and a label.
        return np.array([tag == "O" or tag[2:] in labels for tag in outputs])

    def _joined_targets(self, kind: str, shards: list[Arrays]) -> np.ndarray:
        """Return the targets of a kind of all texts."""
        firsts = _first_outputs(self.heads_of(kind))
        dtype, nothing = ("float32", np.nan) if kind == "scores" else ("int32", IGNORED)
        values = []
        for arrays, entry in zip(shards, self.sets, strict=True):
            if kind not in arrays:
                count = len(arrays["token_ids" if kind == "tags" else "lengths"])
                shape = (count, 2) if kind == "spans" else (count,)
                values.append(np.full(shape, nothing, dtype))
                continue
            targets = arrays[kind].astype(dtype)
            if kind in ("classes", "tags"):
                # Numbered over all heads of the kind.
                is_label = targets >= 0
                targets = np.where(is_label, targets + firsts[entry["head"]], IGNORED)
            values.append(targets)
        return np.concatenate(values)

    def _weights(self) -> np.ndarray:
        """Return how often an epoch has each text.

        The texts of a set share its weight, those of a balanced one class by class.
        """
        shares, sizes = [], []
        for number, entry in enumerate(self.sets):
            rows = np.flatnonzero(self.set == number)
            groups = np.zeros(len(rows), int)
            if entry["balanced"]:
                classes = self.targets["classes"][rows]
                _, groups = np.unique(classes, return_inverse=True)
            counts = np.bincount(groups)
            shares.append(1 / len(counts) / counts[groups])
            # As if each class were as rare as the rarest.
            sizes.append(len(counts) * counts.min())
        roots = np.sqrt(sizes)
        set_weights = roots / roots.sum() * len(self)
        weights = [
            share * weight for share, weight in zip(shares, set_weights, strict=True)
        ]
        return np.concatenate(weights)


def _outputs(head: dict[str, Any]) -> list[str]:
    return head.get("tags", head["labels"])


def _first_outputs(heads: dict[str, int]) -> dict[str, int]:
    """Return the index of the first output of each head among those of all."""
    firsts = {}
    first = 0
    for name, count in heads.items():
        firsts[name] = first
        first += count
    return firsts


def _joined(shards: list[Arrays]) -> Arrays:
    """Return the arrays of several shards as one dict."""
    joined = {
        name: np.concatenate([arrays[name] for arrays in shards])
        for name in LABELLED_ARRAYS
    }
    ends = np.cumsum(joined["lengths"], dtype="int64")
    joined["starts"] = ends - joined["lengths"]
    return joined
