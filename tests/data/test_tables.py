"""Files of labelled texts: what is read, what is found by itself, what is refused."""

import collections
import csv
import io
import json
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from albert_tf.data.tables import (
    LabelledTexts,
    class_names,
    read_labelled_texts,
    read_texts,
)

TEXTS = ["很好", "太差了，不会再来", "还行吧"]
LABELS = ["1", "0", "1"]
# At all of these `str.splitlines` ends a line, which no file format here does.
INNER_BREAKS = "\u2028\u2029\x85\x0b\x0c\x1c\x1d\x1e"


@pytest.fixture
def read(tmp_path):
    """Write a file and read it as labelled texts."""

    def write_and_read(name, content, *columns, **named_columns):
        path = tmp_path / name
        data = content if isinstance(content, bytes) else content.encode()
        path.write_bytes(data)
        return read_labelled_texts(path, *columns, **named_columns)

    return write_and_read


def rows(*cells, separator="\t"):
    return "".join(separator.join(row) + "\n" for row in cells)


# === Formats ===


CONTENTS = {
    "tsv": "label\ttext\n1\t很好\n0\t太差了，不会再来\n1\t还行吧\n",
    "csv": "label,text\n1,很好\n0,太差了，不会再来\n1,还行吧\n",
    "jsonl": '{"label": 1, "text": "很好"}\n'
    '{"text": "太差了，不会再来", "label": "0"}\n'
    '{"label": 1, "text": "\\u8fd8\\u884c\\u5427", "id": 7}\n',
}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.tsv", CONTENTS["tsv"]),
        ("a.csv", CONTENTS["csv"]),
        ("a.jsonl", CONTENTS["jsonl"]),
        ("评论.json", CONTENTS["jsonl"]),
        ("CRLF.TXT", CONTENTS["tsv"].replace("\n", "\r\n").rstrip()),
        ("crlf.csv", CONTENTS["csv"].replace("\n", "\r\n")),
        ("bom_and_blank.csv", "\ufeff" + CONTENTS["csv"].replace("\n", "\n\n")),
        ("blank.jsonl", "\n" + CONTENTS["jsonl"].replace("\n", "\n\n  \n")),
    ],
)
def test_each_format_gives_the_same(read, name, content):
    assert read(name, content) == LabelledTexts(TEXTS, LABELS)


def test_tsv_takes_double_quotes_as_they_are(read):
    texts = ['"很好', '他说"不', '""', '"整句"']
    data = read("a.tsv", rows(("label", "text"), *(("1", text) for text in texts)))
    assert data.x == texts


def test_csv_with_quoted_commas_quotes_and_newlines(read):
    data = read("a.csv", 'label,text\n1,"好,很好"\n0,"第一行\n\n他说""差"""\n"1", x \n')
    assert data == LabelledTexts(
        ["好,很好", '第一行\n\n他说"差"', " x "], ["1", "0", "1"]
    )


@pytest.mark.parametrize("ending", ["tsv", "csv", "jsonl"])
def test_only_newlines_end_a_line(read, ending):
    text = f"很好{INNER_BREAKS}真的"
    content = {
        "tsv": f"label\ttext\n1\t{text}\n0\t差\n",
        "csv": f"label,text\n1,{text}\n0,差\n",
        "jsonl": f'{{"label": 1, "text": {json.dumps(text, ensure_ascii=False)}}}\n'
        '{"label": 0, "text": "差"}\n',
    }[ending]
    assert read(f"a.{ending}", content) == LabelledTexts([text, "差"], ["1", "0"])


def test_labels_lose_their_spaces_and_texts_keep_them(read):
    data = read("a.tsv", "label\ttext\n 1 \t 很好 \n0\t\n")
    assert data == LabelledTexts([" 很好 ", ""], ["1", "0"])


# === Columns found by name ===


@pytest.mark.parametrize(
    ("header", "examples"),
    [
        ("label\ttext_a", ["1\t很好", "0\t差"]),  # ChnSentiCorp
        ("Review\tid\tSentiment", ["很好\t17\t1", "差\t18\t0"]),
        (" 类别 \t sentence ", ["1\t很好", "0\t差"]),
        ("content\tcategory\ttext", ["无关\t1\t很好", "无关\t0\t差"]),
    ],
)
def test_columns_found_by_name(read, header, examples):
    data = read("a.tsv", "\n".join([header, *examples]))
    assert data == LabelledTexts(["很好", "差"], ["1", "0"])


def test_pairs_found_by_name(read):
    header = "Sentence1\tSentence2\tLabel"
    data = read("a.tsv", f"{header}\n你好吗\t你还好吗\t1\n几点了\t在哪\t0\n")
    assert data.pairs
    assert data.x == (["你好吗", "几点了"], ["你还好吗", "在哪"])
    assert data.labels == ["1", "0"]


# === Columns found by content ===


def test_lcqmc_has_two_texts_and_a_class_and_no_header(read):
    pairs = [
        ("怎么弄？", "怎么开？", "1"),
        ("是谁", "什么歌", "0"),
        ("人呢", "人在哪", "1"),
    ]
    data = read("lcqmc.tsv", rows(*pairs))
    assert data.pairs
    assert data.x == (["怎么弄？", "是谁", "人呢"], ["怎么开？", "什么歌", "人在哪"])
    assert data.labels == ["1", "0", "1"]


@pytest.mark.slow
def test_thucnews_has_a_text_and_a_class_number_and_no_header(read):
    examples = [(f"第{number}条新闻", str(number % 4 + 8)) for number in range(8)]
    data = read("thucnews.tsv", rows(*examples))
    assert not data.pairs
    assert data.x == [text for text, _ in examples]
    assert data.labels == [label for _, label in examples]
    assert class_names(data.labels) == ["8", "9", "10", "11"]


def test_the_label_may_stand_first(read):
    cells = [("好评", "很好"), ("差评", "太差了"), ("好评", "还行")]
    data = read("a.csv", rows(*cells, separator=","))
    assert data == LabelledTexts(["很好", "太差了", "还行"], ["好评", "差评", "好评"])


@pytest.mark.parametrize(
    "cells",
    [
        [("房间很干净", "1")],
        [("房间很干净", "1"), ("房间很干净", "1"), ("太差了，不来", "0")],
    ],
)
def test_of_columns_that_repeat_alike_the_shorter_is_the_label(read, cells):
    assert read("a.tsv", rows(*cells)).labels == [label for _, label in cells]


# === Columns that are given ===


@pytest.mark.parametrize("columns", [("3", "2"), ("score", "2")])
def test_columns_by_name_and_by_number_with_a_header(read, columns):
    content = "id\tcomment\tscore\n1\t很好\t5\n2\t差\t1\n3\t还行\t5\n"
    expected = LabelledTexts(["很好", "差", "还行"], ["5", "1", "5"])
    if columns == ("3", "2"):
        # Only numbers do not say that there is a header; `label` in it does.
        content = content.replace("score", "label")
    assert read("a.tsv", content, *columns) == expected


def test_columns_of_pairs_by_number(read):
    content = "1\t乙\t甲\tx\n0\t丁\t丙\ty\n"
    data = read("a.tsv", content, "1", "3", "2")
    assert data == LabelledTexts((["甲", "丙"], ["乙", "丁"]), ["1", "0"])


@pytest.mark.slow
def test_a_given_column_leaves_the_rest_to_be_found(read):
    """Each line is another class here, which only the user can know."""
    content = "很好\ta\n太差了\tb\n"
    assert read("a.tsv", content, label="2").x == ["很好", "太差了"]


def test_given_columns_of_json_lines(read):
    content = '{"q": "甲", "id": 1, "a": "乙", "ok": true}\n'
    data = read("a.jsonl", content, "ok", "q", "a")
    assert data == LabelledTexts((["甲"], ["乙"]), ["True"])


@pytest.mark.slow
def test_a_given_name_wins_over_a_number(read):
    assert read("a.tsv", "2\tlabel\ttext\n很好\t1\tx\n", text="2").x == ["很好"]


# === Classes ===


def test_classes_are_sorted_as_whole_numbers_or_as_text():
    assert class_names(["10", "9", "-1", "2", "10"]) == ["-1", "2", "9", "10"]
    assert class_names(["b", "10", "9", "b"]) == ["10", "9", "b"]
    assert class_names(["5.0", "4.75"]) == ["4.75", "5.0"]
    assert class_names(["②", "①", "²"]) == ["²", "①", "②"]


def test_class_ids_are_positions():
    data = LabelledTexts(["x"] * 3, ["差评", "好评", "差评"])
    assert data.class_ids(["好评", "差评"]) == [1, 0, 1]


def test_a_label_that_is_no_class_is_named_with_its_line(read):
    classes = ["0", "1"]
    dev = read("a.csv", "label,text\n1,很好\n\n2,差\n3,还行\n")
    message = r"label '2' of line 4 of .*a.csv is not among.*'0', '1'.*\(1 more"
    with pytest.raises(ValueError, match=message):
        dev.class_ids(classes)
    # Not a class of its own.
    empty = read("b.tsv", "label\ttext\n1\t很好\n\t差\n0\t还行\n")
    assert class_names(empty.labels) == classes
    with pytest.raises(ValueError, match="label of line 3 of .*b.tsv is empty"):
        empty.class_ids(classes)


# === What is refused, and what is said ===


def test_missing_file(tmp_path):
    path = tmp_path / "nowhere.tsv"
    with pytest.raises(FileNotFoundError, match=str(path)):
        read_labelled_texts(path)


def test_unknown_ending(read):
    with pytest.raises(ValueError, match=r"unknown ending.*\.tsv.*\.csv.*\.jsonl"):
        read("a.xlsx", CONTENTS["tsv"])


@pytest.mark.parametrize(
    ("name", "content"), [("a.tsv", ""), ("a.csv", "\n\n"), ("a.jsonl", "\ufeff")]
)
def test_empty_file(read, name, content):
    with pytest.raises(ValueError, match=f"{name} is empty"):
        read(name, content)


@pytest.mark.parametrize(
    ("name", "content", "columns"),
    [
        ("a.csv", "label,text\n\n", ()),
        ("a.tsv", "score\tcomment\n", ("score", "comment")),
    ],
)
def test_header_only(read, name, content, columns):
    with pytest.raises(ValueError, match="header line and no examples"):
        read(name, content, *columns)


@pytest.mark.parametrize("encoding", ["gb18030", "gbk", "utf-16"])
def test_other_encodings_are_read_with_a_warning(tmp_path, encoding):
    file = tmp_path / "a.tsv"
    file.write_bytes(CONTENTS["tsv"].encode(encoding))
    kind = encoding.replace("gbk", "gb18030")
    with pytest.warns(UserWarning, match=f"a.tsv is {kind}, not UTF-8"):
        data = read_labelled_texts(file)
    assert data.x == TEXTS


def test_the_line_that_is_not_utf8_is_named(read):
    with pytest.raises(ValueError, match="not UTF-8: byte 0xb2 in line 3.*Save it"):
        read("a.tsv", "label\ttext\n1\t很好\n0\t".encode() + "差".encode("gbk"))


@pytest.mark.parametrize(
    ("name", "content", "line", "found"),
    [
        ("a.tsv", "1\t很好\n\n\n0\n", 4, 1),
        ("a.csv", 'label,text\n1,"两\n行"\n0\n', 4, 1),
    ],
)
def test_ragged_lines(read, name, content, line, found):
    with pytest.raises(
        ValueError, match=f"Line {line} of .*{found} columns.*first.* 2"
    ):
        read(name, content)


@pytest.mark.slow
def test_unclosed_quote_in_csv(read):
    with pytest.raises(ValueError, match="Line .* of .*a.csv is not CSV"):
        read("a.csv", 'label,text\n1,"很好\n0,差\n')


def test_broken_json(read):
    broken = '{"label": 1, "text"'
    with pytest.raises(ValueError, match="Line 3 of .*a.jsonl is not JSON"):
        read("a.jsonl", f'{{"label": 1, "text": "很好"}}\n\n{broken}\n')


@pytest.mark.slow
def test_json_that_is_not_an_object(read):
    with pytest.raises(ValueError, match=r"Line 1 of .*JSON object such as.*Found: "):
        read("a.jsonl", '["很好", 1]')


@pytest.mark.parametrize("second", ['"txt": "差"', '"text": null'])
def test_missing_json_field(read, second):
    content = f'{{"label": 1, "text": "很好"}}\n{{"label": 0, {second}}}\n'
    with pytest.raises(ValueError, match=r"Line 2 of .* lacks \['text'\]"):
        read("a.jsonl", content)


@pytest.mark.parametrize(
    ("name", "content", "column"),
    [
        ("a.tsv", "1\t很好\n0\t差\n", "0"),
        ("a.csv", CONTENTS["csv"], "4"),
        ("a.jsonl", CONTENTS["jsonl"], "stars"),
    ],
)
def test_a_given_column_that_is_not_there(read, name, content, column):
    with pytest.raises(ValueError, match=rf"no column '{column}'. Its columns are \["):
        read(name, content, label=column)


def test_a_column_that_the_header_does_not_name(read):
    with pytest.raises(ValueError, match=r"no text column.*'words'.*`text=`"):
        read("a.tsv", "label\twords\n1\t很好\n")
    with pytest.raises(ValueError, match=r"no label column.*'stars'.*`label=`"):
        read("a.jsonl", '{"stars": 1, "text": "很好"}\n')


def test_pairs_where_single_texts_are_expected_and_the_other_way(read):
    message = "a.tsv has pairs of texts where single texts are.*`text_b=`"
    with pytest.raises(ValueError, match=message):
        read("a.tsv", "label\ttext\ttext_b\n1\t好\t好\n", pairs=False)
    with pytest.raises(ValueError, match="has single texts where pairs of texts are"):
        read("a.tsv", CONTENTS["tsv"], pairs=True)


def test_no_label_column_at_all(read):
    with pytest.raises(ValueError, match="no label column.*every line is different"):
        read("a.tsv", "很好\t干净\n太差了\t脏\n还行\t旧\n")


@pytest.mark.slow
def test_more_different_labels_than_classes_are_likely(read):
    cells = [(f"第{number}句", str(number // 2)) for number in range(2400)]
    with pytest.raises(ValueError, match="no label column"):
        read("a.tsv", rows(*cells))


def test_too_many_columns_or_none_for_the_text(read):
    cells = [("甲", "乙", "丙", "1"), ("丁", "戊", "己", "0"), ("庚", "辛", "壬", "1")]
    with pytest.raises(ValueError, match="3 columns that could be text.*`text=`"):
        read("a.tsv", rows(*cells))
    with pytest.raises(ValueError, match="0 columns that could be text"):
        read("a.tsv", "1\n0\n1\n")


# === What is written comes back ===


# The csv module of Python 3.10 writes no NUL.
characters = st.characters(codec="utf-8", exclude_characters="\r\0")
texts = st.text(characters, max_size=30)
labels = st.text(characters, min_size=1, max_size=5).map(str.strip)
examples = st.lists(st.tuples(labels, texts, texts), min_size=1, max_size=8)


def as_csv(table):
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(
        [("label", "text_a", "text_b"), *table]
    )
    return file.getvalue()


def as_jsonl(table):
    names = ("label", "text_a", "text_b")
    lines = [
        json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=number % 2 == 0)
        for number, row in enumerate(table)
    ]
    return "\n".join(lines)


@pytest.mark.parametrize(("ending", "write"), [("csv", as_csv), ("jsonl", as_jsonl)])
@given(examples)
@settings(deadline=None)
def test_what_is_written_comes_back(tmp_path_factory, ending, write, table):
    path = tmp_path_factory.getbasetemp() / f"written.{ending}"
    path.write_bytes(write(table).encode())
    data = read_labelled_texts(path)
    assert data.labels == [row[0] for row in table]
    assert data.x == ([row[1] for row in table], [row[2] for row in table])


# === The data sets people have ===


def test_lcqmc(assets):
    data = read_labelled_texts(assets / "data" / "lcqmc" / "dev.tsv")
    assert data.pairs
    assert len(data.x[0]) == len(data.x[1]) == 8802
    assert collections.Counter(data.labels) == {"1": 4402, "0": 4400}
    assert data.x[0][0] == "开初婚未育证明怎么弄？"
    assert data.x[1][0] == "初婚未育情况证明怎么开？"


@pytest.mark.slow
def test_thucnews(assets):
    data = read_labelled_texts(assets / "data" / "thucnews" / "dev.tsv")
    assert not data.pairs
    assert len(data.x) == 10000
    assert class_names(data.labels) == list("0123456789")
    assert set(collections.Counter(data.labels).values()) == {1000}
    assert data.x[0] == "体验2D巅峰 倚天屠龙记十大创新概览"


@pytest.mark.slow
def test_chnsenticorp(assets, tmp_path):
    with zipfile.ZipFile(assets / "data" / "chnsenticorp.zip") as archive:
        path = archive.extract("train.tsv", tmp_path)
    data = read_labelled_texts(path)
    assert not data.pairs
    assert len(data.x) == 9600
    assert class_names(data.labels) == ["0", "1"]
    assert min(map(len, data.x)) > 0


# --- Several labels, and numbers ---


def test_several_labels_of_a_text(tmp_path):
    (tmp_path / "a.tsv").write_text("label\ttext\n体育| 娱乐\t甲\n\t乙\n财经\t丙\n")
    lines = [{"label": ["体育", "娱乐"], "text": "甲"}, {"label": [], "text": "乙"}]
    lines = [json.dumps(line) for line in (*lines, {"label": "财经", "text": "丙"})]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    for name in ("a.tsv", "a.jsonl"):
        data = read_labelled_texts(tmp_path / name)
        assert data.x == ["甲", "乙", "丙"]
        assert data.label_lists() == [["体育", "娱乐"], [], ["财经"]]


def test_labels_that_are_numbers(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("甲,乙,5.0\n丙,丁,0\n戊,己,5.0\n")
    data = read_labelled_texts(file)
    assert data.x == (["甲", "丙", "戊"], ["乙", "丁", "己"])
    assert data.scores() == [5.0, 0.0, 5.0]
    for bad in ("好", "nan", ""):
        file.write_text(f"text,score\n甲,1\n乙,{bad}\n")
        with pytest.raises(ValueError, match=f"label '{bad}' of line 3 of"):
            read_labelled_texts(file).scores()


def test_texts_without_labels(tmp_path):
    table, lines = tmp_path / "a.tsv", tmp_path / "b.csv"
    table.write_text("id\tsentence1\tsentence2\n1\t甲\t乙\n2\t丙\t丁\n", "utf-8")
    lines.write_text('甲\n"乙,丙"\n', "utf-8")
    assert read_texts(table) == ["甲", "丙"]
    assert read_texts(table, text=3) == ["乙", "丁"]
    assert read_texts(table, pairs=True) == (["甲", "丙"], ["乙", "丁"])
    assert read_texts(lines) == ["甲", "乙,丙"]
    with pytest.raises(ValueError, match="has 1 columns, .* the text. .* `text=`"):
        read_texts(lines, pairs=True)
