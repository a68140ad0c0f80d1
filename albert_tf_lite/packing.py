"""Packing of token ids with special tokens, padding, and windows of long texts."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

# The inputs of a network.
INPUTS = ("token_ids", "segment_ids", "padding_mask")
# Tokens that neighbouring windows share by default: a whole answer should be in one.
SHARED = 128
# [CLS] and two [SEP], beside a question and its context.
QUESTION_SPECIAL = 3


# Batches are padded to a multiple of this length, so that there are few of them.
MULTIPLE = 8


class PackedRow(NamedTuple):
    """A row of tokens that a model reads."""

    ids: list[int]
    segment_ids: list[int]
    is_truncated: bool


class Window(NamedTuple):
    """A part of a text that a model reads at once, in tokens; ends are exclusive.

    It reads `start` to `end`, and decides the tokens from `first` to `last`: those with
    more context in it than in any other window.
    """

    start: int
    end: int
    first: int
    last: int


def pack(
    segments: Sequence[list[int]], cls_id: int, sep_id: int, sequence_length: int
) -> PackedRow:
    """Return the row `[CLS] a [SEP]` of a text, or `[CLS] a [SEP] b [SEP]` of a pair.

    As `_truncate_seq_pair` of google-research/bert, this truncates the longer text of a
    pair, the second if both have one length. An empty second text is left out.
    """
    first = segments[0]
    second = segments[1] if len(segments) > 1 else []
    # [CLS] and one [SEP] per text.
    room = sequence_length - 3 if second else sequence_length - 2
    length = len(first) + len(second)
    first = first[: max(room - len(second), (room + 1) // 2)]
    second = second[: room - len(first)]
    if second:
        second = [*second, sep_id]
    return PackedRow(
        ids=[cls_id, *first, sep_id, *second],
        segment_ids=[0] * (len(first) + 2) + [1] * len(second),
        is_truncated=length > room,
    )


def round_up(length, multiple: int = MULTIPLE):
    """Return a length, an int, array or tensor, rounded up to a multiple."""
    return (length + multiple - 1) // multiple * multiple


def question_limit(sequence_length: int, max_question_length: int) -> tuple[int, str]:
    """Return the maximum number of tokens of a question, and its name for messages.

    At least half of a window is for the context.
    """
    half = (sequence_length - QUESTION_SPECIAL) // 2
    if max_question_length <= half:
        return max_question_length, f"max_question_length={max_question_length} tokens"
    return half, f"half of sequence_length={sequence_length}, {half} tokens,"


def pad(
    rows: Sequence[PackedRow], pad_id: int, sequence_length: int
) -> dict[str, np.ndarray]:
    """Return rows of `pack` as the inputs of a model, int32 arrays [batch, time]."""
    longest = max(len(row.ids) for row in rows)
    shape = len(rows), min(round_up(longest), sequence_length)
    features = {name: np.zeros(shape, "int32") for name in INPUTS}
    features["token_ids"] += pad_id
    for i, row in enumerate(rows):
        length = len(row.ids)
        features["token_ids"][i, :length] = row.ids
        features["segment_ids"][i, :length] = row.segment_ids
        features["padding_mask"][i, :length] = 1
    return features


def batches_of(lengths: Sequence[int], batch_size: int) -> list[list[int]]:
    """Return the positions of rows in batches of similar length, the shortest first.

    In each batch at most about a quarter is padding: on a CPU, a batch that is padded
    more takes longer than several batches.
    """
    batches: list[list[int]] = []
    longest = -1
    for i in sorted(range(len(lengths)), key=lengths.__getitem__):
        if lengths[i] > longest or len(batches[-1]) == batch_size:
            batches.append([])
            # A quarter more than the length to which rows are padded in any case.
            longest = round_up(lengths[i]) // MULTIPLE * 10 // 8 * MULTIPLE
        batches[-1].append(i)
    return batches


def windows_of(length: int, size: int, stride: int) -> list[Window]:
    """Return the windows of a text of `length` tokens, longer than a model's positions.

    A window starts every `stride` tokens and reads at most `size`. The last one ends
    with the text. Neighbours meet in the middle of their overlap:

        |------- window 1 -------|
                   |------- window 2 -------|
        decides 1       | decides 2
    """
    beyond = max(length - size, 0)
    starts = [min(start, beyond) for start in range(0, beyond + stride, stride)]
    windows, first = [], 0
    for number, start in enumerate(starts):
        end = last = min(start + size, length)
        if number + 1 < len(starts):
            last = (starts[number + 1] + end + 1) // 2
        windows.append(Window(start, end, first, last))
        first = last
    return windows
