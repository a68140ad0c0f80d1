"""Files of the SQuAD form: what is read, found again and refused."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_tf.data import find_answer, read_squad

CONTEXT = "黄河长5464公里，是中国第二长河。黄河发源于青海😀。"


def question(*answers, **fields):
    answers = [{"text": text, "answer_start": start} for text, start in answers]
    return {"question": "多长？", "id": "q", "answers": answers, **fields}


def squad(*questions, context=CONTEXT):
    return {"data": [{"paragraphs": [{"context": context, "qas": list(questions)}]}]}


@pytest.fixture
def read(tmp_path):
    def write_and_read(content):
        path = tmp_path / "questions.json"
        is_text = isinstance(content, str)
        path.write_text(content if is_text else json.dumps(content), "utf-8")
        return read_squad(path)

    return write_and_read


def test_answers_are_found_again_and_counted(read):
    data = read(
        squad(
            question(("5464公里", 3)),
            question(("黄河", 20), ("中国", -1)),  # Nearest is 18.
            question(("长江", 4), ("青海", 23)),
            question(("长江", 4)),
            question(is_impossible=True, plausible_answers=[]),
            question(("", -1)),
        )
    )
    assert data.answers == [
        [(3, "5464公里")],
        [(18, "黄河"), (11, "中国")],
        [(None, "长江"), (23, "青海")],
        [(None, "长江")],
        [],
        [],
    ]
    assert (len(data), data.moved, data.absent) == (6, 2, 2)
    assert data.texts[2] == ["长江", "青海"]
    assert data.x == (["多长？"] * 6, [CONTEXT] * 6)

    training = data.for_training()
    assert training.answers == [*data.answers[:3], [], []]
    assert (len(training), training.skipped, training.moved) == (5, 1, 2)


@given(st.text("ab", max_size=12), st.text("ab", min_size=1, max_size=3), st.integers())
def test_the_nearest_place(context, text, start):
    places = [i for i in range(len(context)) if context.startswith(text, i)]
    found = find_answer(context, start, text)
    if not places:
        assert found is None
    else:
        assert abs(found - start) == min(abs(place - start) for place in places)
        assert context[found : found + len(text)] == text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "Line 1 of .*questions.json is not JSON"),
        ([], "questions.json should be an object with the field 'data'"),
        ({"data": []}, "has no questions"),
        ({"data": [{}]}, r"data\[0\] of .*json has no field 'paragraphs'"),
        (squad({"id": 1}), r"data\[0\].paragraphs\[0\].qas\[0\] .* no field 'answers'"),
        (
            squad(question(("公里", "7"))),
            r"'answer_start' of answers\[0\] of data.*'7'",
        ),
        (squad(question(), context=3), "'context' of .* should be a string"),
    ],
)
def test_what_is_refused(read, content, message):
    with pytest.raises(ValueError, match=message):
        read(content)


@pytest.mark.parametrize(
    ("name", "counts"), [("trial", (1002, 5, 0, 0)), ("dev", (3219, 7, 193, 0))]
)
def test_cmrc(assets, name, counts):
    data = read_squad(assets / "data" / "cmrc2018" / f"cmrc2018_{name}.json")
    training = data.for_training()
    assert (len(data), data.moved, data.absent, training.skipped) == counts
    for context, answers in zip(training.contexts, training.answers, strict=True):
        places = [(start, text) for start, text in answers if start is not None]
        assert places
        for start, text in places:
            assert context[start : start + len(text)] == text
