"""What `fit` is given as answers, and the tokens that they are."""

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


def in_memory(x: Any, y: Any = None) -> tuple[Any, Any]:
    """A dataset of questions and contexts as lists; what else `fit` takes as it is.

    Args:
        x: a `tf.data.Dataset` of batches `(questions, contexts)`, in a tuple or not, or
            `((questions, contexts), (starts, texts))`; or anything else.
        y: answers that go with something else.
    """
    is_dataset = isinstance(x, tf.data.Dataset)
    if not is_dataset or tf.nest.flatten(x.element_spec)[0].dtype != tf.string:
        return x, y
    parts = zip(*map(tf.nest.flatten, x), strict=True)
    parts = [as_python_strings(tf.concat(part, axis=0)) for part in parts]
    if len(parts) not in (2, 4):
        raise AlbertError(
            "A dataset should have batches ((questions, contexts), (starts, texts)), "
            f"or without answers (questions, contexts). Received: {x.element_spec}"
        )
    questions, contexts, *answers = parts
    return (questions, contexts), list(zip(*answers, strict=True)) if answers else y


def answer_lists(y: Sequence[Any]) -> list[list[tuple[int | None, str]]]:
    """The answers of each example, a list of `(start, text)`, empty for no answer.

    Args:
        y: for each example `(start, text)`, a list of such, of which each is right;
            or no answer: `None`, `""`, an empty text or an empty list.
    """
    lists = []
    for position, given in enumerate(y):
        answers = given if isinstance(given, list) else [given]
        answers = [answer for answer in answers if answer is not None and answer != ""]
        for answer in answers:
            if not (
                isinstance(answer, (tuple, list))
                and len(answer) == 2
                and isinstance(answer[1], str)
                and (answer[0] is None or isinstance(answer[0], (int, np.integer)))
            ):
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
    """The characters `(start, end)` of each example's answer, `None` if it has none.

    An answer that is not at its `start` is looked for, and the nearest place taken; of
    several answers it is the first that the context holds.

    Raises:
        AlbertError: if there are not as many as contexts, one is no answer, or a
            context holds none of its answers.
    """
    if y is None or len(y) == 0 or len(y) != len(contexts):
        raise AlbertError(
            "`x` and `y` must have the same number of examples, at least one. "
            f"Received: {len(contexts)} contexts and "
            f"{'no' if y is None else len(y)} answers."
        )
    spans, moved = [], 0
    for i, (context, answers) in enumerate(zip(contexts, answer_lists(y), strict=True)):
        found = [(find_answer(context, *answer), *answer) for answer in answers]
        found = [place for place in found if place[0] is not None]
        if answers and not found:
            raise AlbertError(
                f"The context of element {i} does not hold its answer "
                f"{answers[0][1]!r}. Leave such out, as "
                "`albert_tf.data.read_squad(path).for_training()` does."
            )
        if found:
            start, given, text = found[0]
            moved += given not in (start, None)
            spans.append((start, start + len(text)))
        else:
            spans.append(None)
    if moved:
        warnings.warn(
            f"{moved} of {len(spans)} answers are not where their `start` says, and "
            "were found elsewhere in their contexts.",
            stacklevel=6,
        )
    return spans


def span_targets(
    contexts: WindowedContexts, spans: Sequence[tuple[int, int] | None]
) -> dict[str, np.ndarray]:
    """The first and the last token of the answer in each window.

    Args:
        contexts: `WindowedContexts`.
        spans: what `answer_characters` gives.

    Returns:
        A dict of int32 arrays [windows], 0, that is `[CLS]`, where the window does not
        hold the whole answer.
    """
    tokens = np.array(
        [_tokens(*row) for row in zip(*_rows(contexts), spans, strict=True)], "int64"
    )
    lost = sum(
        first < 0 and span is not None
        for (first, _), span in zip(tokens, spans, strict=True)
    )
    if lost:
        warnings.warn(
            f"{lost} of {len(spans)} answers are of characters only that the tokenizer "
            "drops, and are taken for no answer.",
            stacklevel=6,
        )
    windows = contexts.windows
    first, last = tokens[windows.texts.numpy()].T
    starts, ends = windows.starts.numpy(), windows.ends.numpy()
    is_whole = (first >= starts) & (last < ends)
    shift = contexts.first_lengths.numpy() - starts
    return {
        "start_logits": np.where(is_whole, first + shift, 0).astype("int32"),
        "end_logits": np.where(is_whole, last + shift, 0).astype("int32"),
    }


def _rows(contexts):
    """Where the tokens of each context start, and where they end."""
    splits = contexts.starts.row_splits.numpy()[1:-1]
    return (
        np.split(offsets.values.numpy(), splits)
        for offsets in (contexts.starts, contexts.ends)
    )


def _tokens(starts, ends, span):
    """The first and the last token of a span of characters, -1 if it has none."""
    if span is None:
        return -1, -1
    first = np.searchsorted(ends, span[0], side="right")
    last = np.searchsorted(starts, span[1], side="left") - 1
    return (first, last) if first <= last else (-1, -1)
