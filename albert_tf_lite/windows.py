"""Texts longer than a model's positions, in windows that overlap."""

from __future__ import annotations

from typing import NamedTuple


class Window(NamedTuple):
    """A window of a text, in its tokens.

    `start` and `end` are what it reads, `first` and `last` what it decides, the end not
    included. Each token is decided by the window in which it is farthest from where the
    text was cut.
    """

    start: int
    end: int
    first: int
    last: int


def windows_of(length: int, size: int, stride: int) -> list[Window]:
    """The windows of a text, as `albert_tf.preprocessing.windows` cuts it.

    Args:
        length: int, tokens of the text.
        size: int, most tokens of a window.
        stride: int, tokens from the start of one window to that of the next. The last
            one ends with the text.
    """
    beyond = max(length - size, 0)
    starts = [min(start, beyond) for start in range(0, beyond + stride, stride)]
    ends = [min(start + size, length) for start in starts]
    # Between two windows in the middle of what they share.
    inner = [
        (start + end + 1) // 2 for start, end in zip(starts[1:], ends, strict=False)
    ]
    return [*map(Window, starts, ends, [0, *inner], [*inner, length])]
