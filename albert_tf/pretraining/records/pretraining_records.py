"""Open the records of a corpus."""

import functools
import os
from typing import Any

import numpy as np

from albert_tf.files import decode_utf8
from albert_tf.layers.whole_word_mask_generator import (
    WholeWordMaskGenerator,
    mask_settings,
)
from albert_tf.pretraining.records.ranges import joined_ranges
from albert_tf.pretraining.records.records_directory import (
    MANIFEST,
    Records,
    naming_damage,
)
from albert_tf.pretraining.records.segment_pairs import ORDERS
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.lines import vocabulary_tokens
from albert_tf_lite.words import marked_label_ids

# [CLS], and [SEP] after each segment.
SPECIAL = 3


class PretrainingRecords(Records):
    """The records of a corpus, all of which are read once to check them.

    Args:
        path: string, a directory written by `albert-tf pretrain-data`.
        order: optional string, another order of the segments than that of the
            manifest, which is drawn when a batch is made: `"sop"`, `"nsp"`,
            `"three_way"` or `"none"`.

    Attributes:
        manifest: dict, the manifest.
        order: string, the order of the segments.
        shards: list of dicts of memory-mapped arrays, see
            `shard_files.ARRAYS`.
        lengths, second_starts, documents: int arrays [sequences], those of all shards.
        shard: int array [sequences], the index of the shard of each sequence.
        starts: int64 array [sequences], the index of its first token in the shard.

    Raises:
        FileNotFoundError: if there are no records, or a shard is missing.
        AlbertError: if a shard is damaged, the records are incomplete, or they cannot
            be read in another order: they hold labels, or have one segment.

    Example:
    ```python
    records = albert_tf.pretraining.PretrainingRecords("records")
    records.lengths.sum(), records.order_classes
    ```
    """

    def __init__(self, path: str | os.PathLike, order: str | None = None):
        super().__init__(path)
        if not self.manifest:
            raise FileNotFoundError(
                f"There are no records in {path}: {MANIFEST} is missing. Make them by "
                "`albert-tf pretrain-data`."
            )
        if "heads" in self.manifest:
            raise AlbertError(
                f"{path} holds labelled texts, which `albert-tf pretrain` takes as "
                "--labelled, and no text without labels."
            )
        with naming_damage(self.folder / MANIFEST):
            ORDERS[self.manifest["settings"]["order"]]
        self.shards = self.read_shards()
        counts = [len(arrays["lengths"]) for arrays in self.shards]
        self.shard = np.repeat(np.arange(len(counts), dtype="int32"), counts)
        self.lengths = self._joined("lengths")
        self.second_starts = self._joined("second_starts")
        self.documents = self._joined("documents")
        self.starts = self._starts("lengths")
        self.order = self._checked(order)

    def __len__(self) -> int:
        """Return the number of sequences."""
        return len(self.lengths)

    def _joined(self, name: str) -> np.ndarray:
        return np.concatenate([arrays[name] for arrays in self.shards]).astype("int32")

    def _starts(self, name: str) -> np.ndarray:
        """Return the index of the first element of each sequence in its shard.

        `name` is the array of the number of elements.
        """
        counts = [arrays[name].astype("int64") for arrays in self.shards]
        return np.concatenate([np.cumsum(count) - count for count in counts])

    def _checked(self, order: str | None) -> str:
        """Return the name of the order in `ORDERS`; raise if it cannot be drawn."""
        stored = self.manifest["settings"]["order"]
        if order is None or order == stored:
            return stored
        if order not in ORDERS:
            raise AlbertError(f"Unknown order {order!r}. Known: {list(ORDERS)}")
        if not ORDERS[stored]:
            reason = "have one segment"
        elif "labels" in self.shards[0]:
            reason = "hold labels"
        else:
            return order
        raise AlbertError(
            f"The sequences of {self.folder} {reason} (order {stored}) and cannot be "
            f"read with order {order}. Make the records of the text with --order "
            f"{order}."
        )

    @property
    def order_classes(self) -> int:
        """Number of classes of the sentence order; 0 without one."""
        return len(ORDERS[self.order])

    @property
    def is_masked(self) -> bool:
        """True if the records hold masks."""
        return "mask_counts" in self.shards[0]

    @functools.cached_property
    def masks_of_sequences(self) -> tuple[np.ndarray, np.ndarray]:
        """The number of masks of each sequence, and the index of the first."""
        return self._joined("mask_counts"), self._starts("mask_counts")

    @functools.cached_property
    def labels(self) -> np.ndarray:
        """The class of the order of each sequence, 0 where none is stored."""
        if "labels" in self.shards[0]:
            return self._joined("labels")
        return np.zeros(len(self), "int32")

    def take(
        self, name: str, shard: np.ndarray, index: np.ndarray, chosen: np.ndarray
    ) -> np.ndarray:
        """Return elements of an array, as many as are `chosen`.

        Args:
            name: name of an array.
            shard: int array [rows].
            index: int array [rows, columns], in the array of the shard of the row.
            chosen: bool array [rows, columns].
        """
        counts = np.count_nonzero(chosen, axis=1)
        ends = np.cumsum(counts)
        flat = index[chosen]
        values = np.empty(len(flat), self.shards[0][name].dtype)
        # The rows of one shard after the other, so that each array is read once.
        order = np.argsort(shard, kind="stable")
        changes = np.flatnonzero(np.diff(shard[order])) + 1
        for rows in np.split(order, changes):
            # The places of the elements of these rows among all elements.
            places = joined_ranges(ends[rows] - counts[rows], counts[rows])
            array = self.shards[shard[rows[0]]][name]
            values[places] = array[flat[places]]
        return values

    def masks(self, **settings: Any) -> WholeWordMaskGenerator:
        """Return a generator of masks for the records.

        Args:
            **settings: arguments of `WholeWordMaskGenerator`: `mask_selection_rate`,
                `mask_selection_length`, `ngram`, `whole_word`, and `marked_labels`
                (labels with `##`, as in albert_zh). By default ALBERT's.

        Raises:
            AlbertError: if a value is not allowed.
        """
        arguments = mask_settings(self.sequence_length, **settings)
        inner_label_ids = None
        if arguments.pop("marked_labels"):
            hint = "Labels with ## need a vocab.txt: leave out `marked_labels=`."
            content = self.vocabulary.read_bytes()
            text = decode_utf8(content, self.vocabulary, hint)
            inner_label_ids = marked_label_ids(vocabulary_tokens(text))
        special = [self.tokens[name] for name in ("cls", "sep", "pad", "mask")]
        return WholeWordMaskGenerator(
            self.tokens["size"],
            mask_token_id=self.tokens["mask"],
            unselectable_token_ids=special,
            inner_label_ids=inner_label_ids,
            **arguments,
        )
