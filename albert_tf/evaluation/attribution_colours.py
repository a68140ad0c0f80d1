"""Colours of characters by what they did for or against an answer."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

import numpy as np

from albert_tf_lite.errors import AlbertError

# Blue for what speaks for the answer, orange for what speaks against it: these two are
# told apart by those who cannot tell red from green.
FOR = (66, 133, 244)
AGAINST = (245, 150, 40)
WHITE = (255, 255, 255)
# Of the strongest character; fainter ones stay without colour.
LEAST_SHARE = 0.05


def character_colours(
    values: Any, strongest: float | None = None
) -> list[tuple[int, int, int] | None]:
    """The background of each character, red, green and blue from 0 to 255.

    Args:
        values: float array [characters], positive where a character speaks for the
            answer.
        strongest: float, the absolute value with the full colour. By default the
            largest of `values`.

    Returns:
        A list, `None` for characters with next to no value.
    """
    values = np.asarray(values, "float64")
    strongest = strongest or np.abs(values).max(initial=0.0) or 1.0
    shares = np.clip(values / strongest, -1, 1)
    return [_colour(share) if abs(share) >= LEAST_SHARE else None for share in shares]


def _colour(share):
    full = FOR if share > 0 else AGAINST
    mixed = (w + (c - w) * abs(share) for w, c in zip(WHITE, full, strict=True))
    return tuple(round(x) for x in mixed)


def coloured_runs(
    text: str, values: Any, strongest: float | None = None
) -> list[tuple[str, tuple[int, int, int] | None]]:
    """A text in pieces of one colour each.

    Args:
        text: string.
        values: float array [characters].
        strongest: as for `character_colours`.

    Returns:
        A list of `(piece, colour)`; the pieces joined are the text.
    """
    if len(values) != len(text):
        raise AlbertError(
            f"`values` should have a number for each of the {len(text)} characters. "
            f"Received {len(values)}."
        )
    runs: list = []
    for character, colour in zip(
        text, character_colours(values, strongest), strict=True
    ):
        if runs and runs[-1][1] == colour:
            runs[-1] = (runs[-1][0] + character, colour)
        else:
            runs.append((character, colour))
    return runs


def attribution_html(
    text: str, values: Sequence[float] | Any, strongest: float | None = None
) -> str:
    """A text as HTML, its characters with coloured backgrounds; all of it is escaped.

    Args:
        text, values, strongest: as for `coloured_runs`.

    Example:

    >>> attribution_html("很好", [0.0, 0.4])
    '很<span style="background:#4285f4;color:#000">好</span>'
    """
    parts = []
    for piece, colour in coloured_runs(text, values, strongest):
        shown = html.escape(piece)
        if colour is not None:
            code = bytes(colour).hex()
            shown = f'<span style="background:#{code};color:#000">{shown}</span>'
        parts.append(shown)
    return "".join(parts)
