"""Turn documents into sentences of tokens, and those into sequences of two segments."""

import dataclasses
import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from albert_tf.pretraining.records.ranges import joined_ranges
from albert_tf.pretraining.records.shard_files import Arrays
from albert_tf_lite.words import tokens_that_begin_words

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


class TokenizedTexts(NamedTuple):
    """The tokens of several texts, joined."""

    ids: np.ndarray  # [tokens]
    starts: np.ndarray  # [tokens], the first character of each token in its text
    ends: np.ndarray  # [tokens], behind its last character
    counts: np.ndarray  # [texts], tokens of each text


@dataclasses.dataclass(frozen=True)
class Sentences:
    """The tokenized sentences of several documents."""

    tokens: np.ndarray  # [tokens], all sentences in order.
    word_starts: np.ndarray  # [tokens], true where a word begins.
    # For each document the index in `tokens` at which each of its sentences begins,
    # then the end of the last.
    documents: list[np.ndarray]


# === Documents to sentences ===


def tokenize_documents(
    documents: list[list[str]],
    tokenize: Callable[[list[str]], TokenizedTexts],
    segmenter: Callable[[str], list[str]] | None,
    split_sentences: Callable[[str], list[str]] | None,
    longest: int,
) -> Sentences:
    """Tokenize documents, lists of lines, and find where their words begin.

    Without a segmenter each token is a word; without `split_sentences` each line is a
    sentence. A sentence of more than `longest` tokens is divided between two words.
    """
    if split_sentences is not None:
        documents = [_sentences_of(lines, split_sentences) for lines in documents]
    texts = list(itertools.chain.from_iterable(documents))
    tokens = _tokenized(texts, tokenize)
    word_starts = np.ones(len(tokens.ids), bool)
    if segmenter is not None:
        word_starts = tokens_that_begin_words(
            texts, tokens.starts, tokens.ends, tokens.counts, segmenter
        )
    # Where in the tokens each sentence begins.
    begins = np.concatenate([[0], np.cumsum(tokens.counts)])
    bounds = []
    first = 0
    for sentences in documents:
        last = first + len(sentences)
        # Sentences without tokens begin where the next one does.
        document = np.unique(begins[first : last + 1])
        if len(document) > 1:
            bounds.append(_divided(document, word_starts, longest))
        first = last
    return Sentences(tokens.ids, word_starts, bounds)


def _sentences_of(
    lines: list[str], split_sentences: Callable[[str], list[str]]
) -> list[str]:
    return [sentence for line in lines for sentence in split_sentences(line)]


def _tokenized(
    texts: list[str], tokenize: Callable[[list[str]], TokenizedTexts]
) -> TokenizedTexts:
    """Tokenize texts in chunks."""
    # Without texts there is an empty chunk, which has the types of the arrays.
    chunks = range(0, max(len(texts), 1), CHUNK)
    parts = [tokenize(texts[i : i + CHUNK]) for i in chunks]
    return TokenizedTexts(
        ids=np.concatenate([part.ids for part in parts]),
        starts=np.concatenate([part.starts for part in parts]),
        ends=np.concatenate([part.ends for part in parts]),
        counts=np.concatenate([part.counts for part in parts]),
    )


def _divided(bounds: np.ndarray, word_starts: np.ndarray, longest: int) -> np.ndarray:
    """Return the bounds of a document's sentences with long ones divided."""
    further: list[int] = []
    for start, length in zip(bounds[:-1], np.diff(bounds), strict=True):
        if length > longest:
            count = -(-length // longest)
            wanted = start + length * np.arange(1, count) // count
            words = start + np.flatnonzero(word_starts[start : start + length])
            # The first word at or behind each wanted place, if there is one.
            nearest = np.searchsorted(words, wanted)
            further.extend(words[nearest[nearest < len(words)]])
    return np.union1d(bounds, further).astype("int64")


# === Sentences to sequences ===


def cut_sequences(
    sentences: Sentences,
    sequence_length: int,
    random: np.random.Generator,
    pairs: bool = True,
    short_sequence_rate: float = 0.1,
    keep_unpaired: bool = False,
) -> Arrays:
    """Cut documents into sequences of two segments as the original code does.

    Sentences are collected up to the sequence length, or a random shorter one for a
    tenth of the sequences, and divided in two between two sentences. Excess tokens are
    cut from the front or back of the longer segment. A sentence that stands alone is
    dropped as in the original, or makes a sequence of one segment. Without `pairs`, all
    sequences have one segment.

    Returns the arrays of `shard_files.ARRAYS`: sequences in text order, whose special
    tokens and order of segments are added when a batch is made.

    Reference:
        google-research/albert `create_pretraining_data.py`,
        `create_instances_from_document`.
    """
    longest = sequence_length - (3 if pairs else 2)
    places = []
    for number, bounds in enumerate(sentences.documents):
        for begin, middle, end in _chosen_sentences(
            bounds, longest, random, pairs, short_sequence_rate
        ):
            if begin < middle < end or not pairs or keep_unpaired:
                places.append((number, begin, middle, end))
    table = np.array(places, "int64").reshape(-1, 4)
    first, second = _fitted(table[:, 1:3], table[:, 2:4], longest, random)
    # The begin and end of the first segment of each sequence, then of its second.
    segments = np.hstack([first, second]).reshape(-1, 2)
    arrays = _gathered(sentences, segments)
    arrays["documents"] = table[:, 0].astype("uint32")
    return arrays


def _chosen_sentences(
    bounds: np.ndarray,
    longest: int,
    random: np.random.Generator,
    pairs: bool,
    short_sequence_rate: float,
) -> list[tuple[int, int, int]]:
    """Return the begin, middle and end of each sequence of a document, in tokens.

        bounds      0      12    20          41    50
                    | s0   | s1  | s2        | s3  | ...
        sequence    begin        middle      end           the next begins at 41

    Without a second segment the middle is the end.
    """
    chosen = []
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
        chosen.append((bounds[start], bounds[middle], bounds[end]))
        start = end
    return chosen


def _fitted(
    first: np.ndarray, second: np.ndarray, longest: int, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Cut the longer segment, token by token, until both fit together.

    Segments are int arrays [sequences, 2] of begins and ends.
    """
    lengths = np.stack([first[:, 1] - first[:, 0], second[:, 1] - second[:, 0]])
    excess = np.maximum(lengths.sum(0) - longest, 0)
    # Until both are equally long, then in turn.
    difference = lengths[0] - lengths[1]
    uneven = np.minimum(np.abs(difference), excess)
    in_turn = excess - uneven
    cut_first = np.where(difference > 0, uneven, 0) + in_turn // 2
    return (
        _shortened(first, cut_first, random),
        _shortened(second, excess - cut_first, random),
    )


def _shortened(
    segments: np.ndarray, count: np.ndarray, random: np.random.Generator
) -> np.ndarray:
    """Cut some tokens of each segment, each from the front or the back by chance."""
    front = random.binomial(count, 0.5)
    return segments + np.stack([front, front - count], axis=1)


def _gathered(sentences: Sentences, segments: np.ndarray) -> Arrays:
    """Return the arrays of sequences, of which these are the segments in turn.

    Args:
        sentences: all of them.
        segments: int array [2 * sequences, 2], begins and ends in the tokens.
    """
    begins, ends = segments[:, 0], segments[:, 1]
    lengths = ends - begins
    source = joined_ranges(begins, lengths)
    word_starts = sentences.word_starts[source]
    # A segment cut within a word begins with the rest of that word.
    firsts = np.cumsum(lengths) - lengths
    word_starts[firsts[lengths > 0]] = True
    return {
        "token_ids": sentences.tokens[source],
        "word_starts": word_starts,
        "lengths": lengths.reshape(-1, 2).sum(1).astype("uint16"),
        "second_starts": lengths[::2].astype("uint16"),
    }
