"""Files of the C3 and RACE forms."""

import json

import pytest

from albert_tf.data import read_choices

C3 = [
    [
        ["男：几点了？", "女：八点。"],
        [
            {"question": "现在几点？", "choice": ["七点", "八点"], "answer": "八点"},
            {"question": "谁问？", "choice": ["男", "女", "不知道"], "answer": "男"},
        ],
        "1-7",
    ],
    [["天黑了。"], [{"question": "天？", "choice": ["黑"], "answer": "黑"}], "1-8"],
]
RACE = {
    "id": "high1.txt",
    "article": "It rains.",
    "questions": ["What falls?", "It _ ."],
    "options": [["snow", "rain"], ["rains", "snows"]],
    "answers": ["B", "A"],
}


@pytest.fixture
def read(tmp_path):
    def write_and_read(content, name="questions.json"):
        is_text = isinstance(content, str)
        text = content if is_text else json.dumps(content, ensure_ascii=False)
        (tmp_path / name).write_text(text, "utf-8")
        return read_choices(tmp_path / name)

    return write_and_read


def test_c3(read):
    data = read(C3)
    assert data.contexts == ["男：几点了？\n女：八点。"] * 2 + ["天黑了。"]
    assert data.questions == ["现在几点？", "谁问？", "天？"]
    assert data.choices == [["七点", "八点"], ["男", "女", "不知道"], ["黑"]]
    assert data.labels == [1, 0, 0]
    assert data.ids == ["1-7-0", "1-7-1", "1-8-0"]
    assert data.x == (data.contexts, data.questions, data.choices)


def test_race_as_file_lines_and_directory(read, tmp_path):
    data = read(RACE, "1.txt")
    assert data.contexts == ["It rains."] * 2
    assert data.choices == RACE["options"] and data.labels == [1, 0]
    lines = read(f"{json.dumps(RACE)}\n\n{json.dumps(RACE)}\n", "all.jsonl")
    assert lines.labels == [1, 0, 1, 0]
    (tmp_path / "race" / "high").mkdir(parents=True)
    for name in ("2.txt", "1.txt"):
        content = {**RACE, "id": name}
        (tmp_path / "race" / "high" / name).write_text(json.dumps(content))
    folder = read_choices(tmp_path / "race")
    assert folder.ids == ["1.txt-0", "1.txt-1", "2.txt-0", "2.txt-1"]


def test_without_answers(read):
    assert read({**RACE, "answers": []}).labels is None
    partly = json.loads(json.dumps(C3))
    del partly[0][1][1]["answer"]
    with pytest.raises(ValueError, match="1 questions without an answer .* id 1-7-1"):
        read(partly)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([["天黑了。"]], r"\[0\] of .*json should be a list of a document"),
        ([[["天"], [{"question": "?"}]]], r"\[0\]\[1\]\[0\] of .* no field 'choice'"),
        (
            [[["天"], [{"question": "?", "choice": ["黑"], "answer": "白"}]]],
            "answer '白' of .* none of its choices",
        ),
        ({**RACE, "answers": ["E", "A"]}, "question 0 of .* letter of its 2 options"),
        ({**RACE, "options": [["a"]]}, "2 questions, 1 lists of options and 2 answers"),
        (
            {**RACE, "options": [["a", "b"], [1]]},
            "options of question 1 .* strings only",
        ),
        ([], "has no questions"),
        ("3", "should be a list of documents"),
    ],
)
def test_what_is_refused(read, content, message):
    with pytest.raises(ValueError, match=message):
        read(content)


def test_lines_are_named(read):
    with pytest.raises(ValueError, match="Line 2 of .*a.jsonl is not JSON"):
        read(json.dumps(RACE) + "\n{", "a.jsonl")
    with pytest.raises(ValueError, match="Line 1 of .* no field 'article'"):
        read("{}", "b.jsonl")
