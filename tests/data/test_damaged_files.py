"""Damaged and hostile files, and mistakes in them, end in one error with its place."""

import gzip

import pytest

from albert_tf.data import (
    read_articles,
    read_choices,
    read_labelled_texts,
    read_spelling,
    read_squad,
    read_tagged_texts,
)
from albert_tf_lite.errors import AlbertError

TSV = "label\ttext\n1\t很好\n0\t太差了，不会再来\n1\t还行吧\n"
CSV = "label,text\n1,很好\n0,太差了，不会再来\n1,还行吧\n"
JSONL = '{"label": 1, "text": "好"}\n' * 3
DEEP = "[" * 100_000

# === Tables ===

# Name, content, message, options.
TABLES = {
    "encoding": (
        "a.tsv",
        "label\ttext\n1\t很好\n0\t".encode() + "差".encode("gbk"),
        "not UTF-8: byte 0xb2 in line 3.*Save it",
    ),
    "ragged": ("a.tsv", "1\t很好\n\n\n0\n", "Line 4 of .*1 columns.*first.* 2"),
    "cut JSON": ("a.jsonl", f'{JSONL}\n{{"label": 1, "te', "Line 5 of .* not JSON"),
    "no text": ("a.tsv", "label\twords\n1\t很好\n", "no text column.*`text=`"),
    "empty": ("a.tsv", "\n", "a.tsv has no examples"),
    "header only": ("a.csv", "label,text\n", r"no examples.*\['label', 'text'\]"),
    "other column": ("a.tsv", TSV, "no column 'class'.*'label'", ("label", "class")),
    "single texts": ("a.tsv", TSV, "single texts. Expected pairs", ("pairs", True)),
    "no label": ("a.tsv", "1\ta\n2\tb\n", "two columns have 2 distinct values each"),
    "one column": ("a.tsv", CSV, "one column, 'label,text'. .* name the file .csv"),
    "full width": ("a.csv", "label，text\n1，好\n", "one column.*replace them by comm"),
    "object": ("a.jsonl", '{"text": {"0": "好"}, "label": 1}', 'orient="records"'),
    "too many": (
        "a.tsv",
        "1\ta\tb\tc\n1\td\te\tf\n",
        "no header and 4 columns.*first row is .'1', 'a'",
    ),
    "no field": (
        "a.jsonl",
        f'{JSONL}{{"label": 1}}\n',
        "Line 4 .*no value in .*'text'",
    ),
    "no object": ("a.jsonl", f"{JSONL}[1]\n", "Line 4 .*JSON object.*\\[1\\]"),
    "image": ("a.csv", b"\x89PNG\r\n\x1a\n", "is not text but looks like an image"),
    "zip": ("a.tsv", b"PK\x03\x04 ", "looks like a zip archive"),
    "zeros": ("a.tsv", b"ab\0" * 99, "is not UTF-16-BE"),
    "page": ("a.xlsx", " <!DOCTYPE html>", "looks like a page in HTML"),
    "wiki": ("a.txt", '<doc id="1">\n甲\n', "WikiExtractor, .*pretrain-data"),
    "names": ("a.jsonl", '{"text": "好", "text": "差"}', "an object has a name twice"),
    "spans": ("a.jsonl", '{"text": "好", "label": [[0, 1, "X"]]}', "token-classif"),
    "nested": ("a.jsonl", f'{{"text": {DEEP}', "Line 1 of .* is not JSON"),
    "gzip": ("a.tsv.gz", gzip.compress(TSV.encode())[:-9], "is damaged or truncated"),
    "quote": ("a.csv", f'{CSV}1,"很好\n', "a.csv is not CSV: unexpected end"),
}


@pytest.mark.parametrize("case", TABLES.values(), ids=TABLES)
def test_a_table_names_file_line_and_value(write, case):
    name, content, message, *options = case
    with pytest.raises(AlbertError, match=message):
        read_labelled_texts(write(content, name), **dict(options))


# === Tagged texts ===

TAGGED = {
    "other tag": ("中 B-ORG\n国 X-ORG\n", "Line 2 of .*'X-ORG' is not a tag"),
    "two forms": ("中 B-ORG\n国 ORG-I\n", "Line 2 of .*Did you mean I-ORG. All tags"),
    "a colon": ("中 B:ORG\n国 I:ORG\n", "Line 1 of .*Did you mean B-ORG"),
    "full width": ("中 Ｂ－ORG\n国 I-ORG\n", "Line 1 of .*Did you mean B-ORG"),
    "pieces": ("中 B-ORG\n国 X\n", "Line 2 of .*replace X by O or by the I- tag"),
    "two tags": ("中 B-ORG|B-LOC\n", "Line 1 of .* has several tags, .*Keep one of"),
    "not opened": ("中/ns 国/n]nt", "Line 1 of .*'国/n.nt' closes a bracket that was"),
    "not closed": ("好/a\n[中/ns 国/n", "Line 2 of .*'.' is not closed"),
    "no label": ("[中/ns 国/n] 好/a", "Line 1 of .*'.' does not close a bracket with"),
    "cut JSON": ('{"text": "a", "label": []}\n{"text": \n', "Line 2 of .* not JSON"),
    "no entities": ("\n \n", "is empty. Expected texts with entities"),
    "other text": (
        '{"text": "好", "label": {"X": {"坏": [[0, 0]]}}}',
        r"Line 1 of .*text\[0:1\] is '好', not '坏'",
    ),
    "no field": ('{"text": "好"}', "has no label column. Its columns are .'text'"),
    "overlap": (
        '{"text": "好吗", "label": [[0, 2, "X"], [1, 2, "Y"]]}',
        r"\(0, 2, 'X'\) and \(1, 2, 'Y'\) overlap",
    ),
    "outside": ('\n{"text": "好", "label": [[0, 2, "X"]]}\n', "Line 2 of .*not lie"),
}


@pytest.mark.parametrize("case", TAGGED.values(), ids=TAGGED)
def test_a_tagged_text_names_the_line(write, case):
    content, message = case
    with pytest.raises(AlbertError, match=message):
        read_tagged_texts(write(content, "data.txt"))


# === Entries of JSON ===

ARTICLE = '{"article": "好", "summary": "好"}\n'
CHOICE = {"question": "?", "choice": ["黑"], "answer": "白"}
RACE = {"article": "天", "questions": ["一", "二"], "options": [["甲", "乙"]] * 2}
ENTRIES = [
    (read_squad, "a.json", "{", "a.json is not JSON: .*line 1"),
    (read_choices, "a.json", [[["天"], [CHOICE]]], r"one of \['黑'\].*'白'"),
    (read_choices, "a.json", [["天", "地"]], "a list of a document, its questions"),
    (read_choices, "a.json", {**RACE, "answers": ["A"]}, "2 questions, .* 1 answers"),
    (read_choices, "a.json", [7], "Entry 1 of .* should be a list of C3, or an object"),
    (read_choices, "a.json", f'{{"x": {DEEP}', "a.json is not JSON"),
    (read_squad, "a.json", {"data": []}, "a.json has no questions"),
    (
        read_squad,
        "a.json",
        {"data": [{"context": "天", "question": "?"}]},
        r"data\[0\].*field 'answers'",
    ),
    (read_spelling, "a.tsv", "好\t好\n好\t好好\n", "Line 2 .* of 1 and 2 characters"),
    (read_articles, "a.jsonl", ARTICLE + '{"article": "好"}', "Line 2 of .*'summary'"),
]


@pytest.mark.parametrize(("read", "name", "content", "message"), ENTRIES)
def test_an_entry_names_its_place(write, read, name, content, message):
    with pytest.raises(AlbertError, match=message):
        read(write(content, name))
