"""From the logits of each token to the best spans of each context."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.preprocessing.question_answering_preprocessor import (
    WindowedContexts,
)

# The log-probability of what is no span. Not -inf, which a maximum over segments of
# TensorFlow passes over.
_NEVER = -1e30
# Windows whose spans are ranked together, each of time * max_answer_length.
_WINDOWS_AT_A_TIME = 64


def best_spans(
    contexts: WindowedContexts,
    logits: dict[str, list[np.ndarray]],
    n_best: int,
    max_answer_length: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The best spans of each context; see `spans_of_contexts`.

    Args:
        contexts: `WindowedContexts`.
        logits: dict of `start_logits` and `end_logits`, each a list of float arrays
            [tokens], one a window.
        n_best: int. Spans of a context.
        max_answer_length: int, in tokens.
    """
    parts = []
    for begin in range(0, len(contexts), _WINDOWS_AT_A_TIME):
        rows = slice(begin, begin + _WINDOWS_AT_A_TIME)
        start, end = (
            tf.ragged.stack(logits[name][rows]).to_tensor()
            for name in ("start_logits", "end_logits")
        )
        lengths = contexts.tokens.row_lengths()[rows], contexts.first_lengths[rows]
        parts.append(spans_of_windows(start, end, *lengths, n_best, max_answer_length))
    joined = [tf.concat(part, axis=0) for part in zip(*parts, strict=True)]
    found = spans_of_contexts(contexts, *joined, n_best)
    return tuple(part.numpy() for part in found)


def spans_of_windows(
    start_logits: tf.Tensor,
    end_logits: tf.Tensor,
    lengths: tf.Tensor,
    first_lengths: tf.Tensor,
    n_best: int,
    max_answer_length: int,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
    """The most probable spans of each window.

    The probability of a span is that of its first token times that of its last one,
    each among `[CLS]`, which stands for no answer, and the tokens of the context.

    Args:
        start_logits, end_logits: float tensors [windows, time].
        lengths: int64 tensor [windows], all tokens.
        first_lengths: int64 tensor [windows], the tokens before the context.
        n_best: int. Spans of a window.
        max_answer_length: int, in tokens.

    Returns:
        `(scores, starts, ends, null)`: the log-probability of the spans, float
        [windows, n_best], see `is_span`; their first and last token, int64;
        and the log-probability of no answer, [windows].
    """
    time = tf.shape(start_logits)[1]
    position = tf.range(tf.cast(time, tf.int64))[tf.newaxis]
    # The last token is a [SEP].
    is_context = (position >= first_lengths[:, tf.newaxis]) & (
        position < lengths[:, tf.newaxis] - 1
    )
    allowed = is_context | (position == 0)
    start, end = (
        tf.nn.log_softmax(tf.where(allowed, logits, _NEVER))
        for logits in (start_logits, end_logits)
    )
    null = start[:, 0] + end[:, 0]
    start, end = (tf.where(is_context, x, _NEVER) for x in (start, end))
    # [windows, time, the tokens of a span less one].
    most = tf.minimum(max_answer_length, time)
    last = tf.range(time)[:, tf.newaxis] + tf.range(most)[tf.newaxis]
    end = tf.pad(end, [[0, 0], [0, most - 1]], constant_values=_NEVER)
    scores = start[:, :, tf.newaxis] + tf.gather(end, last, axis=1)
    scores = tf.reshape(scores, [-1, time * most])
    # For a window of fewer spans.
    scores = tf.pad(scores, [[0, 0], [0, n_best]], constant_values=_NEVER)
    scores, index = tf.math.top_k(scores, n_best)
    starts, more = tf.cast(index // most, tf.int64), tf.cast(index % most, tf.int64)
    return scores, starts, starts + more, null


def spans_of_contexts(
    contexts: WindowedContexts,
    scores: tf.Tensor,
    starts: tf.Tensor,
    ends: tf.Tensor,
    null: tf.Tensor,
    n_best: int,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
    """The best spans over the windows of each context, in characters.

    Args:
        contexts: `WindowedContexts`.
        scores, starts, ends, null: what `spans_of_windows` gives.
        n_best: int. Spans of a context, all different.

    Returns:
        The same four of the contexts: float, int32 and int32 [examples, n_best], and
        float [examples], the least of its windows: there is no answer only if none of
        them has one.
    """
    count, each = contexts.starts.nrows(), tf.shape(scores)[1]
    of_window = contexts.windows.texts
    window = tf.repeat(tf.range(tf.size(of_window, tf.int64)), each)
    example = tf.gather(of_window, window)
    scores, starts, ends = (tf.reshape(x, [-1]) for x in (scores, starts, ends))
    starts, ends = contexts.characters(window, starts, ends)
    spans = tf.range(tf.size(scores, tf.int64))
    found = []
    # The best is taken and struck out, in all windows that have it, `n_best` times.
    for _ in range(n_best):
        best = tf.math.unsorted_segment_max(scores, example, count)
        is_best = scores == tf.gather(best, example)
        row = tf.where(is_best, spans, tf.constant(tf.int64.max, tf.int64))
        row = tf.math.unsorted_segment_min(row, example, count)
        chosen = [best, tf.gather(starts, row), tf.gather(ends, row)]
        found.append(chosen)
        taken = (starts == tf.gather(chosen[1], example)) & (
            ends == tf.gather(chosen[2], example)
        )
        scores = tf.where(taken, _NEVER, scores)
    scores, starts, ends = (tf.stack(x, axis=1) for x in zip(*found, strict=True))
    null = tf.math.unsorted_segment_min(null, of_window, count)
    return scores, starts, ends, null


def served_answers(
    texts: tf.Tensor,
    contexts: WindowedContexts,
    logits: dict[str, tf.Tensor],
    max_answer_length: int,
    null_threshold: float | None,
) -> dict[str, tf.Tensor]:
    """The best answer of each context, in a graph.

    Args:
        texts: string tensor [examples], the contexts.
        contexts: `WindowedContexts` of these.
        logits: dict of `start_logits` and `end_logits`, float tensors [windows, time].
        max_answer_length: int, in tokens.
        null_threshold: as for `ranked_answers`.

    Returns:
        A dict of tensors [examples]: `answer`, string, `start` and `end`, int32, and
        `score`, float.
    """
    lengths = contexts.tokens.row_lengths(), contexts.first_lengths
    logits = logits["start_logits"], logits["end_logits"]
    found = spans_of_windows(*logits, *lengths, 1, max_answer_length)
    *spans, null = spans_of_contexts(contexts, *found, n_best=1)
    score, start, end = (part[:, 0] for part in spans)
    is_null = ~is_span(score)
    if null_threshold is not None:
        is_null |= null - null_threshold > score
    start, end = (tf.where(is_null, 0, x) for x in (start, end))
    return {
        "answer": tf.strings.substr(texts, start, end - start, "UTF8_CHAR"),
        "start": start,
        "end": end,
        "score": tf.exp(tf.where(is_null, null, score)),
    }


def is_span(score: Any) -> Any:
    """Whether there is a span with this score; if there are too few, some are none."""
    return score > _NEVER / 2


def ranked_answers(
    context: str,
    scores: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
    null: float,
    null_threshold: float | None,
) -> list[dict[str, Any]]:
    """The answers of one context as dicts, the best first.

    Args:
        context: string.
        scores, starts, ends, null: a row of what `best_spans` gives.
        null_threshold: optional float. No answer stands where its log-probability less
            this puts it. `None` leaves it out, unless there is no other.
    """
    answers = [
        {
            "answer": context[start:end],
            "start": int(start),
            "end": int(end),
            "score": float(np.exp(score)),
        }
        for score, start, end in zip(scores, starts, ends, strict=True)
        if is_span(score)
    ]
    if null_threshold is not None or not answers:
        place = int(np.sum(scores >= null - (null_threshold or 0.0)))
        no_answer = {"answer": "", "start": 0, "end": 0, "score": float(np.exp(null))}
        answers.insert(place, no_answer)
    return answers
