"""Pack tokenized texts into the sequences that a model reads."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


def pack(
    segments: Sequence[list[int]], cls_id: int, sep_id: int, sequence_length: int
) -> tuple[list[int], int, bool]:
    """Pack a text as `[CLS] a [SEP]`, or a pair as `[CLS] a [SEP] b [SEP]`.

    Returns the ids, the number of ids of the first segment, and whether tokens were
    dropped. Too long pairs lose tokens from the end of the longer text, or of the
    second text if both have the same length. An empty second text is left out.

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
) -> dict[str, np.ndarray]:
    """Return packed rows as the inputs of a model, int32 arrays [batch, time].

    `time` is the longest row, rounded up to a multiple of 8, at most `sequence_length`.
    """
    lengths = np.array([len(row) for row in rows])
    time = min(-(-lengths.max() // 8) * 8, sequence_length)
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


class Window(NamedTuple):
    """A window of a text that is longer than a model's positions, in tokens.

    It reads `start` to `end` and decides `first` to `last` (ends exclusive). Each token
    is decided by the window that has most context on both sides of it.
    """

    start: int
    end: int
    first: int
    last: int


def windows_of(length: int, size: int, stride: int) -> list[Window]:
    """Return the windows of a text of `length` tokens.

    A window starts every `stride` tokens and reads at most `size`. The last one ends
    with the text.
    """
    beyond = max(length - size, 0)
    starts = [min(start, beyond) for start in range(0, beyond + stride, stride)]
    ends = [min(start + size, length) for start in starts]
    middles = [(a + b + 1) // 2 for a, b in zip(starts[1:], ends, strict=False)]
    return [*map(Window, starts, ends, [0, *middles], [*middles, length])]
