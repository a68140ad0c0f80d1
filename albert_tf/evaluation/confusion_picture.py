"""A confusion matrix as a picture, with labels in any script."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from albert_tf.evaluation.extra import import_extra
from albert_tf.files import complete_file
from albert_tf_lite.errors import AlbertError

# Fonts for Chinese, the first that is installed; any other that has the characters
# comes after these.
PREFERRED_FONTS = (
    *("Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "Source Han Sans CN"),
    *("Noto Sans CJK JP", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei"),
    *("Microsoft YaHei", "SimHei", "PingFang SC", "PingFang HK", "Heiti SC"),
    *("Hiragino Sans GB", "Arial Unicode MS", "SimSun", "Songti SC", "STSong"),
)
LONGEST_LABEL = 16
# Above so many classes the cells are too small for numbers.
MOST_NUMBERED_CELLS = 30
LARGEST_SIZE = 30.0


def find_font(texts: Iterable[str]) -> Any:
    """The `FontProperties` of an installed font that has all characters of texts.

    Returns:
        That of Matplotlib's default font if it has them, else of the first of
        `PREFERRED_FONTS`, else of any; `None` if no font has all of them.
    """
    manager = import_extra("matplotlib.font_manager")
    wanted = {ord(c) for text in texts for c in text if not c.isspace()}
    default = manager.FontProperties(family=["sans-serif"]).get_name()
    names = {name: i for i, name in enumerate((default, *PREFERRED_FONTS))}

    def rank(font):
        weight = manager.weight_dict.get(font.weight, font.weight)
        regular = (font.style != "normal", abs(weight - 400))
        return (names.get(font.name, len(names)), *regular, font.fname)

    for font in sorted(manager.fontManager.ttflist, key=rank):
        # It has a box for every character.
        if font.name.startswith("Last Resort"):
            continue
        try:
            characters = manager.get_font(font.fname).get_charmap()
        except (OSError, RuntimeError):
            # Removed since Matplotlib made its list, or damaged.
            continue
        if wanted <= characters.keys():
            return manager.FontProperties(fname=font.fname)
    return None


def draw_confusion(matrix: Any, labels: Sequence[str], path: str | os.PathLike) -> bool:
    """Draw a confusion matrix: counts, shaded by their share of the true class.

    Args:
        matrix: int array [classes, classes], a row a true class, a column a predicted
            one.
        labels: the names of the classes.
        path: string, the PNG file to write.

    Returns:
        Whether the classes have their names in the picture. Where no installed font
        has all characters of the names, they have their positions, from 0 on.

    Raises:
        ImportError: if Matplotlib is not installed.
        AlbertError: if the matrix has not a row and a column for each label.
    """
    matrix = np.asarray(matrix)
    if matrix.shape != (len(labels), len(labels)):
        raise AlbertError(
            f"`matrix` should have a row and a column for each of the {len(labels)} "
            f"labels. Received shape {matrix.shape}."
        )
    names = [_shortened(label) for label in labels]
    font = find_font(names)
    if font is None:
        names = [str(i) for i in range(len(labels))]
    # Not pyplot, which would change the caller's backend.
    figures = import_extra("matplotlib.figure")
    size = min(2.5 + 0.45 * len(labels), LARGEST_SIZE)
    figure = figures.Figure(figsize=(size + 1, size), layout="constrained")
    axis = figure.subplots()
    shares = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    image = axis.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    # A dollar in a name begins no formula.
    options = {"parse_math": False, "fontproperties": font}
    axis.set_xticks(range(len(names)), names, rotation=90, **options)
    axis.set_yticks(range(len(names)), names, **options)
    axis.set(xlabel="predicted", ylabel="true")
    figure.colorbar(image, label="share of the true class")
    if len(names) <= MOST_NUMBERED_CELLS:
        for (row, column), number in np.ndenumerate(matrix):
            colour = "white" if shares[row, column] > 0.5 else "black"
            place = {"ha": "center", "va": "center", "fontsize": 8}
            axis.text(column, row, f"{number}", color=colour, **place)
    with complete_file(path) as temporary:
        figure.savefig(temporary, dpi=120, format="png")
    return font is not None


def _shortened(label):
    label = " ".join(label.split())
    return label if len(label) <= LONGEST_LABEL else label[: LONGEST_LABEL - 1] + "…"
