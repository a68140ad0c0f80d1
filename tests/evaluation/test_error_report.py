"""The files of an error report, with labels and texts that are hard to show."""

import base64
import html.parser
import json
import re
import warnings

import numpy as np
import pytest
from matplotlib import font_manager
from matplotlib.image import imread

from albert_tf.evaluation import (
    ErrorList,
    attribution_html,
    character_colours,
    check_report_directory,
    classification_report,
    coloured_runs,
    draw_confusion,
    find_font,
    write_error_report,
)

HARD = '<script>alert("1")</script> & $x^2$\t\r\n好😀'


@pytest.fixture
def only_default_fonts(monkeypatch):
    """Hide every installed font that may have Chinese characters."""
    names = ("DejaVu", "Last Resort")
    installed = font_manager.fontManager.ttflist
    fonts = [font for font in installed if font.name.startswith(names)]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", fonts)


def draw_strictly(matrix, labels, path):
    """Draw; a missing glyph is an error, not a warning and a box."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return draw_confusion(matrix, labels, path)


def test_names_without_a_font_are_numbers(tmp_path, only_default_fonts):
    assert find_font(["好评", "差评"]) is None
    picture = tmp_path / "picture.png"
    assert not draw_strictly([[3, 1], [0, 4]], ["好评", "差评"], picture)
    assert imread(picture).std() > 0.05


def test_names_with_a_font_are_drawn(tmp_path, only_default_fonts):
    assert find_font(["café", "ñ"]).get_name() == "DejaVu Sans"
    # A name with dollars is no formula.
    names = ["$100$ \\frac", "a" * 300]
    assert draw_strictly(np.eye(2, dtype=int), names, tmp_path / "a.png")


class Page(html.parser.HTMLParser):
    """Tags and text of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.text += data


def write(directory, lists=None, labels=("好", "<b>坏")):
    rows = [{"example": 1, "score": 0.25, "text": HARD}, {"example": 2, "text": "b"}]
    if lists is None:
        lists = [ErrorList("mistakes", "Mistakes & more", "By <loss>.", rows)]
    scores = classification_report([0, 0, 1], [0, 1, 1], labels)
    return write_error_report(directory, f"A {HARD}", scores, lists, labels)


def test_a_report(tmp_path, only_default_fonts):
    assert not write(tmp_path / "new" / "report")
    folder = tmp_path / "new" / "report"
    names = {"report.html", "report.json", "confusion.png", "mistakes.tsv"}
    assert {path.name for path in folder.iterdir()} == names
    assert [path.name for path in folder.parent.iterdir()] == ["report"]

    page = Page((folder / "report.html").read_text("utf-8"))
    tags = {tag for tag, _ in page.tags}
    assert not {"script", "b", "link", "loss"} & tags
    # Nothing comes from elsewhere.
    sources = [a["src"] for _, a in page.tags if "src" in a]
    assert len(sources) == 1 and not any("href" in a for _, a in page.tags)
    assert base64.b64decode(sources[0].partition("base64,")[2]) == (
        (folder / "confusion.png").read_bytes()
    )
    assert page.text.count('<script>alert("1")</script> & $x^2$') == 3
    assert "accuracy0.6667" in page.text and "By <loss>." in page.text
    assert "No font installed" in page.text and "<b>坏" in page.text

    values = json.loads((folder / "report.json").read_text("utf-8"))
    assert values["lists"]["mistakes"][0]["text"] == HARD
    assert values["scores"]["confusion_matrix"] == [[1, 1], [0, 1]]
    lines = (folder / "mistakes.tsv").read_text("utf-8").split("\n")
    assert lines[0] == "example\tscore\ttext" and lines[1].startswith("1\t0.25\t<scr")
    assert len(lines) == 4 and lines[1].count("\t") == 2


def test_an_older_report_is_replaced(tmp_path):
    folder = tmp_path / "report"
    write(folder, [ErrorList(x, x, x, [{"text": "a"}]) for x in ("first", "second")])
    assert (folder / "first.tsv").exists()
    assert "first.tsv" in check_report_directory(folder)
    write(folder, [ErrorList("second", "", "", [])])
    names = {"report.html", "report.json", "confusion.png", "second.tsv"}
    assert {path.name for path in folder.iterdir()} == names
    assert (folder / "second.tsv").read_text() == ""


def test_other_files_are_not_touched(tmp_path):
    write(tmp_path)
    before = {path.name for path in tmp_path.iterdir()}
    mine = tmp_path / "thesis.tsv"
    mine.write_text("mine")
    with pytest.raises(FileExistsError, match="thesis.tsv, which is no part of one"):
        write(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == before | {"thesis.tsv"}
    with pytest.raises(FileExistsError, match="it is a file"):
        check_report_directory(mine)
    # Nor what only looks like a report.
    for name in before:
        (tmp_path / name).write_text("{")
    with pytest.raises(FileExistsError, match="which is no part of one"):
        check_report_directory(tmp_path)


def test_a_report_that_fails_leaves_the_older_one(tmp_path):
    folder = tmp_path / "report"
    write(folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(ValueError, match="row and a column for each"):
        scores = {"confusion_matrix": [[1]]}
        write_error_report(folder, "Title", scores, labels=["a", "b"])
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert list(tmp_path.iterdir()) == [folder]


def test_characters_are_coloured_by_their_attribution():
    colours = character_colours([0.5, -0.5, 0.25, 0.001, 0.0])
    assert colours[0] == (66, 133, 244) and colours[1] == (245, 150, 40)
    assert colours[2] == (160, 194, 250) and colours[3:] == [None, None]
    assert character_colours([0.0, 0.0]) == [None, None] and not character_colours([])
    text, values = "a<b>&😀", [0, 1, 1, 1, -1, -1]
    runs = coloured_runs(text, values)
    assert "".join(piece for piece, _ in runs) == text and len(runs) == 3
    shown = attribution_html(text, values)
    assert Page(shown).text == text
    assert re.findall("#[0-9a-f]{6}", shown) == ["#4285f4", "#f59628"]
    assert [tag for tag, _ in Page(shown).tags] == ["span", "span"]
    with pytest.raises(ValueError, match="each of the 1 characters"):
        attribution_html("a", [1, 2])
