"""Files of questions, choices, articles and wrong characters; pairs of few texts."""

import collections
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from albert_tf.data import (
    contrastive_pairs,
    read_articles,
    read_choices,
    read_spelling,
    read_squad,
)
from albert_tf.data.labels.text_spans import find_answer

# === Questions with answers in a context ===

CONTEXT = "黄河长5464公里，是中国第二长河。黄河发源于青海😀。"


def question(*answers, **fields):
    answers = [{"text": text, "answer_start": start} for text, start in answers]
    return {"question": "多长？", "id": "q", "answers": answers, **fields}


def squad(*questions, context=CONTEXT):
    return {"data": [{"paragraphs": [{"context": context, "qas": list(questions)}]}]}


def test_wrong_answer_offsets_are_corrected_and_counted(write):
    content = squad(
        question(("5464公里", 3)),
        question(("黄河", 20), ("中国", -1)),  # Nearest is 18.
        question(("长江", 4), ("青海", 23)),
        question(("长江", 4)),
        question(is_impossible=True, plausible_answers=[]),
        question(("", -1)),
    )
    data = read_squad(write(content))
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
    assert (len(training), training.skipped) == (5, 1)


@given(st.text("ab", max_size=12), st.text("ab", min_size=1, max_size=3), st.integers())
def test_the_nearest_place_of_an_answer(context, text, start):
    places = [i for i in range(len(context)) if context.startswith(text, i)]
    found = find_answer(context, start, text)
    assert found in (places or [None])
    assert not places or abs(found - start) == min(abs(x - start) for x in places)


# === Questions with choices ===

RACE = {
    "id": "high1.txt",
    "article": "It rains.",
    "questions": ["What falls?", "It _ ."],
    "options": [["snow", "rain"], ["rains", "snows"]],
    "answers": ["B", "A"],
}


def test_choices_of_chid_have_their_answers_in_a_file_beside(write, tmp_path):
    content = ["他#idiom000001#，又#idiom000002#。", "前程#idiom000003#"]
    entry = {"content": content, "candidates": ["一日千里", "百花齐放"]}
    answers = {"#idiom000001#": 1, "#idiom000002#": 0, "#idiom000003#": 1}
    file = write(entry, "dev.json")
    assert read_choices(file).labels is None
    write(answers, "dev_answer.json")
    for path in (tmp_path, file):
        found = read_choices(path)
        assert found.contexts == ["他____，又……。", "他……，又____。", "前程____"]
        assert found.choices == [entry["candidates"]] * 3 and found.labels == [1, 0, 1]
    write({**answers, "#idiom000003#": 2}, "dev_answer.json")
    with pytest.raises(ValueError, match="one of 2 candidates. Found: 2"):
        read_choices(file)
    write([1], "dev_answer.json")
    with pytest.raises(ValueError, match="dev_answer.json should be one JSON object"):
        read_choices(file)


def test_choices_of_race_in_a_file_lines_and_a_directory(write, tmp_path):
    data = read_choices(write(RACE, "1.txt"))
    assert data.contexts == ["It rains."] * 2
    assert (data.choices, data.labels) == (RACE["options"], [1, 0])
    lines = write(f"{json.dumps(RACE)}\n\n{json.dumps(RACE)}\n", "all.jsonl")
    assert read_choices(lines).labels == [1, 0, 1, 0]
    (tmp_path / "race" / "high").mkdir(parents=True)
    for name in ("2.txt", "1.txt"):
        write({**RACE, "article": name}, f"race/high/{name}")
    contexts = read_choices(tmp_path / "race").contexts
    assert contexts == ["1.txt", "1.txt", "2.txt", "2.txt"]
    assert read_choices(write({**RACE, "answers": []})).labels is None


# === Articles and wrong characters ===


def test_articles_and_texts_with_errors(write):
    first = {"article": "他来了。她走了。", "summary": "他来了"}
    second = {"summary": "她走了", "article": ["他来了。", "她走了。"]}
    articles = [first["article"], second["article"]], ["他来了", "她走了"]
    assert read_articles(write([first, second])) == articles
    lines = f"{json.dumps(first)}\n{json.dumps(second)}\n"
    assert read_articles(write(lines, "a.jsonl")) == articles
    wrong = ["我再家", "很好"], ["我在家", "很好"]
    names = ("original_text", "correct_text")
    rows = [dict(zip(names, row, strict=True)) for row in zip(*wrong, strict=True)]
    assert read_spelling(write([{**x, "wrong_ids": []} for x in rows])) == wrong
    lines = "\ufeff我再家\t我在家\r\n\r\n很好\t很好\r\n"
    assert read_spelling(write(lines, "a.tsv")) == wrong


# === Pairs to compare, of a few texts ===

TEXTS = ["a0", "a1", "b0", "b1", "b2", "b3", "c0", "c1", "c2"]


def test_every_text_meets_its_own_class_and_others():
    labels = [text[0] for text in TEXTS]
    (first, second), scores = contrastive_pairs(TEXTS, labels, rounds=5)
    assert len(first) == len(second) == len(scores) == 2 * 5 * len(TEXTS)
    for a, b, score in zip(first, second, scores, strict=True):
        assert a != b and (a[0] == b[0]) == (score == 1)
    assert scores.mean() == 0.5
    assert set(collections.Counter(first).values()) == {10}
    # Drawn again in each round, by the seed.
    assert len({b for a, b in zip(first, second, strict=True) if a == "b0"}) > 4
    assert contrastive_pairs(TEXTS, labels, rounds=5)[0] == (first, second)
    with pytest.raises(ValueError, match=r"Found: \{'a': 8, 'b': 1\}"):
        contrastive_pairs(TEXTS, ["a"] * 8 + ["b"])
