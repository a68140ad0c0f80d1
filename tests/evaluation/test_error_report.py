"""The error report, with labels and texts that are hard to show."""

import html.parser
import json
import re

import pytest

from albert_tf.evaluation import (
    ErrorList,
    classification_report,
    write_error_report,
)
from albert_tf.evaluation.report import coloured_runs

HARD = '<script>alert("1")</script> & $x^2$\t\r\n好😀'


class Page(html.parser.HTMLParser):
    """Tags, cells and text of a page."""

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
        colours = [{"text": [1] * 8 + [-1] + [0] * (len(HARD) - 9)}]
        note = "By <loss>."
        lists = [ErrorList("mistakes", "Mistakes & more", note, rows, colours)]
    scores = classification_report([0, 0, 1], [0, 1, 1], labels)
    write_error_report(directory, f"A {HARD}", scores, lists, labels)


def test_a_report(tmp_path):
    folder = tmp_path / "new" / "report"
    write(folder)
    assert {path.name for path in folder.iterdir()} == {"report.html", "report.json"}
    assert [path.name for path in folder.parent.iterdir()] == ["report"]

    page = Page((folder / "report.html").read_text("utf-8"))
    assert not {"script", "b", "link", "img", "loss"} & {tag for tag, _ in page.tags}
    # The page needs no other file.
    assert not any({"src", "href"} & attributes.keys() for _, attributes in page.tags)
    assert page.text.count('<script>alert("1")</script> & $x^2$') == 3
    assert "accuracy0.6667" in page.text and "By <loss>." in page.text
    # The confusion matrix, with the shares of each true class as colours.
    assert "好<b>坏好11<b>坏01" in page.text
    styles = [a["style"] for _, a in page.tags if "#" in a.get("style", "")]
    colours = [style[11:18] for style in styles]
    assert colours[:4] == ["#a0c2fa", "#a0c2fa", "#ffffff", "#4285f4"]
    # Of the text.
    assert colours[4:] == ["#4285f4", "#f59628", "#ffffff"]

    values = json.loads((folder / "report.json").read_text("utf-8"))
    assert values["lists"]["mistakes"][0]["text"] == HARD
    assert values["scores"]["confusion_matrix"] == [[1, 1], [0, 1]]


def test_other_files_are_not_touched(tmp_path):
    write(tmp_path)
    before = {path.name for path in tmp_path.iterdir()}
    mine = tmp_path / "thesis.tsv"
    mine.write_text("mine")
    write(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == before | {"thesis.tsv"}
    assert mine.read_text() == "mine"
    with pytest.raises(FileExistsError, match="is a file"):
        write(mine)


def test_characters_are_coloured_by_their_attribution():
    values = [0.5, -0.5, 0.25, 0.001, 0.0, 0.5, 0.5]
    assert coloured_runs("a<b>&😀好", values) == [
        ("a", "#4285f4"),
        ("<", "#f59628"),
        ("b", "#a0c2fa"),
        (">&", None),
        ("😀好", "#4285f4"),
    ]
    assert coloured_runs("ab", [0.0, 0.0]) == [("ab", None)]
    assert coloured_runs("", []) == []
    assert re.fullmatch("#[0-9a-f]{6}", coloured_runs("a", [0.1], strongest=1)[0][1])
