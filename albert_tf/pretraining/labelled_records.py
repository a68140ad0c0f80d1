"""Open the records of labelled texts, and make batches of them in NumPy."""

import os
from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from albert_tf.pretraining.batches import Plan, draw, packed_lengths, step_values
from albert_tf.pretraining.dataset import PretrainingRecords
from albert_tf.pretraining.records import TARGETS, Records
from albert_tf_lite.errors import AlbertError

# The arrays of a shard, beside that of its labels.
PACKED = ("token_ids", "lengths", "second_starts")
# A text or token without a class or position.
IGNORED = -1
# Fewer sequences of a length are filled up with shorter ones.
POOL = 2000


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
        self.heads = self.manifest["heads"]
        arrays = self.read_shards(PACKED)
        self.sets = [x for x in self.manifest["shards"] if "set" in x]
        labelled = arrays[: len(self.sets)]
        self.texts = _joined(labelled)
        similar = arrays[len(self.sets) :]
        self.pairs: Any = _joined(similar) if similar else None
        counts = [len(x["lengths"]) for x in labelled]
        self.set = np.repeat(np.arange(len(counts), dtype="int32"), counts)
        self.targets = self._targets(labelled)
        self.weights = self._weights()

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
        """
        heads = self.heads_of(kind)
        rows = np.ones((len(self.sets), sum(heads.values())), bool)
        firsts = _firsts(heads)
        for row, entry in zip(rows, self.sets, strict=True):
            name, labels = entry["head"], entry["labels"]
            if name not in heads:
                continue
            first, outputs = firsts[name], _outputs(self.heads[name])
            row[:] = False
            row[first : first + heads[name]] = True
            if labels is not None and kind in ("classes", "tags"):
                if kind == "tags":
                    labels = [x for x in outputs if x == "O" or x[2:] in labels]
                row[first : first + len(outputs)] = np.isin(outputs, labels)
        return rows

    def _targets(self, labelled):
        """Return the labels of all texts by kind."""
        texts, tokens = len(self), len(self.texts["token_ids"])
        shapes = {
            "classes": texts,
            "scores": texts,
            "tags": tokens,
            "spans": (texts, 2),
        }
        targets = {}
        for kind, shape in shapes.items():
            if not (heads := self.heads_of(kind)):
                continue
            firsts, at = _firsts(heads), 0
            is_score = kind == "scores"
            dtype = "float32" if is_score else "int32"
            values = np.full(shape, np.nan if is_score else IGNORED, dtype)
            targets[kind] = values
            for arrays, entry in zip(labelled, self.sets, strict=True):
                size = len(arrays["token_ids" if kind == "tags" else "lengths"])
                if kind in arrays:
                    y = arrays[kind].astype(dtype)
                    if kind in ("classes", "tags"):
                        y = np.where(y < 0, IGNORED, y + firsts[entry["head"]])
                    values[at : at + size] = y
                at += size
        return targets

    def _weights(self):
        rows, sizes = [], []
        for i, entry in enumerate(self.sets):
            own = np.flatnonzero(self.set == i)
            groups = np.zeros(len(own), int)
            if entry["balanced"]:
                _, groups = np.unique(self.targets["classes"][own], return_inverse=True)
            counts = np.bincount(groups)
            rows.append(1 / len(counts) / counts[groups])
            sizes.append(len(counts) * counts.min())
        shares = np.sqrt(sizes) / np.sqrt(sizes).sum() * len(self)
        return np.concatenate([x * y for x, y in zip(rows, shares, strict=True)])


def _outputs(head):
    return head.get("tags", head["labels"])


def _firsts(heads):
    """Return the index of the first output of each head."""
    ends = np.cumsum(list(heads.values()))
    return dict(zip(heads, (ends - list(heads.values())).tolist(), strict=True))


def _joined(arrays):
    """Return the arrays of several shards as one dict."""
    found = {name: np.concatenate([x[name] for x in arrays]) for name in PACKED}
    ends = np.cumsum(found["lengths"], dtype="int64")
    return {**found, "starts": ends - found["lengths"]}


# === Batches ===


class Companions:
    """Sequences that join each batch of a plan, drawn at random from those that fit.

    Args:
        lengths: int array [sequences].
        widths: list of ints, the padded lengths, the last at least the longest.
    """

    def __init__(self, lengths: np.ndarray, widths: list[int]):
        self.widths, self._pools = widths, []
        buckets, pool = np.searchsorted(widths, lengths), np.empty(0, "int64")
        for bucket in range(len(widths)):
            own = np.flatnonzero(buckets == bucket)
            pool = own if len(own) > POOL else np.concatenate([pool, own])
            self._pools.append(pool)
        self.shortest = next(
            x for x, y in zip(widths, self._pools, strict=True) if len(y)
        )

    def draw(self, random: np.random.Generator, width: int, shape: Any) -> np.ndarray:
        """Return the numbers of sequences of at most a width of `widths`."""
        return random.choice(self._pools[self.widths.index(width)], shape)


class LabelledBatches:
    """Batches of labelled texts, text and similar texts as `LabelledModel` takes them.

    Args:
        labelled: a `LabelledRecords`.
        records: a `PretrainingRecords`, the text.
        batch_tokens: int. Tokens of the labelled texts per batch, padding included.
        seed, steps_per_call, steps, schedule: as for `PretrainingBatches`.
        shares: tuple of floats. Sequences of text, and pairs of similar texts, per
            labelled text.

    Returns:
        By index a dict of `labelled`, `text` and optionally `pairs` (first all first
        texts, then the second ones), each a dict of arrays [sequences, steps, ...], and
        with a schedule of `learning_rate` [sequences, steps].
    """

    def __init__(
        self,
        labelled: LabelledRecords,
        records: PretrainingRecords,
        batch_tokens: int,
        seed: int = 0,
        steps_per_call: int = 1,
        steps: int | None = None,
        schedule: Callable[[np.ndarray], Any] | None = None,
        shares: tuple[float, float] = (0.25, 0.0625),
    ):
        self.labelled, self.records = labelled, records
        self.seed, self.steps, self.schedule = seed, steps, schedule
        self.text_share, self.pair_share = shares
        self.plan = Plan(
            labelled.texts["lengths"],
            max(labelled.sequence_length, records.sequence_length),
            batch_tokens,
            steps_per_call,
            seed,
            weights=labelled.weights,
        )
        self._text_lengths = packed_lengths(records)
        self._text = Companions(self._text_lengths, self.plan.widths)
        self._pairs = None
        if labelled.pairs is not None:
            lengths = labelled.pairs["lengths"].reshape(-1, 2).max(axis=1)
            self._pairs = Companions(lengths, self.plan.widths)
        # TensorFlow takes batches of any length.
        self._trims = keras.backend.backend() == "tensorflow"

    def __len__(self) -> int:
        """Return the number of items per epoch."""
        return self.plan.calls_per_epoch

    def __getitem__(self, call: int) -> dict[str, Any]:
        width, rows = self.plan[call]
        # Sequences first, as for `PretrainingBatches`.
        rows = rows.T
        size, steps = rows.shape
        random = np.random.default_rng((self.seed, call))
        width = max(width, *(x.shortest for x in (self._text, self._pairs) if x))
        count = max(int(size * self.text_share), 1)
        texts = self._text.draw(random, width, (count, steps))
        lengths = [self.labelled.texts["lengths"][rows], self._text_lengths[texts]]
        similar = None
        if self._pairs is not None:
            pairs = max(int(size * self.pair_share), 2)
            first = 2 * self._pairs.draw(random, width, (pairs, steps))
            similar = np.concatenate([first, first + 1])
            lengths.append(self.labelled.pairs["lengths"][similar])
        if self._trims:
            longest = max(int(x.max()) for x in lengths)
            width = min(-(-longest // 4) * 4, width)
        text = draw(self.records, texts.reshape(-1), width, random)
        text = {x: y.reshape(*texts.shape, *y.shape[1:]) for x, y in text.items()}
        values = step_values(self, call * steps + np.arange(steps), count)
        batch: dict[str, Any] = {
            "labelled": {
                **self._features(self.labelled.texts, rows, width),
                **self._targets(rows, width),
            },
            "text": {**text, "weights": np.ones(texts.shape, "float32"), **values},
        }
        if similar is not None:
            batch["pairs"] = self._features(self.labelled.pairs, similar, width)
        if self.schedule is not None:
            batch["learning_rate"] = values["learning_rate"]
        return batch

    def _features(self, texts, rows, width):
        index, is_token = _places(texts, rows, width)
        token_ids = np.full(
            index.shape, self.labelled.tokens["pad"], texts["token_ids"].dtype
        )
        token_ids[is_token] = texts["token_ids"][index[is_token]]
        return {
            "token_ids": token_ids,
            "lengths": texts["lengths"][rows].astype("int32"),
            "second_starts": texts["second_starts"][rows].astype("int32"),
        }

    def _targets(self, rows, width):
        found = {"sets": self.labelled.set[rows]}
        for kind, values in self.labelled.targets.items():
            if kind == "tags":
                index, is_token = _places(self.labelled.texts, rows, width)
                found[kind] = np.full(index.shape, IGNORED, values.dtype)
                found[kind][is_token] = values[index[is_token]]
            else:
                found[kind] = values[rows]
        return found


def _places(texts, rows, width):
    """Return the index of each token of texts, and which are tokens."""
    place = np.arange(width)
    return (
        texts["starts"][rows][..., None] + place,
        place < texts["lengths"][rows][..., None],
    )
