"""Texts whose characters are coloured by their contribution to an answer."""

import html
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

# Blue supports the prediction and orange opposes it. People who cannot tell red from
# green can tell these apart.
SUPPORTS = (66, 133, 244)
OPPOSES = (245, 150, 40)
# Characters below this share of the strongest one have no colour.
LEAST_SHARE = 0.05


def coloured_html(
    text: str, values: npt.ArrayLike, strongest: float | None = None
) -> str:
    """Return a text as HTML in the colours of `coloured_runs`."""
    return "".join(
        f'<span style="background:{colour or "#ffffff"};color:#000">'
        f"{html.escape(piece)}</span>"
        for piece, colour in coloured_runs(text, values, strongest)
    )


def coloured_runs(
    text: str, values: npt.ArrayLike, strongest: float | None = None
) -> list[tuple[str, str | None]]:
    """Split a text into pieces of one colour, such as `"#4285f4"`, or `None`.

    `values` [characters] are positive where a character supports the prediction. The
    absolute value `strongest`, by default the largest, has the full colour.
    """
    contributions = np.asarray(values, "float64")
    if not strongest:
        strongest = np.abs(contributions).max(initial=0.0)
    shares = np.zeros_like(contributions)
    if strongest:
        shares = np.clip(contributions / strongest, -1, 1)
    runs: list[tuple[str, str | None]] = []
    for character, share in zip(text, shares, strict=True):
        colour = _colour(share) if abs(share) >= LEAST_SHARE else None
        if runs and runs[-1][1] == colour:
            run, _ = runs.pop()
            runs.append((run + character, colour))
        else:
            runs.append((character, colour))
    return runs


def strongest_of(values: Sequence[Sequence[float]]) -> float:
    """Return the largest absolute value for the texts of an example, at least 0."""
    return max((abs(x) for of_text in values for x in of_text), default=0.0)


def _colour(share):
    """Return the colour of a share from -1 to 1, white at 0."""
    full = SUPPORTS if share > 0 else OPPOSES
    return "#" + bytes(round(255 + (c - 255) * abs(share)) for c in full).hex()
