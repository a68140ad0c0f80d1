"""Files of labelled texts: formats, columns found or given, and mistakes."""

import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_tf.data.labels import class_names, visible
from albert_tf.data.tables import LabelledTexts, read_labelled_texts

TEXTS = ["很好", "太差了，不会再来", "还行吧"]
LABELS = ["1", "0", "1"]
# `str.splitlines` ends a line at each of these; no file format here does.
INNER_BREAKS = "\u2028\u2029\x85\x0b\x0c\x1c\x1d\x1e"


@pytest.fixture
def read(tmp_path):
    """Write a file and read it as labelled texts."""

    def write_and_read(name, content, *columns, **options):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_labelled_texts(path, *columns, **options)

    return write_and_read


# === Formats ===

TSV = "label\ttext\n1\t很好\n0\t太差了，不会再来\n1\t还行吧\n"
CSV = "label,text\n1,很好\n0,太差了，不会再来\n1,还行吧\n"
JSONL = (
    '{"label": 1, "text": "很好"}\n{"text": "太差了，不会再来", "label": "0"}\n'
    '{"label": 1, "text": "\\u8fd8\\u884c\\u5427", "id": 7}\n'
)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.tsv", TSV),
        ("a.csv", CSV),
        ("CRLF.TXT", TSV.replace("\n", "\r\n").rstrip()),
        ("bom_and_blank.csv", "\ufeff" + CSV.replace("\n", "\r\n\r\n")),
        ("blank.jsonl", "\n" + JSONL.replace("\n", "\n\n  \n")),
    ],
)
def test_each_format_gives_the_same(read, name, content):
    assert read(name, content) == LabelledTexts(TEXTS, LABELS, [])


def test_quotes_spaces_and_line_breaks_in_tsv(read):
    texts = ['"很好', '他说"不', '""', " 两端 ", "", f"很好{INNER_BREAKS}真的"]
    rows = "".join(f"1\t{text}\n" for text in texts)
    assert read("a.tsv", f"label\ttext\n{rows}").x == texts


@pytest.mark.parametrize("encoding", ["gb18030", "utf-16", "utf-16-le", "utf-16-be"])
def test_other_encodings_are_read_with_a_warning(read, encoding):
    with pytest.warns(UserWarning, match=f"a.tsv is {encoding}, not UTF-8"):
        assert read("a.tsv", TSV.encode(encoding)).x == TEXTS


@pytest.mark.parametrize("separator", [";", "\t"])
def test_other_separators_of_csv_are_read_with_a_warning(read, separator):
    content = f'"label","text"\n"1","一,{separator}"\n'.replace('","', f'"{separator}"')
    with pytest.warns(UserWarning, match="a.csv is separated by .* not by commas"):
        assert read("a.csv", content).x == [f"一,{separator}"]
    assert read("a.csv", f"sep={separator}\n{content}").x == [f"一,{separator}"]


# The csv module of some Pythons writes no NUL.
characters = st.characters(codec="utf-8", exclude_characters="\r\0")
texts = st.text(characters, max_size=30)
labels = st.text(characters, min_size=1, max_size=5).map(visible)
NAMES = ("label", "text_a", "text_b")


def as_csv(table):
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows([NAMES, *table])
    return file.getvalue()


def as_jsonl(table):
    rows = enumerate(dict(zip(NAMES, row, strict=True)) for row in table)
    return "\n".join(json.dumps(row, ensure_ascii=i % 2 == 0) for i, row in rows)


@pytest.mark.parametrize(("ending", "write"), [("csv", as_csv), ("jsonl", as_jsonl)])
@given(table=st.lists(st.tuples(labels, texts, texts), min_size=1, max_size=8))
def test_any_texts_that_are_written_are_read_again(
    tmp_path_factory, ending, write, table
):
    path = tmp_path_factory.getbasetemp() / f"written.{ending}"
    path.write_bytes(write(table).encode())
    data = read_labelled_texts(path)
    assert [*zip(data.labels, *data.x, strict=True)] == table


# === Columns ===


@pytest.mark.parametrize(
    ("content", "columns"),
    [
        # By name.
        (" 类别 \t sentence \n1\t很好\n0\t差\n", ()),
        ("content\tcategory\ttext\n无关\t1\t很好\n无关\t0\t差\n", ()),
        # By content.
        ("很好\t1\n差\t0\n差\t0\n", ()),
        # Given, by name or number; the others are found.
        ("id\tcomment\tlabel\n1\t很好\t1\n2\t差\t0\n", ("3", "2")),
        ("2\tlabel\ttext\n很好\t1\tx\n差\t0\tx\n", (None, "2")),
    ],
)
def test_columns_of_texts(read, content, columns):
    data = read("a.tsv", content, *columns)
    assert (data.x[:2], data.labels[:2]) == (["很好", "差"], ["1", "0"])


PAIRS_JSON = (
    '{"q": "你好吗", "id": 1, "a": "你还好吗", "ok": 1}\n'
    '{"q": "在", "id": 2, "a": "几点", "ok": 0}\n'
)


@pytest.mark.parametrize(
    ("name", "content", "columns"),
    [
        # LCQMC has no header.
        ("a.tsv", "你好吗\t你还好吗\t1\n在\t几点\t0\n去\t来\t0\n", ()),
        ("a.tsv", "1\t你还好吗\t你好吗\tx\n0\t几点\t在\ty\n", ("1", "3", "2")),
        ("a.jsonl", PAIRS_JSON, ("ok", "q", "a")),
        ("a.json", f"[{PAIRS_JSON.replace('}', '},', 1)}]", ("ok", "q", "a")),
    ],
)
def test_columns_of_pairs(read, name, content, columns):
    data = read(name, content, *columns)
    assert data.pairs and data.labels[:2] == ["1", "0"]
    assert tuple(x[:2] for x in data.x) == (["你好吗", "在"], ["你还好吗", "几点"])


# === Labels ===


def test_classes_are_sorted_numbered_and_checked(read):
    assert class_names(["10", "9", "-1", "2", "10", ""]) == ["-1", "2", "9", "10"]
    assert class_names(["b", "10", "9", "b"]) == ["10", "9", "b"]
    data = read("a.csv", "label,text\n1,很好\n\n2,差\n")
    assert data.class_ids(["2", "1"]) == [1, 0]
    with pytest.raises(ValueError, match=r"Line 4 of .*a.csv has the label '2'.*'0'"):
        data.class_ids(["0", "1"])


def test_invalid_labels_are_named_at_once_or_skipped(read):
    rows = ["1\t甲\t子", *["\t乙\t丑"] * 12, "0.5\t丙\t寅"]
    data = read("a.tsv", "label\ttext\ttext_b\n" + "\n".join(rows))
    message = "12 labels are invalid: Line 3 .*''.* Line 12 .*'' and 2 more. "
    with pytest.raises(ValueError, match=f"{message}Expected a number.*-invalid"):
        data.scores()
    with pytest.warns(UserWarning, match=f"{message}Skipped"):
        valid = data.without_invalid()
    assert (valid.x, valid.scores()) == ((["甲", "丙"], ["子", "寅"]), [1, 0.5])
    assert valid.without_invalid() is valid
    with pytest.warns(UserWarning, match="13 labels"):
        assert data.without_invalid(["1"]).class_ids(["1"]) == [0]


def test_several_labels_of_a_text(read):
    tsv = "label\ttext\n体育| 娱乐\t甲\n\t乙\n财经\t丙\n"
    rows = [(["体育", "娱乐"], "甲"), ([], "乙"), ("财经", "丙")]
    jsonl = "\n".join(json.dumps({"label": x, "text": text}) for x, text in rows)
    for name, content in (("a.tsv", tsv), ("a.jsonl", jsonl)):
        labels = read(name, content).label_lists()
        assert labels == [["体育", "娱乐"], [], ["财经"]]


def test_labels_that_are_numbers(read):
    assert read("a.csv", "甲,乙,5.0\n丙,丁,0\n戊,己,5.0\n").scores() == [5.0, 0.0, 5.0]
    for bad, shown in (("好", "the label '好'"), ("nan", "no label")):
        with pytest.raises(ValueError, match=f"Line 3 of .* has {shown}"):
            read("a.csv", f"text,score\n甲,1\n乙,{bad}\n").scores()


# === Mistakes ===

MISTAKES = {
    "encoding": (
        "a.tsv",
        "label\ttext\n1\t很好\n0\t".encode() + "差".encode("gbk"),
        {},
        "not UTF-8: byte 0xb2 in line 3.*Save it",
    ),
    "ragged": ("a.tsv", "1\t很好\n\n\n0\n", {}, "Line 4 of .*1 columns.*first.* 2"),
    "cut JSON": ("a.jsonl", f'{JSONL}\n{{"label": 1, "te', {}, "Line 5 of .* not JSON"),
    "no text": ("a.tsv", "label\twords\n1\t很好\n", {}, "no text column.*`text=`"),
    "empty": ("a.tsv", "\n", {}, "a.tsv has no examples"),
    "header only": ("a.csv", "label,text\n", {}, r"no examples.*\['label', 'text'\]"),
    "other column": ("a.tsv", TSV, {"label": "class"}, "no column 'class'.*'label'"),
    "single texts": ("a.tsv", TSV, {"pairs": True}, "single texts. Expected pairs"),
    "no label": ("a.tsv", "1\ta\n2\tb\n", {}, "no label column.*line is different"),
    "one column": ("a.tsv", CSV, {}, "a.tsv has one column. Expected .* tabs"),
    "too many": ("a.tsv", "1\ta\tb\tc\n1\td\te\tf\n", {}, "3 columns that may be"),
    "no field": ("a.jsonl", f'{JSONL}{{"label": 1}}\n', {}, "Line 4 .*no field 'text'"),
    "no object": ("a.jsonl", f"{JSONL}[1]\n", {}, "Line 4 .*JSON object.*\\[1\\]"),
    "quote": ("a.csv", f'{CSV}1,"很好\n', {}, "a.csv is not CSV: unexpected end"),
}


@pytest.mark.parametrize("case", MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_names_file_line_and_value(read, case):
    name, content, options, message = case
    with pytest.raises(ValueError, match=message):
        read(name, content, **options)
