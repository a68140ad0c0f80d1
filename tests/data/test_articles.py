"""Articles and summaries, in lines or a list of JSON."""

import json

import pytest

from albert_tf.data import read_articles

RECORDS = [
    {"article": "他来了。她走了。", "summary": "他来了"},
    {"content": ["他来了。", "她走了。"], "title": "她走了"},
    {"summarization": "好", "article": "很好。", "index": 3},
]


@pytest.mark.parametrize("name", ["articles.json", "articles.jsonl"])
def test_both_forms_and_the_names_of_others(tmp_path, name):
    lines = [json.dumps(record, ensure_ascii=False) for record in RECORDS]
    text = "\n".join(lines) + "\n"
    if name.endswith(".json"):
        text = f"[{', '.join(lines)}]"
    (tmp_path / name).write_text(text, "utf-8")
    assert read_articles(tmp_path / name) == (
        ["他来了。她走了。", ["他来了。", "她走了。"], "很好。"],
        ["他来了", "她走了", "好"],
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"article": "好"}', "Line 2 of .*'summary'"),
        ('["好", "好"]', "Line 2 of .*'article'"),
        ('{"article": [], "summary": "好"}', "Line 2 of .*list of sentences"),
        ('{"article": "好", "summary": 3}', "Line 2 of .*list of sentences"),
        ("{", "Line 2 of .*not JSON"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, line, message):
    path = tmp_path / "articles.jsonl"
    path.write_text(json.dumps(RECORDS[0]) + "\n" + line, "utf-8")
    with pytest.raises(ValueError, match=message):
        read_articles(path)


def test_no_articles(tmp_path):
    (tmp_path / "articles.jsonl").write_text("\n")
    with pytest.raises(ValueError, match="holds no articles"):
        read_articles(tmp_path / "articles.jsonl")
    with pytest.raises(FileNotFoundError, match="There is no file"):
        read_articles(tmp_path / "other.jsonl")
