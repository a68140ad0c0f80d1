"""Answers to the tokens that `fit` learns, and logits to the best answers."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.data.questions import find_answer
from albert_tf.preprocessing.segment_packer import WindowedTexts
from albert_tf_lite.errors import AlbertError

# The log-probability of an impossible span.
NEVER = -1e30


# === Answers in ===


def answer_lists(y: Sequence[Any]) -> list[list[tuple[int | None, str]]]:
    """Return the answers of each example, a list of `(start, text)`.

    An element of `y` is `(start, text)`, a list of such, each of which is correct, or
    no answer: `None`, `""`, an empty text or an empty list.
    """
    lists = []
    for position, given in enumerate(y):
        answers = [x for x in (given if isinstance(given, list) else [given]) if x]
        for answer in answers:
            is_pair = isinstance(answer, (list, tuple)) and len(answer) == 2
            if not is_pair or not isinstance(answer[1], str):
                raise AlbertError(
                    "An answer is `(start, text)`: the first character in the context, "
                    "an int, and a string; or `None`, where the context has none. "
                    f"Element {position} of `y` is {given!r}."
                )
        lists.append([tuple(answer) for answer in answers if answer[1]])
    return lists


def span_targets(
    packed: WindowedTexts, contexts: Sequence[str], y: Sequence[Any]
) -> dict[str, np.ndarray]:
    """Return the first and the last token of the answer, int32 arrays [windows].

    They are 0, that is `[CLS]`, where the window does not contain the whole answer. A
    wrong `start` is replaced by the nearest place of the text. Of several answers, the
    first that the context contains is taken.
    """
    starts, ends = packed.starts.values.numpy(), packed.ends.values.numpy()
    splits = packed.starts.row_splits.numpy()
    tokens, moved = [], 0
    for i, (context, answers) in enumerate(zip(contexts, answer_lists(y), strict=True)):
        places = ((find_answer(context, *answer), *answer) for answer in answers)
        found: Any = next((x for x in places if x[0] is not None), (0, 0, ""))
        start, given, text = found
        if answers and not text:
            raise AlbertError(
                f"The context of element {i} does not contain its answer "
                f"{answers[0][1]!r}. Leave such examples out, as "
                "`albert_tf.data.read_squad(path).for_training()` does."
            )
        moved += given not in (start, None)
        row = slice(splits[i], splits[i + 1])
        first = np.searchsorted(ends[row], start, side="right")
        last = np.searchsorted(starts[row], start + len(text), side="left") - 1
        # The tokenizer may drop all characters of an answer.
        tokens.append((first, last) if text and first <= last else (-1, -1))
    if moved:
        warnings.warn(
            f"{moved} of {len(tokens)} answers do not stand at their `start`, and were "
            "found elsewhere in their contexts.",
            stacklevel=5,
        )
    windows = packed.windows
    first, last = np.array(tokens, "int64")[windows.texts.numpy()].T
    begin, end = windows.starts.numpy(), windows.ends.numpy()
    is_whole = (first >= begin) & (last < end)
    shift = packed.first_lengths.numpy() - begin
    return {
        "start_logits": np.where(is_whole, first + shift, 0).astype("int32"),
        "end_logits": np.where(is_whole, last + shift, 0).astype("int32"),
    }


# === Answers out ===


def best_spans(
    packed: WindowedTexts,
    start_logits: tf.RaggedTensor,
    end_logits: tf.RaggedTensor,
    n_best: int,
    max_answer_length: int,
) -> tuple[tf.Tensor, ...]:
    """Return the most probable different spans of each context; works in a graph.

    The probability of a span is that of its first token times that of its last one,
    each among the tokens of the window's context and `[CLS]`, which means no answer.

    Args:
        packed: questions and contexts in windows.
        start_logits, end_logits: ragged float tensors [windows, (tokens)].
        n_best: int, the number of spans.
        max_answer_length: int, in tokens.

    Returns:
        `(scores, starts, ends, null)`: log-probabilities [contexts, n_best], `NEVER`
        if there are fewer spans; the characters of the spans, int32; and the least
        log-probability of no answer in the windows of each context [contexts].
    """
    scores, firsts, lasts, null = _spans_of_windows(
        start_logits, end_logits, packed.first_lengths, n_best, max_answer_length
    )
    windows, count = packed.windows, packed.starts.nrows()
    shift = (windows.row_starts + windows.starts)[:, tf.newaxis]
    # One more, because impossible spans may end after the last token.
    most = tf.size(packed.starts.values, tf.int64)
    starts, ends = (
        tf.gather(tf.pad(characters, [[0, 1]]), tf.minimum(shift + place, most))
        for characters, place in (
            (packed.starts.values, firsts),
            (packed.ends.values, lasts),
        )
    )
    of_span = tf.repeat(windows.texts, n_best)

    def by_context(values, fill):
        values = tf.reshape(values, [-1])
        rows = tf.RaggedTensor.from_value_rowids(values, of_span, count, validate=False)
        # TensorFlow finds no maximum among none.
        return tf.pad(rows.to_tensor(fill), [[0, 0], [0, 1]], constant_values=fill)

    scores, starts, ends = map(by_context, (scores, starts, ends), (NEVER, 0, 0))
    found = []
    # Take the best, and strike it out in all windows that have it.
    for _ in range(n_best):
        best = tf.argmax(scores, axis=1)
        columns = (tf.gather(x, best, batch_dims=1) for x in (scores, starts, ends))
        score, start, end = (column[:, tf.newaxis] for column in columns)
        found.append((score, start, end))
        scores = tf.where((starts == start) & (ends == end), NEVER, scores)
    scores, starts, ends = (tf.concat(x, axis=1) for x in zip(*found, strict=True))
    return scores, starts, ends, tf.math.segment_min(null, windows.texts)


@tf.function(reduce_retracing=True, autograph=False)
def _spans_of_windows(start_logits, end_logits, first_lengths, n_best, max_length):
    """Return scores, first and last tokens of contexts, and null, per window."""

    def best(window):
        start, end, first = window
        # [CLS] and the context, without the last [SEP].
        start, end = (
            tf.nn.log_softmax(tf.concat([x[:1], x[first:-1]], axis=0))
            for x in (start, end)
        )
        null, start = start[0] + end[0], start[1:]
        # [time, the tokens of a span less one].
        end = tf.pad(end[1:], [[0, max_length]], constant_values=NEVER)
        last = tf.range(tf.size(start))[:, tf.newaxis] + tf.range(max_length)
        scores = tf.reshape(start[:, tf.newaxis] + tf.gather(end, last), [-1])
        scores = tf.pad(scores, [[0, n_best]], constant_values=NEVER)
        scores, index = tf.math.top_k(scores, n_best)
        first, more = index // max_length, index % max_length
        return scores, tf.cast(first, tf.int64), tf.cast(first + more, tf.int64), null

    types = (tf.float32, tf.int64, tf.int64, tf.float32)
    return tf.map_fn(
        best, (start_logits, end_logits, first_lengths), fn_output_signature=types
    )
