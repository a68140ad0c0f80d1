"""Answers to questions: spans of a context, from logits of its windows."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from albert_tf_lite.inputs import check_integer

# Below any log-probability of a span.
NEVER = np.float32(-1e30)


def best_spans(
    windows: Iterable[tuple[int, np.ndarray, np.ndarray]],
    starts: np.ndarray,
    ends: np.ndarray,
    max_length: int,
    count: int = 1,
) -> tuple[list[tuple[float, int, int]], float]:
    """Return the best spans of a context, and the score of no answer.

    The probability of a span is that of its first token times that of its last one,
    each among the tokens of the window and `[CLS]`, which means no answer.

    Args:
        windows: for each window its first token, and the logits [1 + tokens] that an
            answer starts and ends at `[CLS]` and at each token.
        starts, ends: int arrays [tokens], the characters of all tokens of the context.
        max_length: int, in tokens.
        count: int. Maximum number of spans.

    Returns:
        `(spans, null)`: tuples (score, start, end), the best first, and the least score
        of no answer in the windows. Scores are log-probabilities.
    """
    found: dict[tuple[int, int], float] = {}
    null = np.inf
    for offset, *logits in windows:
        first, last = map(log_softmax, logits)
        null = min(null, first[0] + last[0])
        if len(first) == 1:
            continue
        # [tokens, the tokens of a span less one].
        padded = np.append(last[1:], np.full(max_length - 1, NEVER))
        scores = np.lib.stride_tricks.sliding_window_view(padded, max_length)
        scores = (first[1:, np.newaxis] + scores).ravel()
        best: Any = [scores.argmax()]
        if count > 1:
            best = np.argsort(-scores, kind="stable")[:count]
        for i in best:
            token, more = divmod(int(i), max_length)
            if scores[i] > NEVER / 2:
                span = int(starts[offset + token]), int(ends[offset + token + more])
                found[span] = max(scores[i], found.get(span, NEVER))
    ranked = sorted(found.items(), key=lambda item: -item[1])
    return [(float(score), *span) for span, score in ranked[:count]], float(null)


def rank_answers(
    windows: Sequence[tuple],
    settings: dict[str, Any],
    count: int,
    null_threshold: Any = "auto",
    max_answer_length: int | None = None,
) -> list[list[dict[str, Any]]]:
    """Return up to `count` answers per context: `answer`, `start`, `end`, `score`.

    `windows` are for each context its text and the first three arguments of
    `best_spans`. The empty answer stands after the spans whose score is at least that
    of no answer less `null_threshold`. With `None` it is given only if there are no
    spans. By default threshold and length are those of the `settings`.
    """
    if null_threshold == "auto":
        null_threshold = settings["null_threshold"]
    count = check_integer("n_best", count)
    max_length = settings["max_answer_length"]
    if max_answer_length is not None:
        max_length = check_integer("max_answer_length", max_answer_length)
    answers = []
    for context, one, starts, ends in windows:
        spans, null = best_spans(one, starts, ends, max_length, count)
        if null_threshold is not None or not spans:
            place = sum(span[0] >= null - (null_threshold or 0.0) for span in spans)
            spans.insert(place, (null, 0, 0))
        rows = [
            (context[start:end], start, end, float(np.exp(score)))
            for score, start, end in spans[:count]
        ]
        names = ("answer", "start", "end", "score")
        answers.append([dict(zip(names, row, strict=True)) for row in rows])
    return answers


def answer_dicts(
    texts: Any,
    windows: Sequence[tuple],
    settings: dict[str, Any],
    top_k: int = 1,
    null_threshold: Any = "auto",
    max_answer_length: int | None = None,
) -> list:
    """Return the answer to each question, or with another `top_k` a list of them."""
    top_k = check_integer("top_k", top_k)
    options = null_threshold, max_answer_length
    answers = rank_answers(windows, settings, top_k, *options)
    return answers if top_k > 1 else [ranked[0] for ranked in answers]


def answer_arrays(
    windows: Sequence[tuple], settings: dict[str, Any]
) -> dict[str, np.ndarray]:
    """Return `answer`, `start`, `end` and `score` [questions]."""
    answers = answer_dicts(None, windows, settings)
    names = ("answer", "start", "end", "score")
    return {name: np.array([x[name] for x in answers]) for name in names}


def log_softmax(x: np.ndarray) -> np.ndarray:
    """Return the logarithms of the softmax along the last axis."""
    x = x - x.max(axis=-1, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=-1, keepdims=True))
