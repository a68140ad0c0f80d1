"""Draw sequences from records: their segments, order, special tokens and padding."""

from typing import NamedTuple

import numpy as np

from albert_tf.pretraining.records.pretraining_records import (
    SPECIAL,
    PretrainingRecords,
)
from albert_tf.pretraining.records.segment_pairs import ORDERS
from albert_tf.pretraining.records.shard_files import Arrays

# How often a segment of another document is drawn for a sequence of the same.
DRAWS = 8


class Segments(NamedTuple):
    """A segment of each of several sequences, by its place in the records."""

    shard: np.ndarray  # [rows], the index of the shard
    start: np.ndarray  # [rows], the index of the first token
    length: np.ndarray  # [rows], 0 for a sequence without this segment

    def replaced(self, condition: np.ndarray, others: "Segments") -> "Segments":
        """Return others where a condition, bool [rows], is true."""
        return Segments(
            np.where(condition, others.shard, self.shard),
            np.where(condition, others.start, self.start),
            np.where(condition, others.length, self.length),
        )


def packed_lengths(records: PretrainingRecords) -> np.ndarray:
    """Return the number of tokens of each sequence with its special tokens."""
    special = np.where(records.second_starts < records.lengths, 3, 2)
    return np.minimum(records.lengths + special, records.sequence_length)


def draw(
    records: PretrainingRecords,
    rows: np.ndarray,
    width: int,
    random: np.random.Generator,
) -> Arrays:
    """Return sequences with their segments in an order drawn for each.

        place       0      1 2 3 4  5      6 7 8    9      10 ...
        token_ids   [CLS]  first    [SEP]  second   [SEP]  [PAD]
                                    sep             end

    Without a second segment, `end` is `sep`.

    Returns:
        A dict of `token_ids` [rows, width] with special tokens and padding,
        `word_starts` (bool) of the same shape, `lengths` and `second_starts` [rows]
        (the place of the second segment, or the length), `labels`, the class of the
        order, `has_order` (float, 0 for one segment), and for masked records
        `mask_positions`, `mask_ids` and `mask_weights` [rows, masks].
    """
    first, second, labels = draw_segments(records, rows, width, random)
    has_two = second.length > 0
    sep = 1 + first.length
    end = sep + np.where(has_two, 1 + second.length, 0)
    place = np.arange(width)
    shape = len(rows), width
    id_type = records.shards[0]["token_ids"].dtype
    token_ids = np.full(shape, records.tokens["pad"], id_type)
    word_starts = np.zeros(shape, bool)
    for segment, start in ((first, np.ones_like(sep)), (second, sep + 1)):
        offset = place - start[:, None]
        inside = (offset >= 0) & (offset < segment.length[:, None])
        index = segment.start[:, None] + offset
        token_ids[inside] = records.take("token_ids", segment.shard, index, inside)
        bits = records.take("word_starts", segment.shard, index >> 3, inside)
        word_starts[inside] = bits >> (7 - (index[inside] & 7)) & 1
    token_ids[:, 0] = records.tokens["cls"]
    is_sep = (place == sep[:, None]) | (place == end[:, None])
    token_ids[is_sep] = records.tokens["sep"]
    arrays = {
        "token_ids": token_ids,
        "word_starts": word_starts,
        "lengths": (end + 1).astype("int32"),
        "second_starts": (sep + 1).astype("int32"),
        "labels": labels.astype("int32"),
        "has_order": has_two.astype("float32"),
    }
    if records.is_masked:
        arrays.update(_stored_masks(records, rows))
    return arrays


def draw_segments(
    records: PretrainingRecords,
    rows: np.ndarray,
    width: int,
    random: np.random.Generator,
) -> tuple[Segments, Segments, np.ndarray]:
    """Return both segments of each row, and the class of their order."""
    shard, start = records.shard[rows], records.starts[rows]
    middle, length = records.second_starts[rows], records.lengths[rows]
    first = Segments(shard, start, middle)
    second = Segments(shard, start + middle, length - middle)
    kinds = ORDERS[records.order]
    if "labels" in records.shards[0] or not kinds:
        return first, second, records.labels[rows]
    labels = random.integers(len(kinds), size=len(rows))
    labels[second.length == 0] = 0
    if "other" in kinds:
        others, has_other = _other_segments(records, rows, width, random)
        is_other = labels == kinds.index("other")
        labels[is_other & ~has_other] = 0
        second = second.replaced(is_other & has_other, others)
    if "previous" in kinds:
        is_swapped = labels == kinds.index("previous")
        first, second = (
            first.replaced(is_swapped, second),
            second.replaced(is_swapped, first),
        )
    return first, second, labels


def _other_segments(
    records: PretrainingRecords,
    rows: np.ndarray,
    width: int,
    random: np.random.Generator,
) -> tuple[Segments, np.ndarray]:
    """Return a segment of another document for each row, and where one was found."""
    drawn = random.integers(len(records), size=(DRAWS, len(rows)))
    is_other_shard = records.shard[drawn] != records.shard[rows]
    is_other_document = records.documents[drawn] != records.documents[rows]
    is_far = is_other_shard | is_other_document
    # The first of several that is of another document.
    others = drawn[is_far.argmax(axis=0), np.arange(len(rows))]
    # A sequence of one segment is that segment.
    offset = records.second_starts[others]
    offset = np.where(offset < records.lengths[others], offset, 0)
    space = width - SPECIAL - records.second_starts[rows]
    segments = Segments(
        records.shard[others],
        records.starts[others] + offset,
        np.minimum(records.lengths[others] - offset, space),
    )
    return segments, is_far.any(axis=0)


def _stored_masks(records: PretrainingRecords, rows: np.ndarray) -> Arrays:
    """Return the masks that records hold, [rows, masks]."""
    all_counts, all_starts = records.masks_of_sequences
    column = np.arange(all_counts.max())
    inside = column < all_counts[rows][:, None]
    index = all_starts[rows][:, None] + column
    arrays: Arrays = {"mask_weights": inside.astype("float32")}
    for name in ("mask_positions", "mask_ids"):
        arrays[name] = np.zeros(inside.shape, "int32")
        arrays[name][inside] = records.take(name, records.shard[rows], index, inside)
    return arrays
