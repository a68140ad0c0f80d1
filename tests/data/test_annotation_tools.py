"""Files of CLUE and of annotation tools are read without options."""

import functools
import json

import pytest

from albert_tf.data import (
    read_choices,
    read_labelled_texts,
    read_squad,
    read_tagged_texts,
)


def lines(*records):
    return "".join(f"{json.dumps(x, ensure_ascii=False)}\n" for x in records)


def whole(value):
    return json.dumps(value, ensure_ascii=False, indent=1)


def csv(*rows):
    return "".join(",".join(f'"{x}"' for x in row) + "\n" for row in rows)


# === One label per text or pair ===

TEXT, OTHER = "小明在北京上班", "小红去了上海"
META = {"annotator": 1, "annotation_id": 9, "created_at": "2024", "lead_time": 3.2}
PRONOUN = {"span1_index": 2, "span1_text": "杯", "span2_index": 5, "span2_text": "它"}


def studio(text, *results, cancelled=False):
    result = [
        {"from_name": "topic", "to_name": "text", "type": "choices", "value": x}
        for x in results
    ]
    annotation = {"id": 9, "result": result, "was_cancelled": cancelled}
    return {"id": 1, "data": {"text": text}, "annotations": [annotation], "meta": {}}


def two(record):
    """Return records, functions of text and label, as JSON lines."""
    return lines(record(TEXT, "news_a"), record(OTHER, "news_b"))


LABELLED = {
    "TNEWS": two(lambda x, y: {"label": "1", "label_desc": y, "sentence": x, "k": ""}),
    "IFLYTEK": two(lambda x, y: {"label": "7", "label_des": y, "sentence": x}),
    "doccano": two(lambda x, y: {"id": 1, "text": x, "label": [y], "Comments": []}),
    "doccano, labels": two(lambda x, y: {"id": 1, "text": x, "labels": [y]}),
    "doccano, annotations": two(
        lambda x, y: {"text": x, "annotations": [{"label": y, "user": 1}]}
    ),
    "doccano.csv": csv(
        ("id", "text", "label"), (1, TEXT, "news_a"), (2, OTHER, "news_b")
    ),
    "Label Studio": whole(
        [studio(TEXT, {"choices": ["news_a"]}), studio(OTHER, {"choices": ["news_b"]})]
    ),
    "Label Studio, JSON-MIN": whole(
        [
            {"text": TEXT, "id": 1, "topic": "news_a", **META},
            {"text": OTHER, "id": 2, "topic": {"choices": ["news_b"]}, **META},
        ]
    ),
    "studio.csv": csv(
        ("annotation_id", "id", "lead_time", "text", "topic"),
        (9, 1, 3.2, TEXT, "news_a"),
        (8, 2, 3.2, OTHER, '{""choices"":[""news_b""]}'),
    ),
}


@pytest.fixture
def read(write):
    """Write a file, by default a.json, and read it."""
    return lambda reader, content, name="": reader(
        write(content, name if "." in name else "a.json")
    )


@pytest.mark.parametrize("name", LABELLED)
def test_a_label_per_text(read, name):
    found = read(read_labelled_texts, LABELLED[name], name)
    assert (found.x, found.labels) == ([TEXT, OTHER], ["news_a", "news_b"])


@pytest.mark.parametrize(
    ("record", "x"),
    [
        # AFQMC and CMNLI; CSL; CLUEWSC, where a position is wrong.
        ({"sentence1": TEXT, "sentence2": OTHER}, ([TEXT], [OTHER])),
        ({"id": 7, "abst": TEXT, "keyword": ["北京", "班"]}, ([TEXT], ["北京 班"])),
        (
            {"target": PRONOUN, "text": "旧杯子碎了，它很脆。"},
            ["旧_杯_子碎了，[它]很脆。"],
        ),
    ],
)
def test_records_of_clue(read, record, x):
    content = lines({**record, "label": "true"})
    found = read(read_labelled_texts, content)
    assert (found.x, found.labels) == (x, ["true"])


def test_labels_that_differ_and_those_of_cancelled_tasks(read):
    choices = {"choices": ["体育", "财经"]}
    given = studio(TEXT, choices)
    other = {"choices": ["其他"]}
    given["annotations"] += studio("", other, cancelled=True)["annotations"]
    found = read(read_labelled_texts, whole([given]))
    assert found.label_lists() == [["体育", "财经"]]
    given["annotations"] += studio("", other)["annotations"]
    with pytest.raises(ValueError, match="Entry 1 .* annotations that differ. Exp"):
        read(read_labelled_texts, whole([given]))


def test_labels_that_look_like_json(read):
    # Names of classes, and lists as Python prints them.
    for label, expected in (('[{"', '[{"'), ('[{"a"}]', '[{"a"}]'), ("['a']", "a")):
        content = lines({"text": TEXT, "label": label}, {"text": OTHER, "label": "b"})
        assert read(read_labelled_texts, content).labels == [expected, "b"]
    # A spreadsheet cuts cells of 32,767 characters.
    with pytest.raises(ValueError, match="is damaged JSON of Label Studio"):
        read(read_labelled_texts, lines({"text": TEXT, "label": '[{"start": 1, "e'}))


# === Spans ===

SPANS = [(0, 2, "PER"), (3, 5, "LOC")]
ITEMS = [
    {"start": 3, "end": 5, "text": "北京", "labels": ["LOC"]},
    {"start": 0, "end": 2, "text": "小明", "labels": ["PER"]},
]
OFFSETS = [
    {"start_offset": s, "end_offset": e, "label": label} for s, e, label in SPANS
]
TAGGED = {
    "CLUENER": lines(
        {"text": TEXT, "label": {"PER": {"小明": [[0, 1]]}, "LOC": {"北京": [[3, 4]]}}}
    ),
    "doccano, label": lines({"id": 1, "text": TEXT, "label": SPANS}),
    "doccano, labels": lines({"id": 1, "text": TEXT, "labels": SPANS}),
    "doccano, entities": lines({"text": TEXT, "entities": OFFSETS, "relations": []}),
    "doccano, annotations": lines({"text": TEXT, "annotations": OFFSETS}),
    "Label Studio": whole([studio(TEXT, *ITEMS)]),
    "Label Studio, JSON-MIN": whole([{"text": TEXT, "id": 1, "tags": ITEMS, **META}]),
    "studio.csv": csv(
        ("annotation_id", "id", "lead_time", "tags", "text"),
        (9, 1, 3.2, json.dumps(ITEMS).replace('"', '""'), TEXT),
    ),
}


@pytest.mark.parametrize("name", TAGGED)
def test_spans_of_a_text(read, name):
    found = read(read_tagged_texts, TAGGED[name], name)
    assert (found.x, found.spans) == ([TEXT], [SPANS])
    # The task decides: spans are no labels of texts.
    with pytest.raises(ValueError, match="has spans instead of a label.*token-classif"):
        read(read_labelled_texts, TAGGED[name], name)


def test_offsets_are_compared_with_the_text_of_the_span(read):
    # Label Studio once counted UTF-16 units.
    wide, relation = {**ITEMS[1], "start": 2, "end": 4}, {"type": "relation"}
    record = studio("😀小明在北京", wide)
    record["annotations"][0]["result"].append({**relation, "from_id": 1, "to_id": 2})
    with pytest.warns(UserWarning, match="1 texts, .* in UTF-16 units"):
        assert read(read_tagged_texts, whole([record])).spans == [[(1, 3, "PER")]]
    for span, message in (
        ({**ITEMS[1], "end": 1}, r"text\[0:1\] is '小', not '小明'"),
        ({**ITEMS[1], "labels": ["PER", "LOC"]}, "has 2 labels. Expected one"),
    ):
        with pytest.raises(ValueError, match=message):
            read(read_tagged_texts, whole([studio(TEXT, span)]))


# === Questions ===

ANSWER = {"text": "北京", "answer_start": 3}
QUESTION = {"id": "T1_Q1", "question": "在哪？", "answers": [ANSWER]}
OLD = {"query_id": "T1_Q1", "query_text": "在哪？", "answers": ["北京"]}
HUGGING_FACE = {"text": ["北京"], "answer_start": [3]}
SQUAD = {
    "CMRC": {"data": [{"paragraphs": [{"context": TEXT, "qas": [QUESTION]}]}]},
    "CMRC, first form": [{"context_id": "T1", "context_text": TEXT, "qas": [OLD]}],
    "JSON lines": {**QUESTION, "context": TEXT},
    "Hugging Face": {**QUESTION, "context": TEXT, "answers": HUGGING_FACE},
}


@pytest.mark.parametrize("content", SQUAD.values(), ids=SQUAD)
def test_answers_in_a_context(read, content):
    found = read(read_squad, lines(content))
    assert found.x == (["在哪？"], [TEXT]) and found.answers == [[(3, "北京")]]
    assert (found.ids, found.moved) == (["T1_Q1"], 0)
    other = lines(content).replace("answers", "none")
    without = functools.partial(read_squad, has_answers=False)
    assert read(without, other).x == found.x
    with pytest.raises(ValueError, match="should have the field 'answers'"):
        read(read_squad, other)


def test_choices_of_c3(read):
    question = {"question": "谁？", "choice": ["小明", "小红"], "answer": "小红"}
    content = whole([[[OTHER, TEXT], [question], "m1-2"]])
    found = read(read_choices, content)
    assert found.x == ([f"{OTHER}\n{TEXT}"], ["谁？"], [["小明", "小红"]])
    assert (found.labels, found.ids) == ([1], ["m1-2"])
