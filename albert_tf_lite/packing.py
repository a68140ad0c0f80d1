"""Packing of token ids with special tokens, padding, and windows of long texts."""

from collections.abc import Sequence

import numpy as np

# The inputs of a network.
INPUTS = ("token_ids", "segment_ids", "padding_mask")
# Tokens that neighbouring windows share by default: a whole answer should be in one.
SHARED = 128
# [CLS] and two [SEP], beside a question and its context.
QUESTION_SPECIAL = 3


def pack(
    segments: Sequence[list[int]], cls_id: int, sep_id: int, sequence_length: int
) -> tuple[list[int], list[int], bool]:
    """Return the ids, segments and truncation of `[CLS] a [SEP]` or `... b [SEP]`.

    As `_truncate_seq_pair` of google-research/bert, this truncates the longer text of a
    pair, the second if both have one length. An empty second text is left out.
    """
    first, *others = segments
    second = others[0] if others else []
    room = sequence_length - 2 - bool(second)
    length = len(first) + len(second)
    first = first[: max(room - len(second), (room + 1) // 2)]
    second = second[: room - len(first)]
    second += [sep_id] * bool(second)
    ids = [cls_id, *first, sep_id, *second]
    return ids, [0] * (len(first) + 2) + [1] * len(second), length > room


def question_limit(sequence_length: int, max_question_length: int) -> tuple[int, str]:
    """Return the maximum number of tokens of a question, and its name for messages.

    At least half of a window is for the context.
    """
    half = (sequence_length - QUESTION_SPECIAL) // 2
    if max_question_length <= half:
        return max_question_length, f"max_question_length={max_question_length} tokens"
    return half, f"half of sequence_length={sequence_length}, {half} tokens,"


def pad(
    rows: Sequence[tuple], pad_id: int, sequence_length: int
) -> dict[str, np.ndarray]:
    """Return rows of `pack` as the inputs of a model, int32 arrays [batch, time]."""
    longest = max(len(ids) for ids, _, _ in rows)
    shape = len(rows), min(-(-longest // 8) * 8, sequence_length)
    features = {name: np.zeros(shape, "int32") for name in INPUTS}
    features["token_ids"] += pad_id
    for i, (ids, segment_ids, _) in enumerate(rows):
        for name, values in zip(INPUTS, (ids, segment_ids, 1), strict=True):
            features[name][i, : len(ids)] = values
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
            # Rows are padded to a multiple of 8 in any case.
            longest = -(-lengths[i] // 8) * 10 // 8 * 8
        batches[-1].append(i)
    return batches


def windows_of(length: int, size: int, stride: int) -> list[tuple[int, ...]]:
    """Return the windows of a text of `length` tokens, longer than a model's positions.

    A window starts every `stride` tokens and reads at most `size`. The last one ends
    with the text. It is a tuple (start, end, first, last) that reads `start` to `end`
    and decides `first` to `last`, ends exclusive: the tokens with more context in it
    than in any other.
    """
    beyond = max(length - size, 0)
    starts = [min(start, beyond) for start in range(0, beyond + stride, stride)]
    ends = [min(start + size, length) for start in starts]
    middles = [(a + b + 1) // 2 for a, b in zip(starts[1:], ends, strict=False)]
    rows = zip(starts, ends, [0, *middles], [*middles, length], strict=True)
    return list(rows)
