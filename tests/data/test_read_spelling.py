"""Texts with errors, from files."""

import json

import pytest

from albert_tf.data import read_spelling

EXPECTED = (["我再家", "很好"], ["我在家", "很好"])


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_lines(tmp_path, end):
    file = tmp_path / "pairs.tsv"
    lines = ["我再家\t我在家", "", "很好\t很好", ""]
    file.write_bytes(("\ufeff" + end.join(lines)).encode())
    assert read_spelling(file) == EXPECTED


@pytest.mark.parametrize(
    "keys", [("original_text", "correct_text"), ("source", "target")]
)
@pytest.mark.parametrize("suffix", [".json", ".jsonl"])
def test_json(tmp_path, keys, suffix):
    records = [dict(zip(keys, row, strict=True)) for row in zip(*EXPECTED, strict=True)]
    rows = [json.dumps({**record, "wrong_ids": []}) for record in records]
    text = f"[{','.join(rows)}]" if suffix == ".json" else "\n".join(rows)
    file = tmp_path / f"pairs{suffix}"
    file.write_text(text, encoding="utf-8")
    assert read_spelling(file) == EXPECTED


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.tsv", "好\t好\n好\n", r"Line 2 of .*a\.tsv has 1 columns"),
        ("a.tsv", "好\t好的\n", r"Line 1 of .*a\.tsv has texts of 1 and 2 characters"),
        ("a.tsv", "\n", r"a\.tsv holds no texts"),
        ("a.json", '[{"source": "好"}]', r"Entry 1 of .*a\.json is not an object with"),
        ("a.jsonl", '{"source": "好"', r"Line 1 of .*a\.jsonl is not JSON"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, name, text, message):
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        read_spelling(tmp_path / name)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="none.tsv does not exist"):
        read_spelling(tmp_path / "none.tsv")
