"""Labels in files: cleaned or named, and several in a cell split or announced."""

import json
import re
import warnings

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_tf.data import read_labelled_texts, read_tagged_texts
from albert_tf.data.labels.cleaning import visible
from albert_tf.data.labels.separators import SEPARATORS, check_single, label_lists
from albert_tf_lite.errors import AlbertError

ZERO_WIDTH = "\u200b"
EMOJI = ["👨\u200d👩\u200d👧", "❤\ufe0f"]


def read(path, labels):
    """Write labels as a file of a form by its name, and read them again."""
    texts = [f"第{i}条" for i in range(len(labels))]
    if path.suffix == ".jsonl":
        rows = (dict(label=x, text=y) for x, y in zip(labels, texts, strict=True))
        path.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    else:
        table = pd.DataFrame({"label": labels, "text": texts})
        table.to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")
    return read_labelled_texts(path)


# === Cleaning ===

# The labels of a file, what is read, and a warning.
CLEANED = {
    "invisible": (
        [f"差{ZERO_WIDTH}评", "\ufeff好评", "好评\u00a0", "\u3000差评 ", "差评"],
        ["差评", "好评", "好评", "差评", "差评"],
        r"4 labels such as '差\\u200b评' \(Line [12] of .* are read as '差评'",
    ),
    "composed": (["e\u0301", "é"], ["é", "é"], "1 labels such as .* are read as 'é'"),
    "whole numbers": (
        ["1.0", "0", "1", "2.0"],
        ["1", "0", "1", "2"],
        r"2 labels such as '1.0' .* are read as '1'",
    ),
    "versions": (["1.0", "1.5", "2.0"], ["1.0", "1.5", "2.0"], None),
    "two spellings": (["1.0", "1", "1.5"], ["1", "1", "1.5"], "1 labels such as '1.0'"),
    "NaN beside numbers": (["1", "nan", "0"], ["1", None, "0"], None),
    "None beside names": (["None", "好"], ["None", "好"], "'None' .*taken for a class"),
    "error of Excel": (["#N/A", "好"], ["#N/A", "好"], "'#N/A' .*taken for a class"),
    "spellings": (
        ["True", "TRUE"],
        ["True", "TRUE"],
        "'TRUE' and 'True' are two class",
    ),
    "lists as pandas writes them": (["['体育']", '["体育"]'], ["体育", "体育"], None),
    "name in brackets": (["[体育]", "[其他]"], ["[体育]", "[其他]"], None),
    "emoji": (EMOJI, EMOJI, None),
}


@pytest.mark.parametrize("form", ["a.csv", "a.jsonl"])
@pytest.mark.parametrize("case", CLEANED.values(), ids=CLEANED)
def test_labels_are_cleaned_with_a_count(tmp_path, form, case):
    given_labels, expected, message = case
    with warnings.catch_warnings(record=True, action="always") as found:
        assert read(tmp_path / form, given_labels).labels == expected
    assert len(found) == bool(message)
    assert all(re.search(message, str(x.message)) for x in found)


@given(st.text(max_size=8))
def test_visible_names_stay_as_they_are(text):
    name = visible(text)
    assert visible(name) == name and len(name) <= 2 * len(text) + 2


def test_values_of_json_are_labels_or_missing(tmp_path):
    values = [1, 1.0, "1", True, ["体育"], ["体育", 2], [], None, float("nan")]
    data = read(tmp_path / "a.jsonl", values)
    expected = ["1", "1", "1", "True", "体育", ("体育", "2"), (), None, None]
    assert data.labels == expected
    for wrong, message in (
        (["体育", None], "Line 2 of .* has the label None. Expected"),
        ({"体育": 1}, r"Line 2 of .* label \{'体育': 1\}"),
    ):
        with pytest.raises(AlbertError, match=message):
            read(tmp_path / "b.jsonl", ["体育", wrong])
    message = "Line 8 of .* has no label, Line 9 .* has no label. Expected"
    with pytest.raises(AlbertError, match=message):
        read_labelled_texts(tmp_path / "a.jsonl").class_ids(expected[:7])
    with pytest.raises(AlbertError, match=r"Line 8 of .* has no label"):
        data.label_lists()
    for name, several in (("a.tsv", "体育| 娱乐"), ("a.jsonl", ["体育", "娱乐"])):
        lists = read(tmp_path / name, [several, type(several)(), "财经"]).label_lists()
        assert lists == [["体育", "娱乐"], [], ["财经"]]


def test_repeated_headers_are_skipped_with_their_lines(tmp_path):
    path, rows = tmp_path / "a.csv", "label,text\n好评,很好\n差评,label\n"
    spelled = rows.replace("label,", "Label ,", 1)
    path.write_text(f"{rows}\ufeff{rows}{spelled}", "utf-8")
    message = "repeated: Line 4 of .*, Line 7 of .* Skipped"
    with pytest.warns(UserWarning, match=message):
        found = read_labelled_texts(path)
    assert (found.labels, found.x) == (["好评", "差评"] * 3, ["很好", "label"] * 3)


# === Several labels ===

names_of_classes = st.lists(
    st.text("价格口味服务环境", min_size=1, max_size=3),
    min_size=3,
    max_size=6,
    unique=True,
)


@given(st.data())
def test_a_bar_or_the_given_separator_divides_labels(tmp_path_factory, data):
    names, mark = data.draw(names_of_classes), data.draw(st.sampled_from(SEPARATORS))
    chosen = st.lists(st.sampled_from(names), max_size=3, unique=True)
    truth = data.draw(st.lists(chosen, min_size=5, max_size=40))
    path = tmp_path_factory.getbasetemp() / "several.jsonl"
    cells = [mark.join(row) for row in truth]
    labelled = read(path, cells)
    with warnings.catch_warnings(record=True, action="always") as messages:
        lists = labelled.label_lists()
    has_several = any(len(row) > 1 for row in truth)
    if mark == "|":
        assert lists == truth and not messages
    else:
        assert lists == [[cell] if cell else [] for cell in cells]
        assert len(messages) == has_several
    for options in ({"separator": mark}, {"separator": mark, "classes": names}):
        assert labelled.label_lists(**options) == truth


NAMES = {
    "levels": ["体育/足球", "体育/篮球", "财经/股票", "财经/基金", "财经/其他"],
    "words": ["play music", "play radio", "stop music", "stop radio"],
    "aspects": ["价格#正面", "价格#负面", "服务#正面", "服务#负面"],
    "pairs of names": ["房产、家居", "教育、科研", "体育"],
    "languages": ["C#", "C++", "F#", "A/B"],
}


@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
def test_names_with_other_separators_are_not_split_in_silence(names):
    places = [f"Line {i} of a.csv" for i in range(len(names))]
    with warnings.catch_warnings(record=True, action="always") as messages:
        assert label_lists(names, places) == [[name] for name in names]
    assert len(messages) == 1 and "no text has several" in str(messages[0].message)
    assert all(x in str(messages[0].message) for x in (repr(names[0]), "`separator=`"))
    # A bar in use is the separator, and so it is if it is given.
    with warnings.catch_warnings(action="error"):
        assert label_lists([*names, f"{names[0]}|新"], [*places, "x"])[-1][1] == "新"
        assert label_lists(names, places, "|") == [[name] for name in names]
    # A list in JSON is never split.
    rows = [(name, names[0]) for name in names]
    assert label_lists(rows, places, "/") == list(map(list, rows))


def test_labels_that_may_be_several_are_refused_or_said(tmp_path):
    path = tmp_path / "a.jsonl"
    # Each part is a class of the file, beside a bar.
    with pytest.warns(UserWarning, match=r"such as 'a,b' \(Line 2 .* \['a', 'b'\]"):
        assert read(path, ["a|b", "a,b"]).label_lists() == [["a", "b"], ["a,b"]]
    with pytest.raises(
        AlbertError, match=r"Line 2 of .* labels 'd,a'.*separated by '."
    ):
        read(path, ["a", "d,a"]).label_lists(classes=["a", "d"])
    # One label per text: each part occurs in another label.
    for labels, message in (
        (["体育,娱乐", "体育", "财经,娱乐"], "'体育,娱乐' .Line 1 .* separated by ','"),
        (["房产、家居", "教育、科研", "体育"], None),
        (NAMES["words"], None),
    ):
        found = read(path, labels)
        with warnings.catch_warnings(record=True, action="always") as messages:
            check_single(found.labels, found.places)
        assert len(messages) == bool(message)
        assert all(re.search(message, str(x.message)) for x in messages)
    # A list of one name is one label, which no separator splits.
    found = read(path, [["very good"], ["bad"]])
    assert found.labels == ["very good", "bad"]
    assert found.label_lists(" ") == [["very good"], ["bad"]]
    with pytest.raises(AlbertError, match="Line 1 of .* has the labels .'a', 'b'."):
        check_single([("a", "b")], ["Line 1 of a.jsonl"])


# === Tags ===

TAGS = {
    "words": ("今 B\n天 E\n好 S\n", ["W", "W"], "no label.* words, B-W"),
    "parts of speech": ("今天 n\n好 a\n\n天 n\n好 a\n", ["n", "a"], "Each token is an"),
    "runs": ("张 PER\n三 PER\n好 O\n来 O\n", ["PER"], "Each run of equal tags is an"),
    "invisible": (f"张 B-PER{ZERO_WIDTH}\n三 I-PER\n", ["PER"], None),
}


@pytest.mark.parametrize("case", TAGS.values(), ids=TAGS)
def test_tags_without_label_are_read_with_a_warning(tmp_path, case):
    content, expected, message = case
    path = tmp_path / "a.txt"
    path.write_text(content, "utf-8")
    with warnings.catch_warnings(record=True, action="always") as messages:
        spans = read_tagged_texts(path).spans[0]
    assert [label for *_, label in spans] == expected
    assert spans[0][:2] == (0, 2) and len(messages) == bool(message)
    assert all(re.search(message, str(x.message)) for x in messages)


def test_a_table_is_not_tagged_text(tmp_path):
    path = tmp_path / "a.txt"
    for content in ("1 很好\n0 太差\n1 不错\n", "hello world\nfoo bar\n"):
        path.write_text(content, "utf-8")
        with pytest.raises(AlbertError, match="Line 1 .* is not a tag.*S-n"):
            read_tagged_texts(path)
