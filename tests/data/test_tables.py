"""Files of labelled texts: formats, columns found or given, and mistakes."""

import csv
import datetime
import gzip
import io
import json
import re
import warnings
import zipfile

import openpyxl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_tf.data import class_names
from albert_tf.data.files.tables import read_table
from albert_tf.data.labels.cleaning import visible
from albert_tf.data.sets.labelled_texts import (
    LabelledTexts,
    read_labelled_texts,
    read_texts,
)

TEXTS = ["很好", "太差了，不会再来", "还行吧"]
LABELS = ["1", "0", "1"]
# `str.splitlines` ends a line at each of these; no file format here does.
QUOTE = '"'
INNER_BREAKS = "\u2028\u2029\x85\x0b\x0c\x1c\x1d\x1e"


@pytest.fixture
def read(write):
    """Write a file and read it as labelled texts."""

    def read(name, content, *columns, **options):
        return read_labelled_texts(write(content, name), *columns, **options)

    read.write = write
    return read


# === Formats ===

TSV = "label\ttext\n1\t很好\n0\t太差了，不会再来\n1\t还行吧\n"
CSV = "label,text\n1,很好\n0,太差了，不会再来\n1,还行吧\n"
JSONL = (
    '{"label": 1, "text": "很好"}\n{"text": "太差了，不会再来", "label": "0"}\n'
    '{"label": 1, "text": "\\u8fd8\\u884c\\u5427", "id": 7}\n'
)


def as_xlsx(text):
    rows = [line.split("\t") for line in text.splitlines()]
    return excel({"empty": [], "data": rows})


def excel(sheets):
    workbook, file = openpyxl.Workbook(), io.BytesIO()
    workbook.remove(workbook.active)
    for name, rows in sheets.items():
        sheet = workbook.create_sheet(name)
        for row in rows:
            sheet.append(row)
    workbook.save(file)
    return file.getvalue()


@pytest.mark.filterwarnings("ignore:.*(Read as such|Read is 'data'|looks like JSON)")
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.tsv", TSV),
        ("a.csv", CSV),
        ("a.tsv.gz", gzip.compress(TSV.encode(), mtime=0)),
        ("CRLF.TXT", TSV.replace("\n", "\r\n").rstrip()),
        ("mac.csv", CSV.replace("\n", "\r")),
        ("mac.tsv", "\ufeff" + TSV.replace("\n", "\r")),
        ("mac.jsonl", JSONL.replace("\n", "\r")),
        ("bom_and_blank.csv", "\ufeff" + CSV.replace("\n", "\r\n\r\n")),
        ("blank.jsonl", "\n" + JSONL.replace("\n", "\n\n  \n")),
        ("a.xlsx", as_xlsx(TSV)),
        # The content decides, not the suffix.
        ("jsonl_00", JSONL),
        ("jsonl.txt", JSONL),
        ("xlsx.csv", as_xlsx(TSV)),
        ("gzip.csv", gzip.compress(CSV.encode(), mtime=0)),
        ("quoted.tsv", re.sub("([^\t\n]+)", r'"\1"', TSV)),
    ],
)
def test_each_format_gives_the_same(read, name, content):
    assert read(name, content) == LabelledTexts(TEXTS, LABELS, [])


def test_quotes_spaces_and_line_breaks_in_tsv(read):
    texts = ['"很好', '他说"不', '""', " 两端 ", "", f"很好{INNER_BREAKS}真的"]
    rows = "".join(f"1\t{text}\n" for text in texts)
    assert read("a.tsv", f"label\ttext\n{rows}").x == texts


def test_cells_of_a_workbook_are_read_as_they_were_typed(read):
    day = datetime.datetime(2024, 1, 5)
    rows = [["text", "label", "n"], ["甲", 1, 0.5], [day, True, None], [None] * 3]
    data = read("a.xlsx", excel({"一": [*rows, ["007", 2.0, "", None, None]]}))
    assert (data.x, data.labels) == (["甲", "2024-01-05", "007"], ["1", "TRUE", "2"])
    assert data.places[-1].startswith("Row 5 of ")


SHEETS = {
    "封面": [["某年评论汇总"]],
    "数据": [["text", "label"], ["甲", "好"], ["乙", None], ["丙", "差"]],
    "备份": [["text", "label"], ["丁", "好"], ["戊", "差"]],
    "空": [],
}


@pytest.mark.parametrize("size", ["A1", "A1:B2", "B7:C9", "A1:XFD1048576", None])
def test_the_cells_of_a_sheet_count_not_the_size_that_it_states(read, size):
    with zipfile.ZipFile(io.BytesIO(as_xlsx(TSV))) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    name, record = "xl/worksheets/sheet2.xml", rb'<dimension ref="A1:B4" ?/>'
    stated = f'<dimension ref="{size}"/>'.encode() if size else b""
    parts[name], count = re.subn(record, stated, parts[name])
    assert count == 1
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    assert read("a.xlsx", file.getvalue()) == LabelledTexts(TEXTS, LABELS, [])


def test_sheets_and_their_hidden_and_merged_cells_are_named(read):
    workbook = openpyxl.load_workbook(io.BytesIO(excel(SHEETS)))
    workbook["封面"].sheet_state = "hidden"
    sheet = workbook["数据"]
    sheet.merge_cells("B2:B3")
    sheet.row_dimensions[4].hidden = True
    # Without cells, it is not counted.
    sheet.row_dimensions[9].hidden = True
    sheet.column_dimensions["B"].hidden = True
    workbook.save(file := io.BytesIO())
    with pytest.warns(UserWarning) as caught:
        data = read("a.xlsx", file.getvalue())
    assert (data.x, data.labels) == (["甲", "乙", "丙"], ["好", "好", "差"])
    sheets, hidden, merged = [str(x.message) for x in caught]
    assert "'封面' (hidden), '数据', '备份'. Read is '数据'" in sheets
    assert "1 hidden rows, the first row 4 and hidden columns" in hidden
    assert "1 merged cells, such as B2:B3." in merged
    assert read("a.xlsx", file.getvalue(), sheet="备份").x == ["丁", "戊"]
    with pytest.raises(ValueError, match="no sheet '备'. Its sheets are .*'空'"):
        read("a.xlsx", file.getvalue(), sheet="备")
    with pytest.raises(ValueError, match="is not a workbook of sheets"):
        read("a.csv", CSV, sheet="备份")
    with pytest.raises(ValueError, match="its sheets .'空'. are empty"):
        read("a.xlsx", excel({"空": []}))


# === Titles above the header ===

HEADER = ["评论", "标签", "备注"]
ROWS = [HEADER, ["甲", "好", "x"], ["乙", "差", ""], ["丙", "好", "y"]]


def forms_of(rows):
    """The same rows as files: a row of one cell is one cell, or is filled up."""
    width = max(map(len, rows))
    full = [row + [""] * (width - len(row)) for row in rows]
    yield "a.xlsx", excel({"一": rows})
    yield "a.tsv", "".join("\t".join(row) + "\n" for row in full)
    for separator in ",;":
        for lines in (rows, full):
            yield "a.csv", "".join(separator.join(row) + "\n" for row in lines)


@pytest.mark.filterwarnings("ignore:.*separated by ';'")
def test_titles_above_a_header_are_left_out_or_refused(read):
    titles = [["某年评论汇总"], ["导出时间：2024-10-08"]]
    for name, content in forms_of([*titles, *ROWS]):
        with pytest.warns(UserWarning, match="3 of .* is read as the header.*2: '导出"):
            data = read(name, content)
        assert (data.x, data.labels) == (["甲", "乙", "丙"], ["好", "差", "好"])
    # A row of several cells may be an example.
    for name, content in forms_of([["部门", "客服"], *ROWS]):
        with pytest.raises(
            ValueError, match="2 of .* looks like the header.* 1: '部门,"
        ):
            read(name, content)
    # A group of columns.
    for name, content in forms_of([["", "内容", "结果"], *ROWS]):
        with pytest.raises(ValueError, match="looks like (the|a second) header"):
            read(name, content)
    # The names of another language.
    for name, content in forms_of([HEADER, ["text", "label", ""], *ROWS[1:]]):
        with pytest.raises(ValueError, match="2 of .* looks like a second header"):
            read(name, content)


def test_titles_above_a_header_with_other_names(read):
    rows = [["某年汇总"], ["意见", "结论"], ["甲", "好"], ["乙", "差"], ["丙", "好"]]
    for name, content in (("a.xlsx", excel({"一": rows})), *list(forms_of(rows))[:2]):
        with pytest.warns(UserWarning, match="2 of .* is read as the header"):
            data = read(name, content, label="结论", text="意见")
        assert (data.x, data.labels) == (["甲", "乙", "丙"], ["好", "差", "好"])
        with pytest.raises(ValueError, match="1 of .*'某年汇总'.* If it is a title"):
            read(name, content)
        with pytest.raises(ValueError, match="1 of .*'某年汇总'.* If it is a title"):
            read(name, content, text="评论")


def test_examples_are_not_taken_for_a_header(read):
    # Labels that are known names of columns, and a first example without a label.
    rows = "".join(
        f"{x}\t第{i}句\n" for i, x in enumerate(["note", "query", "review"] * 9)
    )
    with pytest.warns(UserWarning, match="has no header"):
        assert len(read("a.tsv", rows).x) == 27
    rows = "\t没有\n体育\t足球\n体育|娱乐\t球星\n"
    with pytest.warns(UserWarning, match="1 of .* It is read as an example"):
        data = read("a.tsv", rows, label=1, text=2)
    assert data.label_lists() == [[], ["体育"], ["体育", "娱乐"]]
    with pytest.raises(ValueError, match="Row 2 of .* looks like the header, '评论'"):
        read_texts(read.write(excel({"一": [["汇总"], ["评论"], ["甲"]]}), "b.xlsx"))


def test_cells_of_any_length_and_columns_of_any_name(read, tmp_path):
    text = '长"' * 100_000
    path = tmp_path / "a.csv"
    rows = ["id,text,id,备注,备注,,", f'1,"{text.replace(QUOTE, QUOTE * 2)}",2,3,4,5,6']
    path.write_text("\n".join(rows), "utf-8")
    with pytest.warns(UserWarning, match="columns of one name. .*'备注_2', '', '_2'"):
        (record,) = read_table(path).records()
    assert list(record.values()) == ["1", text, "2", "3", "4", "5", "6"]
    with pytest.raises(ValueError, match="has 2 columns 'text'. .* number .*`text=`"):
        read_texts(read.write("text,text\na,b\n", "two.csv"))


# === Encodings ===

SENTENCES = {
    "gb18030": "房间很干净，下次还会再来。",
    "big5": "房間很乾淨，下次還會再來。",
    "shift_jis": "部屋はとてもきれいでした。",
    "euc_kr": "방이 아주 깨끗했습니다.",
    "euc_jp": "部屋はとてもきれいでした。",
    "iso2022_jp": "部屋はとてもきれいでした。",
    "utf-16": "很好",
    "utf-16-le": "很好",
    "utf-16-be": "很好",
    "utf-32": "很好",
}


@pytest.mark.parametrize("encoding", SENTENCES)
def test_other_encodings_are_read_with_a_warning(read, encoding):
    text = SENTENCES[encoding]
    data = f"label\ttext\n1\t{text}\n0\t{text}!\n".encode(encoding)
    with pytest.warns(UserWarning, match=f"a.tsv is {encoding}[^,]*, not UTF-8"):
        assert read("a.tsv", data).x == [text, f"{text}!"]
    with warnings.catch_warnings(action="error"):
        assert read("a.tsv", data, encoding=encoding).x == [text, f"{text}!"]


def test_an_encoding_in_doubt_is_said_or_refused(read):
    for data, message in (
        ("label\ttext\n1\téàü\n0\tçéè\n".encode("latin-1"), "is unknown: no enc"),
        (f"{TSV}1\t很好\n".encode() + TSV.encode("gbk") * 2, "is unknown: some lines"),
        (f"{TSV * 9999}1\t".encode() + "很".encode("gbk"), "byte 0xba in line 39997"),
    ):
        with pytest.raises(ValueError, match=f"a.tsv .*{message}.*`encoding=`"):
            read("a.tsv", data)
    with pytest.raises(ValueError, match="no encoding 'gbx'. Expected a name such"):
        read("a.tsv", TSV, encoding="gbx")
    # Two characters are common in either.
    with pytest.warns(UserWarning, match="may be .*Name the encoding with `encoding=`"):
        read("a.tsv", "label\ttext\n1\t揭祕領跑基金抗跌絕招\n0\t\n".encode("gb18030"))


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


# Labels such as "nan" and "<NA>".
@pytest.mark.filterwarnings("ignore:.*are taken for a class")
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


def rows_of(*columns, count=30):
    """Return a table of functions of the number of a row."""
    rows = (map(str, (column(i) for column in columns)) for i in range(count))
    return "".join("\t".join(row) + "\n" for row in rows)


def text(i):
    return f"房间{i}很干净"


def class_of(i):
    return "好差"[i % 2]


def number_of_class(i):
    return i % 2


OTHERS = {
    "number": lambda i: 1000 + i,
    "decimal": lambda i: f"{i}.50",
    "date": lambda i: f"2024-01-{i + 1:02}",
    "Chinese date": lambda i: f"2024年1月{i + 1}日 08:{i:02}",
    "code": lambda i: f"R-{i:04}",
    "address": lambda i: f"https://a.b/{i}?c",
    "mail": lambda i: f"a{i}@b.cn",
    "constant": lambda i: "训练集",
    "few": lambda i: "酒店" if i % 5 else "",
    "class": lambda i: i % 3,
}


@pytest.mark.parametrize("place", range(3))
def test_a_third_column_without_a_header_is_numbered(read, place):
    for other in OTHERS.values():
        for label in (class_of, number_of_class):
            columns = [text, label]
            columns.insert(place, other)
            content = rows_of(*columns)
            with pytest.raises(ValueError, match="has no header.* with `text=`|`label"):
                read("a.tsv", content)
            numbers = columns.index(label) + 1, columns.index(text) + 1
            data = read("a.tsv", content, *numbers)
            assert data.x == list(map(text, range(30))) and not data.pairs
            assert data.labels == [str(label(i)) for i in range(30)]


def test_what_is_read_without_a_header_is_announced(read):
    for columns, parts in (
        ((text, class_of), "text: column 1, label: column 2"),
        ((number_of_class, text), "text: column 2, label: column 1"),
        (
            (text, lambda i: f"不{i}", number_of_class),
            "text: column 1, text_b: column 2, label: column 3",
        ),
    ):
        content = rows_of(*columns)
        with pytest.warns(UserWarning, match=f"has no header. {parts}. .* first row"):
            data = read("a.tsv", content)
        assert data.pairs == (len(columns) == 3) and len(set(data.labels)) == 2
        # The same columns hold the texts without their labels.
        texts = read_texts(read.write(content, "a.tsv"), pairs=data.pairs)
        assert texts == data.x
    with pytest.warns(UserWarning, match="text: column 1, label: column 2"):
        assert read("a.tsv", rows_of(text, class_of), 2).x[0] == text(0)


def test_texts_without_header_and_label(write):
    path = write(rows_of(OTHERS["date"], number_of_class, text), "a.tsv")
    assert read_texts(path, text=3) == list(map(text, range(30)))
    with pytest.raises(ValueError, match="no header and 3 columns. Expected one text"):
        read_texts(path)
    path = write(rows_of(OTHERS["code"], text), "a.tsv")
    with pytest.warns(UserWarning, match="text: column 2, not used: column 1"):
        assert read_texts(path) == list(map(text, range(30)))
    # A list of texts in a .txt file needs no header.
    file = path.with_name("one.csv")
    file.write_text("用户留言\n很好\n", "utf-8")
    with pytest.warns(UserWarning, match="has no header. text: column 1"):
        assert read_texts(file) == ["用户留言", "很好"]


def test_what_may_be_read_in_two_ways_is_refused_or_said(read):
    # Names that are not known, above numbers or classes.
    numbers = f"评语\t等级\n{rows_of(text, lambda i: i % 3)}"
    classes = f"评语\t等级\n{rows_of(text, class_of)}"
    ids = f"编号\t评语\t等级\n{rows_of(OTHERS['number'], text, class_of)}"
    for content, columns, message in (
        (numbers, (), "first line of .* may be a header: no other .*'评语', '等级'"),
        (classes, (), "first line of .* may be a header: no other .*'评语', '等级'"),
        (rows_of(text, text), (), "two columns have 30 distinct values each.*`label="),
        (rows_of(OTHERS["date"], class_of), (), "column 1 would be the text. It has n"),
        (rows_of(text, class_of, class_of), (2,), "no header and 3 columns.*`text="),
    ):
        with pytest.raises(ValueError, match=message):
            read("a.tsv", content, *columns)
    other = "title\tcontent\tlabel\n一\t二\t1\n"
    semicolons = "0,好;差\n1,不;行\n0,去;来\n"
    empty = "label\ttext\n0\t\n1\t好\n"
    for name, content, columns, message in (
        ("a.tsv", classes, (2, 1), "Line 1 of .* may be a header: no other line"),
        ("a.tsv", ids, (3, 2), "Line 1 of .* may be a header: no other line"),
        ("a.tsv", other, (), "text is the column 'content', not .'title'"),
        ("a.csv", semicolons, (), "by ',', and not by ';'. Read as"),
        ("a.tsv", empty, (), "At least 1 cells .*'text' are empty"),
    ):
        with pytest.warns(UserWarning, match=message):
            read(name, content, *columns)
    with pytest.warns(UserWarning, match="may be a header: column 1 has numbers below"):
        assert read_texts(read.write(ids, "a.tsv"), text=2)[0] == "评语"


SINGLE, PAIRS = (["很好", "差"],), (["你好吗", "在"], ["你还好吗", "几点"])
PAIRS_JSON = (
    '{"q": "你好吗", "id": 1, "a": "你还好吗", "ok": 1}\n'
    '{"q": "在", "id": 2, "a": "几点", "ok": 0}\n'
)


@pytest.mark.parametrize(
    ("x", "name", "content", "columns"),
    [
        # By name.
        (SINGLE, "a.tsv", " 类别 \t sentence \n1\t很好\n0\t差\n", ()),
        (SINGLE, "a.tsv", "content\tcategory\ttext\n无\t1\t很好\n无\t0\t差\n", ()),
        # By position: LCQMC has no header.
        (SINGLE, "a.tsv", "很好\t1\n差\t0\n不差\t1\n", ()),
        (PAIRS, "a.tsv", "你好吗\t你还好吗\t1\n在\t几点\t0\n去\t来\t0\n", ()),
        # Given, by name or number; the others are found.
        (SINGLE, "a.tsv", "id\tcomment\tlabel\n1\t很好\t1\n2\t差\t0\n", ("3", "2")),
        (SINGLE, "a.tsv", "2\tlabel\ttext\n很好\t1\tx\n差\t0\tx\n", (None, "2")),
        (PAIRS, "a.tsv", "1\t你还好吗\t你好吗\tx\n0\t几点\t在\ty\n", ("1", "3", "2")),
        (PAIRS, "a.jsonl", PAIRS_JSON, ("ok", "q", "a")),
        (PAIRS, "a.json", f"[{PAIRS_JSON.replace('}', '},', 1)}]", ("ok", "q", "a")),
    ],
)
def test_columns_by_name_position_and_number(read, x, name, content, columns):
    data = read(name, content, *columns)
    parts = data.x if data.pairs else (data.x,)
    assert tuple(part[:2] for part in parts) == x and data.labels[:2] == ["1", "0"]


# === Labels ===


def test_classes_are_sorted_numbered_and_checked(read):
    assert class_names(["10", "9", "-1", "2", "10", ""]) == ["-1", "2", "9", "10"]
    assert class_names(["b", "10", "9", "b"]) == ["10", "9", "b"]
    data = read("a.csv", "label,text\n1,很好\n\n2,差\n")
    assert data.class_ids(["2", "1"]) == [1, 0]
    with pytest.raises(ValueError, match=r"Line 4 of .*a.csv has the label '2'.*'0'"):
        data.class_ids(["0", "1"])


def test_invalid_labels_are_named_at_once_or_skipped(read):
    rows = ["1\t甲\t子"] + ["\t乙\t丑"] * 12 + ["0.5\t丙\t寅"]
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


def test_labels_that_are_numbers(read):
    assert read("a.csv", "甲,乙,5.0\n丙,丁,0\n戊,己,5.0\n").scores() == [5.0, 0.0, 5.0]
    for bad, shown in (("好", "the label '好'"), ("nan", "no label")):
        with pytest.raises(ValueError, match=f"Line 3 of .* has {shown}"):
            read("a.csv", f"text,score\n甲,1\n乙,{bad}\n").scores()
