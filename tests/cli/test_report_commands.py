"""`evaluate --report` and `predict --explain`, as their user sees them."""

import json
import re

import numpy as np
import pytest
from command_line import run
from matplotlib import font_manager
from rich.console import Console
from small_classifier import LABELS, TEXTS, VOCABULARY, small_backbone, small_classifier

import albert_tf_cli
import albert_tf_cli.tasks
from albert_tf.models import (
    AlbertTextRegressor,
    AlbertTokenClassifier,
    integrated_gradients,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore:.* texts are longer than"),
]

NAMES = ["好评", "<b>差", "中"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A classifier of three classes, one of pairs, others; and their data."""
    folder = tmp_path_factory.mktemp("report")
    small_classifier(labels=NAMES).save_to_preset(folder / "single")
    small_classifier(pairs=True).save_to_preset(folder / "pairs")
    multi = small_classifier(labels=NAMES, multi_label=True)
    multi.save_to_preset(folder / "multi")
    tagger = AlbertTokenClassifier.from_backbone(
        small_backbone(), VOCABULARY, labels=["PER", "LOC"]
    )
    tagger.save_to_preset(folder / "tagger")
    AlbertTextRegressor.from_backbone(small_backbone(), VOCABULARY).save_to_preset(
        folder / "regressor"
    )
    texts = [text or "空" for text in TEXTS]
    rows = [
        f"{NAMES[label]}\t{text}" for label, text in zip(LABELS, texts, strict=True)
    ]
    (folder / "test.tsv").write_text("\n".join(["label\ttext", *rows * 3]) + "\n")
    rows = [row.replace("\t", "|中\t") for row in rows]
    (folder / "multi.tsv").write_text("\n".join(["label\ttext", *rows]) + "\n")
    (folder / "pairs.tsv").write_text("label\ttext\ttext_b\n0\t好\t很好\n1\t差\t吃\n")
    (folder / "tags.txt").write_text("小 B-PER\n明 I-PER\n在 O\n\n大 B-LOC\n地 I-LOC\n")
    (folder / "texts.txt").write_text("很好\n\n太差了\n好吃<i>\n很好\n")
    return folder


def test_a_report_of_a_classifier(folder, tmp_path, monkeypatch):
    fonts = [
        font
        for font in font_manager.fontManager.ttflist
        if font.name.startswith("DejaVu")
    ]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", fonts)
    result = run(
        *("evaluate", folder / "single", folder / "test.tsv", "--json"),
        *("--report", tmp_path / "report", "--train", folder / "test.tsv"),
        *("--unlabelled", folder / "texts.txt"),
    )
    assert "report.html" in result.stderr and "No installed font" in result.stderr
    values = json.loads((tmp_path / "report" / "report.json").read_text("utf-8"))
    assert values["scores"] == json.loads(result.stdout)
    mistakes, suspicious, to_label = values["lists"].values()
    assert list(values["lists"]) == ["mistakes", "suspicious", "to_label"]
    # As many as the matrix has beside its diagonal.
    matrix = np.array(values["scores"]["confusion_matrix"])
    assert len(mistakes) == matrix.sum() - matrix.trace() > 0
    lines = (folder / "test.tsv").read_text().split("\n")
    for row in mistakes:
        assert lines[row["example"]] == f"{row['label']}\t{row['text']}"
        assert row["predicted"] != row["label"] and row["of_label"] < row["probability"]
    shares = [row["of_label"] for row in mistakes]
    assert shares == sorted(shares)
    assert all(row["label"] != row["suggested"] for row in suspicious)
    # The text that is there twice only once.
    assert {row["text"] for row in to_label} == {"很好", "太差了", "好吃<i>"}
    assert len(to_label) == 3
    page = (tmp_path / "report" / "report.html").read_text("utf-8")
    assert "<span style=" in page and "<b>" not in page and "好吃&lt;i&gt;" in page
    assert {path.name for path in (tmp_path / "report").iterdir()} == {
        *("report.html", "report.json", "confusion.png"),
        *("mistakes.tsv", "suspicious.tsv", "to_label.tsv"),
    }


@pytest.mark.slow
def test_reports_of_pairs_and_label_lists_and_tags(folder, tmp_path):
    run("evaluate", folder / "pairs", folder / "pairs.tsv", "--report", tmp_path / "a")
    run("evaluate", folder / "multi", folder / "multi.tsv", "--report", tmp_path / "b")
    text = (tmp_path / "b" / "mistakes.tsv").read_text()
    assert text.startswith("example\tmissed\twrong\tloss\ttext\n")
    assert re.search(r"\t(好评|<b>差|中) 0\.\d{4}", text)
    assert not (tmp_path / "b" / "confusion.png").exists()
    mistakes = json.loads((tmp_path / "a" / "report.json").read_text())["lists"]
    for row in mistakes["mistakes"]:
        assert (row["text"], row["text_b"]) in {("好", "很好"), ("差", "吃")}


def test_a_report_of_a_tagger(folder, tmp_path):
    pytest.importorskip("seqeval", reason="seqeval is not installed")
    run("evaluate", folder / "tagger", folder / "tags.txt", "--report", tmp_path / "c")
    values = json.loads((tmp_path / "c" / "report.json").read_text("utf-8"))
    (first, *_) = values["lists"]["mistakes"]
    assert "小明/PER@0" in first["missed"] or "大地/LOC@0" in first["missed"]
    assert "precision" in values["scores"]["types"]["PER"]


def test_what_cannot_be_reported(folder, tmp_path):
    report = ("--report", tmp_path / "report")
    with pytest.raises(ValueError, match="--train and --unlabelled need --report"):
        run("evaluate", folder / "single", folder / "test.tsv", "--train", "x")
    with pytest.raises(ValueError, match="tasks: text-classification, multi-label, t"):
        run("evaluate", folder / "regressor", folder / "test.tsv", *report)
    with pytest.raises(ValueError, match="--train is .* text-classification. This one"):
        run(
            "evaluate",
            folder / "multi",
            folder / "multi.tsv",
            *report,
            "--train",
            __file__,
        )
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / "mine").write_text("")
    with pytest.raises(FileExistsError, match="it holds mine"):
        run("evaluate", folder / "single", folder / "test.tsv", *report)
    (tmp_path / "empty.txt").write_text("\n\n")
    with pytest.raises(ValueError, match="empty.txt has no texts"):
        run(
            *("evaluate", folder / "single", folder / "test.tsv"),
            *("--report", tmp_path / "new", "--unlabelled", tmp_path / "empty.txt"),
        )
    assert not (tmp_path / "new").exists()


def test_explain_prints_the_text_in_colours(folder, monkeypatch):
    plain = run("predict", folder / "single", "很好吃", "[red]不 好").stdout
    piped = run("predict", folder / "single", "很好吃", "[red]不 好", "--explain")
    assert piped.stdout == plain
    terminal = Console(
        force_terminal=True, color_system="truecolor", highlight=False, markup=False
    )
    monkeypatch.setattr(albert_tf_cli.tasks, "console", terminal)
    coloured = run("predict", folder / "single", "很好吃", "--explain").stdout
    assert "\x1b[30;48;2;" in coloured
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == plain.split("\n")[0] + "\n"


@pytest.mark.slow
def test_explain_as_json(folder):
    arguments = ("--explain", "--json")
    values = json.loads(run("predict", folder / "single", "很好吃", *arguments).stdout)
    found = integrated_gradients(small_classifier(labels=NAMES), "很好吃")
    assert values["answer"]["label"] == values["explanation"]["label"] == found.label
    assert values["explanation"]["characters"][0] == pytest.approx(
        found.values[0].tolist(), abs=1e-5
    )
    pair = json.loads(run("predict", folder / "pairs", "好\t很 好", *arguments).stdout)
    assert list(map(len, pair["explanation"]["characters"])) == [1, 3]
    with pytest.raises(ValueError, match="--explain .* of token-classification"):
        run("predict", folder / "tagger", "小明", "--explain")
