"""Files of CLUE and of annotation tools are read without options."""

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


LABELLED = {
    "TNEWS": lines(
        {"label": "101", "label_desc": "news_a", "sentence": TEXT, "keywords": "北京"},
        {"label": "102", "label_desc": "news_b", "sentence": OTHER, "keywords": ""},
    ),
    "IFLYTEK": lines(
        {"label": "7", "label_des": "news_a", "sentence": TEXT},
        {"label": "8", "label_des": "news_b", "sentence": OTHER},
    ),
    "doccano": lines(
        {"id": 1, "text": TEXT, "label": ["news_a"], "Comments": []},
        {"id": 2, "text": OTHER, "label": ["news_b"], "Comments": []},
    ),
    "doccano, labels": lines(
        {"id": 1, "text": TEXT, "labels": ["news_a"]},
        {"id": 2, "text": OTHER, "labels": ["news_b"]},
    ),
    "doccano, annotations": lines(
        {"text": TEXT, "annotations": [{"label": "news_a", "user": 1}]},
        {"text": OTHER, "annotations": [{"label": "news_b", "user": 1}]},
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


def read(tmp_path, reader, name, content, suffix=".json"):
    path = tmp_path / (name if "." in name else f"a{suffix}")
    path.write_bytes(content.encode())
    return reader(path)


@pytest.mark.parametrize("name", LABELLED)
def test_a_label_per_text(tmp_path, name):
    found = read(tmp_path, read_labelled_texts, name, LABELLED[name])
    assert (found.x, found.labels) == ([TEXT, OTHER], ["news_a", "news_b"])


@pytest.mark.parametrize(
    ("record", "x"),
    [
        # AFQMC and CMNLI; CSL; CLUEWSC, where a position is wrong.
        ({"sentence1": TEXT, "sentence2": OTHER, "label": "1"}, (TEXT, OTHER)),
        (
            {"id": 7, "abst": TEXT, "keyword": ["北京", "上班"], "label": "1"},
            (TEXT, "北京 上班"),
        ),
        (
            {"target": PRONOUN, "text": "旧杯子碎了，它很脆。", "label": "true"},
            "旧_杯_子碎了，[它]很脆。",
        ),
    ],
)
def test_records_of_clue(tmp_path, record, x):
    found = read(tmp_path, read_labelled_texts, "", lines(record))
    assert [*zip(*found.x, strict=True)] == [x] if found.pairs else found.x == [x]
    assert found.labels == [record["label"]]


def test_labels_that_differ_and_those_of_cancelled_tasks(tmp_path):
    choices = {"choices": ["体育", "财经"]}
    given = studio(TEXT, choices)
    given["annotations"] += studio("", {"choices": ["其他"]}, cancelled=True)[
        "annotations"
    ]
    found = read(tmp_path, read_labelled_texts, "", whole([given]))
    assert found.label_lists() == [["体育", "财经"]]
    given["annotations"] += studio("", {"choices": ["其他"]})["annotations"]
    with pytest.raises(
        ValueError, match="Entry 1 .* annotations that differ. Export on"
    ):
        read(tmp_path, read_labelled_texts, "", whole([given]))


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
def test_spans_of_a_text(tmp_path, name):
    found = read(tmp_path, read_tagged_texts, name, TAGGED[name])
    assert (found.x, found.spans) == ([TEXT], [SPANS])
    # The task decides: spans are no labels of texts.
    with pytest.raises(ValueError, match="has spans instead of a label.*token-classif"):
        read(tmp_path, read_labelled_texts, name, TAGGED[name])


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
def test_answers_in_a_context(tmp_path, content):
    found = read(tmp_path, read_squad, "", lines(content))
    assert found.x == (["在哪？"], [TEXT]) and found.answers == [[(3, "北京")]]
    assert (found.ids, found.moved) == (["T1_Q1"], 0)
    path = tmp_path / "a.json"
    path.write_text(lines(content).replace("answers", "none"), "utf-8")
    assert read_squad(path, has_answers=False).x == found.x
    with pytest.raises(ValueError, match="should have the field 'answers'"):
        read_squad(path)


def test_choices_of_c3(tmp_path):
    question = {"question": "谁？", "choice": ["小明", "小红"], "answer": "小红"}
    found = read(
        tmp_path, read_choices, "", whole([[[OTHER, TEXT], [question], "m1-2"]])
    )
    assert found.x == ([f"{OTHER}\n{TEXT}"], ["谁？"], [["小明", "小红"]])
    assert (found.labels, found.ids) == ([1], ["m1-2"])
