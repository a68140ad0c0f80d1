"""One or two tokenized texts as the sequences that a model reads."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def pack(
    segments: Sequence[list[int]], cls_id: int, sep_id: int, sequence_length: int
) -> tuple[list[int], int, bool]:
    """`[CLS] a [SEP]`, or of a pair `[CLS] a [SEP] b [SEP]`.

    Of a pair that is too long, tokens are dropped from the end of the longer text, of
    the second if they are equal. A second text without tokens is none.

    Args:
        segments: the ids of one or two texts.
        cls_id, sep_id: int.
        sequence_length: int. Most tokens, the special ones included.

    Returns:
        The ids, how many of them are of the first segment, and whether tokens were
        dropped.

    Reference:
        google-research/bert `run_classifier.py`, `_truncate_seq_pair`.
    """
    first, *others = segments
    second = others[0] if others else []
    room = sequence_length - 2 - bool(second)
    length = len(first) + len(second)
    first = first[: max(room - len(second), (room + 1) // 2)]
    second = second[: room - len(first)]
    ids = [cls_id, *first, sep_id, *second]
    if second:
        ids.append(sep_id)
    return ids, len(first) + 2, length > room


def pad(
    rows: Sequence[list[int]],
    first_lengths: Sequence[int],
    pad_id: int,
    sequence_length: int,
    multiple: int = 8,
) -> dict[str, np.ndarray]:
    """Packed rows as the inputs of a model, int32 arrays [batch, time].

    `time` is the longest row, rounded up to a `multiple`, at most `sequence_length`.
    """
    lengths = np.array([len(row) for row in rows])
    time = min(-(-lengths.max() // multiple) * multiple, sequence_length)
    position = np.arange(time)
    is_token = position < lengths[:, np.newaxis]
    is_second = is_token & (position >= np.array(first_lengths)[:, np.newaxis])
    token_ids = np.full(is_token.shape, pad_id, "int32")
    token_ids[is_token] = np.concatenate(rows)
    return {
        "token_ids": token_ids,
        "segment_ids": is_second.astype("int32"),
        "padding_mask": is_token.astype("int32"),
    }
