"""Turn documents into sentences of tokens, and those into pairs of segments."""

import dataclasses
import itertools
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from albert_tf.preprocessing.words import tokens_that_begin_words

# The second segment by label, drawn with equal probability: "next" follows the first,
# "previous" precedes it, "other" is from another document.
ORDERS = {
    "sop": ("next", "previous"),  # ALBERT
    "nsp": ("next", "other"),  # BERT
    "three_way": ("next", "previous", "other"),  # StructBERT
    "none": (),  # RoBERTa: one segment without a label
}
# Rows per tokenizer call: more take memory, fewer take time.
CHUNK = 512


@dataclasses.dataclass(frozen=True)
class Sentences:
    """The tokenized sentences of several documents."""

    tokens: np.ndarray  # [tokens], all sentences in order.
    word_starts: np.ndarray  # [tokens], true where a word begins.
    # For each document the index in `tokens` at which each of its sentences begins,
    # then the end of the last.
    documents: list[np.ndarray]


def tokenize_documents(
    documents: list[list[str]],
    tokenize: Callable[[tf.Tensor], tuple[tf.RaggedTensor, ...]],
    segmenter: Callable[[str], list[str]] | None,
    split_sentences: Callable[[str], list[str]] | None,
    longest: int,
) -> Sentences:
    """Tokenize documents, lists of lines, and find where their words begin.

    `tokenize` returns ids and offsets. Without a segmenter each token is a word;
    without `split_sentences` each line is a sentence. A sentence of more than `longest`
    tokens is divided between two words.
    """
    if split_sentences is not None:
        documents = [
            [x for y in lines for x in split_sentences(y)] for lines in documents
        ]
    rows = list(itertools.chain.from_iterable(documents))
    parts = [
        tokenize(tf.constant(rows[i : i + CHUNK], tf.string))
        for i in range(0, max(len(rows), 1), CHUNK)
    ]
    tokens, starts, ends = (
        np.concatenate([part[i].flat_values.numpy() for part in parts])
        for i in range(3)
    )
    lengths = np.concatenate([part[0].row_lengths().numpy() for part in parts])
    word_starts = np.ones(len(tokens), bool)
    if segmenter is not None:
        word_starts = tokens_that_begin_words(rows, starts, ends, lengths, segmenter)
    splits = np.concatenate([[0], np.cumsum(lengths)])
    found = [
        _divided(np.unique(splits[begin : end + 1]), word_starts, longest)
        for begin, end in itertools.pairwise(np.cumsum([0, *map(len, documents)]))
    ]
    divided = [bounds for bounds in found if len(bounds) > 1]
    return Sentences(tokens.astype("int32"), word_starts, divided)


def _divided(bounds: np.ndarray, word_starts: np.ndarray, longest: int) -> np.ndarray:
    """Return the bounds of a document's sentences with long ones divided."""
    more: list[int] = []
    for start, length in zip(bounds[:-1], np.diff(bounds), strict=True):
        if length > longest:
            parts = -(-length // longest)
            wanted = start + length * np.arange(1, parts) // parts
            cuts = start + np.flatnonzero(word_starts[start : start + length])
            nearest = np.searchsorted(cuts, wanted)
            more.extend(cuts[nearest[nearest < len(cuts)]])
    return np.union1d(bounds, more).astype("int64")


def draw_sequences(
    sentences: Sentences,
    sequence_length: int,
    random: np.random.Generator,
    special_ids: tuple[int, int, int],
    order: str = "sop",
    short_sequence_rate: float = 0.1,
    keep_unpaired: bool = False,
) -> dict[str, np.ndarray]:
    """Draw sequences of two segments from documents as the original code does.

    Sentences are collected up to the sequence length, or a random shorter one for a
    tenth of the sequences, and divided in two between two sentences. Excess tokens are
    cut from the front or back of the longer segment. A sentence that stands alone is
    dropped as in the original, or makes a sequence of one segment. `special_ids` are
    those of `[CLS]`, `[SEP]` and `[PAD]`.

    Reference:
        google-research/albert `create_pretraining_data.py`,
        `create_instances_from_document`.
    """
    kinds = ORDERS[order]
    # With a single document no segment can be from another.
    drawn = [kind for kind in kinds if kind != "other" or len(sentences.documents) > 1]
    longest = sequence_length - (3 if kinds else 2)
    rows: list[tuple] = []
    for number, bounds in enumerate(sentences.documents):
        start, last = 0, len(bounds) - 1
        while start < last:
            wanted = longest
            if random.random() < short_sequence_rate:
                wanted = int(random.integers(2, longest + 1))
            end = int(np.searchsorted(bounds, bounds[start] + wanted))
            end = min(max(end, start + (2 if kinds else 1)), last)
            alone = bool(kinds) and end - start < 2
            if not kinds or (alone and keep_unpaired):
                rows.append((bounds[start], bounds[end], 0, 0, 0))
            elif not alone:
                kind = drawn[int(random.integers(len(drawn)))]
                middle = start + int(random.integers(1, end - start))
                first, second = bounds[[start, middle]], bounds[[middle, end]]
                if kind == "previous":
                    first, second = second, first
                elif kind == "other":
                    # The unused sentences begin the next sequence.
                    end, wanted = middle, wanted - (first[1] - first[0])
                    second = _other(sentences, number, wanted, random)
                rows.append((*first, *second, kinds.index(kind)))
            start = end
    # Begin and end of the first and of the second segment, if any, and the label.
    table = np.array(rows, "int64").reshape(-1, 5)
    first, second = _cut(table[:, :2], table[:, 2:4], longest, random)
    arrays = _assemble(sentences, first, second, sequence_length, special_ids)
    return {**arrays, "labels": table[:, 4].astype("int32")}


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


def _assemble(
    sentences: Sentences,
    first: np.ndarray,
    second: np.ndarray,
    sequence_length: int,
    special_ids: tuple[int, int, int],
) -> dict[str, np.ndarray]:
    """Return arrays of sequences `[CLS] first [SEP] second [SEP]`."""
    cls_id, sep_id, pad_id = special_ids
    position = np.arange(sequence_length)
    begin, end, begin_2, end_2 = np.split(np.hstack([first, second]), 4, axis=1)
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
    }
