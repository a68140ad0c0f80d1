"""Answers to the tokens that `fit` learns, and logits to the best answers."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.data.questions import find_answer
from albert_tf.preprocessing.question_answering_preprocessor import WindowedContexts
from albert_tf.preprocessing.texts import as_python_strings
from albert_tf_lite.errors import AlbertError

# The log-probability of an impossible span. Not -inf, which a maximum over segments of
# TensorFlow skips.
_NEVER = -1e30
# Windows whose spans are ranked together, each of time * max_answer_length.
_WINDOWS_AT_A_TIME = 64


# === Answers in ===


def in_memory(x: Any, y: Any = None) -> tuple[Any, Any]:
    """Return a dataset of texts as lists; other data as they are.

    The batches of a dataset are `(questions, contexts)`, in a tuple or not, or
    `((questions, contexts), (starts, texts))`.
    """
    is_dataset = isinstance(x, tf.data.Dataset)
    if not is_dataset or tf.nest.flatten(x.element_spec)[0].dtype != tf.string:
        return x, y
    batches = zip(*map(tf.nest.flatten, x), strict=True)
    columns = [as_python_strings(tf.concat(parts, axis=0)) for parts in batches]
    if len(columns) not in (2, 4):
        raise AlbertError(
            "A dataset should have batches ((questions, contexts), (starts, texts)), "
            f"or without answers (questions, contexts). Received: {x.element_spec}"
        )
    questions, contexts, *answers = columns
    return (questions, contexts), list(zip(*answers, strict=True)) if answers else y


def answer_lists(y: Sequence[Any]) -> list[list[tuple[int | None, str]]]:
    """Return the answers of each example, a list of `(start, text)`.

    An element of `y` is `(start, text)`, a list of such, each of which is correct, or
    no answer: `None`, `""`, an empty text or an empty list.
    """
    lists = []
    for position, given in enumerate(y):
        answers = given if isinstance(given, list) else [given]
        answers = [answer for answer in answers if answer is not None and answer != ""]
        for answer in answers:
            try:
                start, text = answer
            except (TypeError, ValueError):
                start, text = None, None
            is_start = start is None or isinstance(start, (int, np.integer))
            if not (is_start and isinstance(text, str)):
                raise AlbertError(
                    "An answer is `(start, text)`: the first character in the context, "
                    "an int, and a string; or `None`, where the context has none. "
                    f"Element {position} of `y` is {given!r}."
                )
        lists.append([tuple(answer) for answer in answers if answer[1]])
    return lists


def answer_characters(
    contexts: Sequence[str], y: Sequence[Any]
) -> list[tuple[int, int] | None]:
    """Return the characters `(start, end)` of each answer, `None` if there is none.

    A wrong `start` is replaced by the nearest place of the text. Of several answers,
    the first that the context contains is taken.
    """
    if y is None or len(y) == 0 or len(y) != len(contexts):
        raise AlbertError(
            "`x` and `y` must have the same number of examples, at least one. "
            f"Received: {len(contexts)} contexts and "
            f"{'no' if y is None else len(y)} answers."
        )
    spans: list[tuple[int, int] | None] = []
    moved = 0
    for i, (context, answers) in enumerate(zip(contexts, answer_lists(y), strict=True)):
        places = ((find_answer(context, *answer), *answer) for answer in answers)
        start, given, text = next((x for x in places if x[0] is not None), (None,) * 3)
        if start is not None and text is not None:
            moved += given not in (start, None)
            spans.append((start, start + len(text)))
        elif answers:
            raise AlbertError(
                f"The context of element {i} does not contain its answer "
                f"{answers[0][1]!r}. Leave such examples out, as "
                "`albert_tf.data.read_squad(path).for_training()` does."
            )
        else:
            spans.append(None)
    if moved:
        warnings.warn(
            f"{moved} of {len(spans)} answers do not stand at their `start`, and were "
            "found elsewhere in their contexts.",
            stacklevel=6,
        )
    return spans


def span_targets(
    contexts: WindowedContexts, spans: Sequence[tuple[int, int] | None]
) -> dict[str, np.ndarray]:
    """Return the first and the last token of the answer, int32 arrays [windows].

    They are 0, that is `[CLS]`, where the window does not contain the whole answer.
    """
    splits = contexts.starts.row_splits.numpy()[1:-1]
    rows = (
        np.split(x.values.numpy(), splits) for x in (contexts.starts, contexts.ends)
    )
    tokens = [_tokens(*row) for row in zip(*rows, spans, strict=True)]
    pairs = zip(tokens, spans, strict=True)
    lost = sum(first < 0 and span is not None for (first, _), span in pairs)
    if lost:
        warnings.warn(
            f"{lost} of {len(spans)} answers have only characters that the tokenizer "
            "drops. They are learned as no answer.",
            stacklevel=6,
        )
    windows = contexts.windows
    first, last = np.array(tokens, "int64")[windows.texts.numpy()].T
    starts, ends = windows.starts.numpy(), windows.ends.numpy()
    is_whole = (first >= starts) & (last < ends)
    shift = contexts.first_lengths.numpy() - starts
    return {
        "start_logits": np.where(is_whole, first + shift, 0).astype("int32"),
        "end_logits": np.where(is_whole, last + shift, 0).astype("int32"),
    }


def _tokens(starts, ends, span):
    """Return the first and the last token of a span of characters, or -1 twice."""
    if span is None:
        return -1, -1
    first = np.searchsorted(ends, span[0], side="right")
    last = np.searchsorted(starts, span[1], side="left") - 1
    return (first, last) if first <= last else (-1, -1)


# === Answers out ===


def best_spans(
    contexts: Any,
    logits: dict[str, list[np.ndarray]],
    n_best: int,
    max_answer_length: int,
) -> tuple[np.ndarray, ...]:
    """Return the `spans_of_contexts` for logits of windows in memory.

    `logits` has `start_logits` and `end_logits`, one float array [tokens] per window.
    """
    parts = []
    for begin in range(0, len(contexts), _WINDOWS_AT_A_TIME):
        rows = slice(begin, begin + _WINDOWS_AT_A_TIME)
        start, end = (
            tf.ragged.stack(logits[name][rows]).to_tensor()
            for name in ("start_logits", "end_logits")
        )
        lengths, first_lengths = contexts.lengths[rows], contexts.first_lengths[rows]
        options = n_best, max_answer_length
        parts.append(spans_of_windows(start, end, lengths, first_lengths, *options))
    scores, starts, ends, null = (
        tf.concat(part, axis=0) for part in zip(*parts, strict=True)
    )
    found = spans_of_contexts(contexts, scores, starts, ends, null, n_best)
    return tuple(part.numpy() for part in found)


def spans_of_windows(
    start_logits: tf.Tensor,
    end_logits: tf.Tensor,
    lengths: tf.Tensor,
    first_lengths: tf.Tensor,
    n_best: int,
    max_answer_length: int,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
    """Return the most probable spans of each window.

    The probability of a span is that of its first token times that of its last one,
    each among the tokens of the context and `[CLS]`, which means no answer. The first
    `first_lengths` of the `lengths` tokens of a window are before the context.

    Returns `(scores, starts, ends, null)`: log-probabilities [windows, n_best],
    `_NEVER` if there are fewer spans; first and last tokens, int64; and the
    log-probability of no answer [windows].
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
    """Return the best different spans over the windows of each context, in characters.

    Takes and returns what `spans_of_windows` does, per context. The log-probability of
    no answer is the least of the windows: there is none only if no window has one.
    """
    count, each = contexts.starts.nrows(), tf.shape(scores)[1]
    of_window = contexts.windows.texts
    window = tf.repeat(tf.range(tf.size(of_window, tf.int64)), each)
    example = tf.gather(of_window, window)
    scores, starts, ends = (tf.reshape(x, [-1]) for x in (scores, starts, ends))
    starts, ends = contexts.characters(window, starts, ends)
    spans = tf.range(tf.size(scores, tf.int64))
    found = []
    # Take the best, and strike it out in all windows that have it, `n_best` times.
    for _ in range(n_best):
        best = tf.math.unsorted_segment_max(scores, example, count)
        is_best = scores == tf.gather(best, example)
        row = tf.where(is_best, spans, tf.constant(tf.int64.max, tf.int64))
        row = tf.math.unsorted_segment_min(row, example, count)
        start, end = tf.gather(starts, row), tf.gather(ends, row)
        found.append((best, start, end))
        taken = (starts == tf.gather(start, example)) & (
            ends == tf.gather(end, example)
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
    """Return `answer`, `start`, `end` and `score` of each context, in a graph."""
    scores, starts, ends, null = spans_of_windows(
        logits["start_logits"],
        logits["end_logits"],
        contexts.lengths,
        contexts.first_lengths,
        1,
        max_answer_length,
    )
    *spans, null = spans_of_contexts(contexts, scores, starts, ends, null, 1)
    score, start, end = (part[:, 0] for part in spans)
    is_null = score < _NEVER / 2
    if null_threshold is not None:
        is_null |= null - null_threshold > score
    start, end = (tf.where(is_null, 0, x) for x in (start, end))
    return {
        "answer": tf.strings.substr(texts, start, end - start, "UTF8_CHAR"),
        "start": start,
        "end": end,
        "score": tf.exp(tf.where(is_null, null, score)),
    }


def ranked_answers(
    context: str,
    scores: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
    null: float,
    null_threshold: float | None,
) -> list[dict[str, Any]]:
    """Return the answers of one context as dicts, the best first.

    No answer is ranked by its log-probability less the `null_threshold`. For `None` it
    is left out, unless there is no other.
    """
    answers = [
        {
            "answer": context[start:end],
            "start": int(start),
            "end": int(end),
            "score": float(np.exp(score)),
        }
        for score, start, end in zip(scores, starts, ends, strict=True)
        if score > _NEVER / 2
    ]
    if null_threshold is not None or not answers:
        place = int(np.sum(scores >= null - (null_threshold or 0.0)))
        no_answer = {"answer": "", "start": 0, "end": 0, "score": float(np.exp(null))}
        answers.insert(place, no_answer)
    return answers
