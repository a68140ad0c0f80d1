"""Turn documents of sentences into the sequences that ALBERT is pretrained on."""

import dataclasses

import numpy as np

from albert_tf.pretraining.sentences import Sentences

# The second segment by label, drawn with equal probability: "next" follows the first,
# "previous" precedes it, "other" is from another document.
ORDERS = {
    "sop": ("next", "previous"),  # ALBERT
    "nsp": ("next", "other"),  # BERT
    "three_way": ("next", "previous", "other"),  # StructBERT
    "none": (),  # RoBERTa: one segment without a label
}


@dataclasses.dataclass(frozen=True)
class SegmentPairs:
    """Ranges of tokens that make sequences.

    Args:
        first, second: int arrays [sequences, 2]: where each segment begins and ends
            in the tokens. An empty second segment is absent.
        labels: int array [sequences], by `ORDERS`.
        unpaired: int, sentences that stood alone and made no pair.
    """

    first: np.ndarray
    second: np.ndarray
    labels: np.ndarray
    unpaired: int


def draw_segment_pairs(
    sentences: Sentences,
    sequence_length: int,
    random: np.random.Generator,
    order: str = "sop",
    short_sequence_rate: float = 0.1,
    keep_unpaired: bool = False,
) -> SegmentPairs:
    """Draw sequences from documents as the original code does.

    Sentences are collected up to the sequence length, or a random shorter one for a
    tenth of the sequences, and divided in two between two sentences. Excess tokens are
    cut from the front or back of the longer segment.

    Args:
        sentences: a `Sentences`.
        sequence_length: int, including `[CLS]` and `[SEP]`.
        random: a NumPy generator.
        order: string, a key of `ORDERS`.
        short_sequence_rate: float, the share of sequences of a random shorter length.
        keep_unpaired: bool, whether a sentence that stands alone makes a sequence of
            one segment. The original drops it.

    Reference:
        google-research/albert `create_pretraining_data.py`,
        `create_instances_from_document`.
    """
    kinds = ORDERS[order]
    # With a single document no segment can be from another.
    drawn = [kind for kind in kinds if kind != "other" or len(sentences.documents) > 1]
    longest = sequence_length - (3 if kinds else 2)
    rows: list[tuple] = []
    unpaired = 0
    for number, bounds in enumerate(sentences.documents):
        start, last = 0, len(bounds) - 1
        while start < last:
            wanted = longest
            if random.random() < short_sequence_rate:
                wanted = int(random.integers(2, longest + 1))
            end = int(np.searchsorted(bounds, bounds[start] + wanted))
            end = min(max(end, start + (2 if kinds else 1)), last)
            alone = bool(kinds) and end - start < 2
            unpaired += alone
            if not kinds or (alone and keep_unpaired):
                rows.append((bounds[start], bounds[end], 0, 0, 0))
            elif not alone:
                kind = drawn[int(random.integers(len(drawn)))]
                end, row = _pair(sentences, number, start, end, wanted, kind, random)
                rows.append((*row, kinds.index(kind)))
            start = end
    table = np.array(rows, "int64").reshape(-1, 5)
    first, second = _cut(table[:, :2], table[:, 2:4], longest, random)
    return SegmentPairs(first, second, table[:, 4].astype("int32"), unpaired)


def _pair(
    sentences: Sentences,
    number: int,
    start: int,
    end: int,
    wanted: int,
    kind: str,
    random: np.random.Generator,
) -> tuple[int, tuple]:
    """Return the index of the sentence after a pair, and the bounds of the pair."""
    bounds = sentences.documents[number]
    middle = start + int(random.integers(1, end - start))
    first, second = bounds[[start, middle]], bounds[[middle, end]]
    if kind == "previous":
        first, second = second, first
    elif kind == "other":
        # The unused sentences begin the next sequence.
        end = middle
        second = _other(sentences, number, wanted - (first[1] - first[0]), random)
    return end, (*first, *second)


def _other(
    sentences: Sentences, number: int, wanted: int, random: np.random.Generator
) -> np.ndarray:
    """Draw sentences of about `wanted` tokens from another document."""
    other = int(random.integers(len(sentences.documents) - 1))
    bounds = sentences.documents[other + (other >= number)]
    start = int(random.integers(len(bounds) - 1))
    end = int(np.searchsorted(bounds, bounds[start] + max(wanted, 1)))
    return bounds[[start, min(max(end, start + 1), len(bounds) - 1)]]


def _cut(
    first: np.ndarray, second: np.ndarray, longest: int, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Cut the longer segment, token by token, until both fit together."""
    lengths = np.stack([first[:, 1] - first[:, 0], second[:, 1] - second[:, 0]])
    excess = np.maximum(lengths.sum(0) - longest, 0)
    # Until both are equally long, then in turn.
    difference = lengths[0] - lengths[1]
    uneven = np.minimum(np.abs(difference), excess)
    in_turn = excess - uneven
    cut_first = np.where(difference > 0, uneven, 0) + in_turn // 2
    for segment, cut in ((first, cut_first), (second, excess - cut_first)):
        front = random.binomial(cut, 0.5)
        segment[:, 0] += front
        segment[:, 1] -= cut - front
    return first, second


def assemble(
    sentences: Sentences,
    pairs: SegmentPairs,
    sequence_length: int,
    cls_id: int,
    sep_id: int,
    pad_id: int,
) -> dict[str, np.ndarray]:
    """Lay out the segments of `pairs` as `[CLS] first [SEP] second [SEP]`.

    Returns:
        A dict of arrays [sequences, sequence_length]: `token_ids`, `segment_ids` and
        `padding_mask` (int32), `word_starts` (bool), and `labels` [sequences].
    """
    position = np.arange(sequence_length)
    (begin, end), (begin_2, end_2) = (
        np.split(segment, 2, axis=1) for segment in (pairs.first, pairs.second)
    )
    sep = 1 + end - begin
    last = np.where(end_2 > begin_2, sep + 1 + end_2 - begin_2, sep)
    in_first = (position >= 1) & (position < sep)
    in_second = (position > sep) & (position < last)
    source = position + np.where(in_first, begin - 1, begin_2 - sep - 1)
    in_text = in_first | in_second
    token_ids = np.full(source.shape, pad_id, "int32")
    token_ids[in_text] = sentences.tokens[source[in_text]]
    token_ids[(position == sep) | (position == last)] = sep_id
    token_ids[:, 0] = cls_id
    word_starts = np.zeros(source.shape, bool)
    word_starts[in_text] = sentences.word_starts[source[in_text]]
    # A segment cut within a word begins with the rest of that word.
    word_starts |= in_text & ~np.pad(in_text, ((0, 0), (1, 0)))[:, :-1]
    return {
        "token_ids": token_ids,
        "segment_ids": ((position > sep) & (position <= last)).astype("int32"),
        "padding_mask": (position <= last).astype("int32"),
        "word_starts": word_starts,
        "labels": pairs.labels,
    }
