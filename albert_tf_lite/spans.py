"""Answers to questions: spans of a context, from logits of its windows."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from albert_tf_lite.inputs import check_integer

# Below any log-probability of a span.
NEVER = np.float32(-1e30)


# The score below that of no answer from which on a span is an answer. With `None` a
# span always is, with "auto" the model's own setting counts.
NullThreshold: TypeAlias = float | None | Literal["auto"]


class WindowLogits(NamedTuple):
    """The logits of a window of a context."""

    first: int  # The token of the context with which the window begins.
    # That an answer starts and ends at [CLS] and at each token, [1 + tokens].
    starts: np.ndarray
    ends: np.ndarray


class ContextLogits(NamedTuple):
    """The windows of a context, and the characters of its tokens, ints [tokens]."""

    context: str
    windows: list[WindowLogits]
    starts: Sequence[int] | np.ndarray
    ends: Sequence[int] | np.ndarray


def best_spans(
    windows: Iterable[WindowLogits],
    starts: Sequence[int] | np.ndarray,
    ends: Sequence[int] | np.ndarray,
    max_length: int,
    count: int = 1,
) -> tuple[list[tuple[float, int, int]], float]:
    """Return the best spans of a context, and the score of no answer.

    The probability of a span is that of its first token times that of its last one,
    each among the tokens of the window and `[CLS]`, which means no answer.

    Args:
        windows: the windows of the context.
        starts, ends: int arrays [tokens], the characters of all tokens of the context.
        max_length: int, in tokens.
        count: int. Maximum number of spans.

    Returns:
        `(spans, null)`: tuples (score, start, end), the best first, and the least score
        of no answer in the windows. Scores are log-probabilities.
    """
    best: dict[tuple[int, int], float] = {}
    null = np.inf
    for window in windows:
        first, last = log_softmax(window.starts), log_softmax(window.ends)
        null = min(null, first[0] + last[0])
        if len(first) == 1:
            continue
        # No span is longer than the window.
        longest = min(max_length, len(first) - 1)
        # [tokens, the tokens of a span less one].
        padded = np.append(last[1:], np.full(longest - 1, NEVER))
        scores = np.lib.stride_tricks.sliding_window_view(padded, longest)
        scores = (first[1:, np.newaxis] + scores).ravel()
        for i in _highest(scores, count):
            if scores[i] <= NEVER / 2:
                continue
            token, more = divmod(int(i), longest)
            token += window.first
            span = int(starts[token]), int(ends[token + more])
            best[span] = max(scores[i], best.get(span, NEVER))
    ranked = sorted(best.items(), key=lambda item: -item[1])
    return [(float(score), *span) for span, score in ranked[:count]], float(null)


def _highest(scores: np.ndarray, count: int) -> np.ndarray:
    """Return the positions of the highest scores, the highest first."""
    if count == 1:
        # Sorting would take longer than the rest.
        return np.array([scores.argmax()])
    return np.argsort(-scores, kind="stable")[:count]


def rank_answers(
    contexts: Sequence[ContextLogits],
    settings: dict[str, Any],
    count: int,
    null_threshold: NullThreshold = "auto",
    max_answer_length: int | None = None,
) -> list[list[dict[str, Any]]]:
    """Return up to `count` answers per context: `answer`, `start`, `end`, `score`.

    The empty answer stands after the spans whose score is at least that
    of no answer less `null_threshold`. With `None` it is given only if there are no
    spans. By default threshold and length are those of the `settings`.
    """
    threshold = null_threshold
    if threshold == "auto":
        threshold = settings["null_threshold"]
    count = check_integer("n_best", count)
    max_length = settings["max_answer_length"]
    if max_answer_length is not None:
        max_length = check_integer("max_answer_length", max_answer_length)
    answers = []
    for one in contexts:
        spans, null = best_spans(one.windows, one.starts, one.ends, max_length, count)
        if threshold is not None or not spans:
            least = null - float(threshold or 0.0)
            # The spans have descending scores.
            num_better = len([score for score, _, _ in spans if score >= least])
            spans.insert(num_better, (null, 0, 0))
        answers.append([_answer(one.context, *span) for span in spans[:count]])
    return answers


def _answer(context: str, score: float, start: int, end: int) -> dict[str, Any]:
    """Return a span, whose score is a log-probability, as a dict."""
    return {
        "answer": context[start:end],
        "start": start,
        "end": end,
        "score": float(np.exp(score)),
    }


def answer_dicts(
    parts: Sequence[Sequence[str]] | None,
    contexts: Sequence[ContextLogits],
    settings: dict[str, Any],
    top_k: int = 1,
    null_threshold: NullThreshold = "auto",
    max_answer_length: int | None = None,
) -> list:
    """Return the answer to each question, or with another `top_k` a list of them."""
    top_k = check_integer("top_k", top_k)
    answers = rank_answers(contexts, settings, top_k, null_threshold, max_answer_length)
    return answers if top_k > 1 else [ranked[0] for ranked in answers]


def answer_arrays(
    contexts: Sequence[ContextLogits], settings: dict[str, Any]
) -> dict[str, np.ndarray]:
    """Return `answer`, `start`, `end` and `score` [questions]."""
    answers = answer_dicts(None, contexts, settings)
    names = ("answer", "start", "end", "score")
    return {name: np.array([x[name] for x in answers]) for name in names}


def log_softmax(x: np.ndarray) -> np.ndarray:
    """Return the logarithms of the softmax along the last axis."""
    x = x - x.max(axis=-1, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=-1, keepdims=True))
