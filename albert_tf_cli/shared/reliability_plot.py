"""The reliability plot of a report: the accuracy of answers by their score, as SVG."""

from collections.abc import Sequence
from typing import Any

# Pixels of a side of the plot, and of the margin with the numbers of the axes.
_SIDE, _MARGIN = 300, 48
_TICKS = (0, 0.2, 0.4, 0.6, 0.8, 1)


def reliability_svg(bins: Sequence[dict[str, Any]]) -> str:
    """Return a plot of the rows of `albert_tf.evaluation.reliability_bins`.

    A bar is the accuracy of the answers in an interval of scores, the darker, the more
    answers; on the diagonal, score and accuracy are equal. Lines and text have the
    colour of the page.
    """
    most = max(row["count"] for row in bins)
    size = _SIDE + 2 * _MARGIN
    parts = [_bar(row, row["count"] / most) for row in bins]
    parts.append(_line(0, 0, 1, 1, 'stroke-dasharray="4"'))
    for tick in _TICKS:
        parts.append(_line(tick, 0, tick, 1, 'stroke-opacity="0.15"'))
        parts.append(_line(0, tick, 1, tick, 'stroke-opacity="0.15"'))
        parts.append(_text(_x(tick), _y(0) + 16, "middle", f"{tick:g}"))
        parts.append(_text(_x(0) - 8, _y(tick) + 4, "end", f"{tick:g}"))
    parts.append(_text(_x(0.5), _y(0) + 36, "middle", "score"))
    parts.append(_text(_x(0), _y(1) - 12, "middle", "accuracy"))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{size}" height="{size}" '
        f'viewBox="0 0 {size} {size}" font-size="12" fill="currentColor" role="img" '
        f'aria-label="Reliability plot">{"".join(parts)}</svg>'
    )


def _x(score: float) -> float:
    return round(_MARGIN + _SIDE * score, 1)


def _y(accuracy: float) -> float:
    return round(_MARGIN + _SIDE * (1 - accuracy), 1)


def _bar(row, share):
    """Return the bar of an interval, with its numbers where the mouse points."""
    low, high, top = _x(row["low"]), _x(row["high"]), _y(row["accuracy"])
    numbers = (
        f"score {row['score']:.3f}, accuracy {row['accuracy']:.3f}, "
        f"{row['count']:,} answers"
    )
    return (
        f'<rect x="{low}" y="{top}" width="{high - low:.1f}" '
        f'height="{_y(0) - top:.1f}" fill="#4285f4" '
        f'fill-opacity="{0.25 + 0.75 * share:.2f}"><title>{numbers}</title></rect>'
    )


def _line(x1, y1, x2, y2, style):
    return (
        f'<line x1="{_x(x1)}" y1="{_y(y1)}" x2="{_x(x2)}" y2="{_y(y2)}" '
        f'stroke="currentColor" {style}/>'
    )


def _text(x, y, anchor, text):
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}">{text}</text>'
