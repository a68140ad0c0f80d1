"""Warn of texts that a vocabulary does not cover, or that are truncated."""

import collections
import math
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from albert_tf_lite.tokens import Tokenizer

# A larger share of unknown tokens is a warning.
MOST_UNKNOWN = 0.05
# Texts, and characters of each, in which the commonest unknown ones are looked for.
SAMPLED = 100
SAMPLED_CHARACTERS = 10_000
NAMED = 10
# Warnings that are not repeated.
REMEMBERED = 1000
_registry: dict[Any, Any] = {}
# Tokens of the vocabulary of the Chinese releases, which has Traditional characters.
RELEASED = 21_128
_IDEOGRAPH = re.compile("[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")


class UnknownTokensWarning(UserWarning):
    """Many tokens of some texts are not in the vocabulary."""


class TruncatedTextsWarning(UserWarning):
    """Texts, or parts of them, are longer than the limit.

    Args:
        count, total: ints, the number of truncated and of all texts.
        limit: string, such as "sequence_length=128 tokens".
        part: string, such as "question", if only that part of a text was truncated.
    """

    def __init__(self, count: int, total: int, limit: str, part: str = ""):
        super().__init__(count, total, limit, part)
        self.count, self.total, self.limit, self.part = count, total, limit, part

    def __str__(self):
        if self.part:
            return (
                f"{self.count:,} of {self.total:,} texts have a {self.part} that is "
                f"longer than {self.limit} and was truncated."
            )
        return (
            f"{self.count:,} of {self.total:,} texts are longer than {self.limit} and "
            "were truncated."
        )


# Warnings that can be sent to another process.
OWN_WARNINGS = (UnknownTokensWarning, TruncatedTextsWarning)


def warn_of_unknown(
    unknown: int, tokens: int, texts: Callable[[], Sequence[str]], tokenizer: Tokenizer
) -> None:
    """Warn if `are_many` of some tokens are unknown.

    Args:
        unknown, tokens: ints, the number of unknown and of all tokens.
        texts: function that returns the texts.
        tokenizer: a tokenizer of `albert_tf_lite` or of `albert_tf`.
    """
    if not are_many(unknown, tokens):
        return
    all_texts = texts()
    total = len(all_texts)
    every = math.ceil(total / SAMPLED)
    sample = [text[:SAMPLED_CHARACTERS] for text in all_texts[::every]]
    counts = unknown_texts(sample, tokenizer)
    plural = "s" if total > 1 else ""
    warning = UnknownTokensWarning(
        f"{unknown / tokens:.1%} of the tokens of {total:,} text{plural} are "
        f"{tokenizer.unk_token}, most often for {', '.join(commonest(counts))}. "
        f"{advice(counts, tokenizer)}"
    )
    warn(warning, stacklevel=4)


def warn(warning: Warning, stacklevel: int = 1) -> None:
    """Issue a warning about texts of a request.

    As `warnings.warn`, which would remember every text of a message for good.
    """
    if len(_registry) > REMEMBERED:
        _registry.clear()
    frame = sys._getframe(1)
    for _ in range(1, stacklevel):
        frame = frame.f_back or frame
    warnings.warn_explicit(
        warning,
        type(warning),
        frame.f_code.co_filename,
        frame.f_lineno,
        frame.f_globals.get("__name__"),
        _registry,
    )


def are_many(unknown: int, tokens: int) -> bool:
    """Return whether more than 5% of some tokens are unknown.

    A single one is not many, unless it is half of the tokens: SentencePiece returns one
    for a whole Chinese sentence.
    """
    return unknown > MOST_UNKNOWN * tokens and (unknown > 1 or tokens < 3)


def unknown_texts(
    texts: Sequence[str], tokenizer: Tokenizer
) -> collections.Counter[str]:
    """Return the characters or words that are unknown, and how often they occur."""
    counts: collections.Counter[str] = collections.Counter()
    rows = tokenizer.rows_with_offsets(texts)
    for text, (ids, starts, ends) in zip(texts, rows, strict=True):
        for number, start, end in zip(ids, starts, ends, strict=True):
            if number == tokenizer.unk_token_id:
                counts[text[start:end]] += 1
    return counts


def commonest(counts: collections.Counter[str]) -> dict[str, int]:
    """Return the commonest characters or words, shortened, and their counts."""
    return {text[:10]: count for text, count in counts.most_common(NAMED)}


def advice(counts: collections.Counter[str], tokenizer: Tokenizer) -> str:
    """Return what to do about unknown characters or words."""
    chinese = sum(count for text, count in counts.items() if _IDEOGRAPH.search(text))
    if 2 * chinese <= counts.total():
        return "Use a checkpoint whose vocabulary covers the texts."
    if unknown_texts(["的"], tokenizer):
        return "Use a Chinese checkpoint."
    more = ""
    if tokenizer.vocabulary_size() < RELEASED:
        more = f", or use a checkpoint with the {RELEASED:,} tokens of the releases"
    return (
        "If they are Traditional Chinese, convert the texts to simplified Chinese, "
        f"for example with OpenCC{more}."
    )


def issue_once(message: Warning | str, issued: set[str]) -> None:
    """Issue a warning of a part of a run, if it is of another kind than before.

    Messages that differ in numbers only are of one kind. `issued` keeps the kinds.
    """
    kind = re.sub("[0-9]+", "", kind_of(message))
    if kind not in issued:
        issued.add(kind)
        warnings.warn(message, stacklevel=3)


def kind_of(message: Warning | str) -> str:
    """Return what is equal in the warnings that one run issues once."""
    is_unknown = isinstance(message, UnknownTokensWarning)
    return type(message).__name__ if is_unknown else str(message)
