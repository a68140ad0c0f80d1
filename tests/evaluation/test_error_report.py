"""The lists of an error report by hand, and its page with texts hard to show."""

import html
import json
import re

import numpy as np
import pytest

from albert_tf.evaluation import classification_report, entity_scores, worst_mistakes
from albert_tf_cli.shared.error_report import write_report
from albert_tf_cli.shared.score_output import print_scores

# === Lists ===


def test_mistakes_by_hand():
    probabilities = [[0.9, 0.1, 0], [0.2, 0.5, 0.3], [0.3, 0.4, 0.3], [0, 0, 1]]
    found = worst_mistakes(probabilities, [1, 1, 0, 0])
    assert [row["index"] for row in found] == [3, 0, 2]
    assert list(found[1].values()) == [0, 1, 0, 0.1, 0.9]
    assert len(worst_mistakes(probabilities, [1, 1, 0, 0], count=2)) == 2
    with pytest.raises(ValueError, match="should sum to 1"):
        worst_mistakes([[2.0, -1.5]], [0])


# === The page ===

HARD = '<script>alert("1")</script> & $x^2$\t\r\n好😀'


def write(directory):
    labels = ("好", "<b>坏")
    rows = [{"example": 1, "score": 0.25, "text": HARD}, {"example": 2, "text": "b"}]
    colours = [{"text": [1] * 8 + [-1] + [0] * (len(HARD) - 9)}]
    scores = classification_report([0, 0, 1], [0, 1, 1], labels)
    write_report(directory, f"A {HARD}", scores, rows, colours)


def test_a_report(tmp_path):
    folder = tmp_path / "new" / "report"
    write(folder)
    assert {path.name for path in folder.iterdir()} == {"report.html", "report.json"}
    assert [path.name for path in folder.parent.iterdir()] == ["report"]

    page = (folder / "report.html").read_text("utf-8")
    # The page needs no other file and runs nothing.
    assert not re.search("<(script|b|link|img|loss)[ >]|(src|href)=", page)
    text = html.unescape(re.sub("<.*?>", "", page, flags=re.DOTALL))
    assert text.count('<script>alert("1")</script> & $x^2$') == 3
    assert "accuracy0.6667" in text and "Sorted by loss." in text
    assert "好<b>坏好11<b>坏01" in text
    # The colours of the text.
    colours = re.findall('style="background:(#.{6})', page)
    assert colours == ["#4285f4", "#f59628", "#ffffff"]

    values = json.loads((folder / "report.json").read_text("utf-8"))
    assert values["lists"]["mistakes"][0]["text"] == HARD
    assert values["scores"]["confusion_matrix"] == [[1, 1], [0, 1]]


def test_a_thousand_classes_are_readable(tmp_path, capsys):
    labels = [f"第{i}类的商品" for i in range(1200)]
    # The first three classes are mixed up; of the last one there is no example.
    truth = [*range(1199)] + [0] * 6 + [1] * 3
    predicted = [*range(1199)] + [2] * 6 + [0] * 3
    scores = classification_report(truth, predicted, labels)
    assert "confusion_matrix" not in scores
    first, second = scores["confused_pairs"]
    assert first == {
        **{"truth": labels[0], "predicted": labels[2]},
        **{"count": 6, "support": 7},
    }
    assert (second["truth"], second["predicted"]) == (labels[1], labels[0])

    print_scores(scores)
    printed = capsys.readouterr().out
    assert printed.count("\n") < 200 and max(map(len, printed.split("\n"))) < 1000
    # A row of scores, and pairs.
    assert printed.count(labels[1]) == 2 and printed.count(labels[2]) == 2
    assert labels[1199] not in printed and labels[1000] not in printed
    assert "1,200 classes" in printed and "macro avg" in printed
    rows = [{"example": 1, "loss": 0.5, "text": "好" * 10**6}]
    write_report(tmp_path / "many", "t", scores, rows, [{"text": np.ones(10**6)}])
    page = (tmp_path / "many" / "report.html").read_text("utf-8")
    assert len(page) < 200_000
    assert labels[2] in page and labels[1000] not in page and "report.json has" in page
    values = json.loads((tmp_path / "many" / "report.json").read_text("utf-8"))
    assert labels[1000] in values["scores"]
    assert len(values["lists"]["mistakes"][0]["text"]) == 10**6


def test_entities_of_many_types_are_readable(capsys):
    truth = [[(0, 1, f"type{i:04}"), (2, 3, "last")] for i in range(1000)]
    print_scores(entity_scores(truth, [row[:1] for row in truth]))
    printed = capsys.readouterr().out
    assert printed.count("\n") < 60 and "1,001 classes" in printed
    assert re.search(r"last .* 0.0000 .* 1000 ", printed)


def test_other_files_are_not_touched(tmp_path):
    mine = tmp_path / "thesis.tsv"
    mine.write_text("mine")
    for _ in range(2):
        write(tmp_path)
        assert mine.read_text() == "mine" and len(list(tmp_path.iterdir())) == 3
    with pytest.raises(FileExistsError, match="is a file"):
        write(mine)
