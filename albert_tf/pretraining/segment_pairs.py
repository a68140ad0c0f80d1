"""Turn documents into sentences of tokens, and those into sequences of two segments."""

import dataclasses
import itertools
from collections.abc import Callable

import numpy as np

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
    tokenize: Callable[[list[str]], tuple[np.ndarray, ...]],
    segmenter: Callable[[str], list[str]] | None,
    split_sentences: Callable[[str], list[str]] | None,
    longest: int,
) -> Sentences:
    """Tokenize documents, lists of lines, and find where their words begin.

    `tokenize` returns the ids, starts and ends of all tokens of some texts, and the
    number of tokens of each. Without a segmenter each token is a word; without
    `split_sentences` each line is a sentence. A sentence of more than `longest` tokens
    is divided between two words.
    """
    # It needs TensorFlow, which readers of records may lack.
    from albert_tf_lite.words import tokens_that_begin_words

    if split_sentences is not None:
        documents = [
            [x for y in lines for x in split_sentences(y)] for lines in documents
        ]
    rows = list(itertools.chain.from_iterable(documents))
    chunks = range(0, max(len(rows), 1), CHUNK)
    parts = [tokenize(rows[i : i + CHUNK]) for i in chunks]
    tokens, starts, ends, lengths = map(np.concatenate, zip(*parts, strict=True))
    word_starts = np.ones(len(tokens), bool)
    if segmenter is not None:
        word_starts = tokens_that_begin_words(rows, starts, ends, lengths, segmenter)
    splits = np.concatenate([[0], np.cumsum(lengths)])
    found = [
        _divided(np.unique(splits[begin : end + 1]), word_starts, longest)
        for begin, end in itertools.pairwise(np.cumsum([0, *map(len, documents)]))
    ]
    divided = [bounds for bounds in found if len(bounds) > 1]
    return Sentences(tokens, word_starts, divided)


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


def cut_sequences(
    sentences: Sentences,
    sequence_length: int,
    random: np.random.Generator,
    pairs: bool = True,
    short_sequence_rate: float = 0.1,
    keep_unpaired: bool = False,
) -> dict[str, np.ndarray]:
    """Cut documents into sequences of two segments as the original code does.

    Sentences are collected up to the sequence length, or a random shorter one for a
    tenth of the sequences, and divided in two between two sentences. Excess tokens are
    cut from the front or back of the longer segment. A sentence that stands alone is
    dropped as in the original, or makes a sequence of one segment. Without `pairs`, all
    sequences have one segment.

    Returns the arrays of `records.ARRAYS`: sequences in text order, whose special
    tokens and order of segments are added when a batch is made.

    Reference:
        google-research/albert `create_pretraining_data.py`,
        `create_instances_from_document`.
    """
    longest = sequence_length - (3 if pairs else 2)
    rows: list[tuple] = []
    for number, bounds in enumerate(sentences.documents):
        start, last = 0, len(bounds) - 1
        while start < last:
            wanted = longest
            if random.random() < short_sequence_rate:
                wanted = int(random.integers(2, longest + 1))
            end = int(np.searchsorted(bounds, bounds[start] + wanted))
            end = min(max(end, start + (2 if pairs else 1)), last)
            middle = end
            if pairs and end - start > 1:
                middle = start + int(random.integers(1, end - start))
            if middle < end or not pairs or keep_unpaired:
                rows.append((number, *bounds[[start, middle, end]]))
            start = end
    # The document, and the begin of the first segment, of the second, and its end.
    table = np.array(rows, "int64").reshape(-1, 4)
    segments = _cut(table[:, 1:3].copy(), table[:, 2:4].copy(), longest, random)
    begins, ends = np.hstack(segments).reshape(-1, 2).T
    lengths = ends - begins
    offsets = np.cumsum(lengths) - lengths
    source = np.arange(lengths.sum()) + np.repeat(begins - offsets, lengths)
    word_starts = sentences.word_starts[source]
    # A segment cut within a word begins with the rest of that word.
    word_starts[offsets[lengths > 0]] = True
    return {
        "token_ids": sentences.tokens[source],
        "word_starts": word_starts,
        "lengths": lengths.reshape(-1, 2).sum(1).astype("uint16"),
        "second_starts": lengths[::2].astype("uint16"),
        "documents": table[:, 0].astype("uint32"),
    }


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
