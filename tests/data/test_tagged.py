"""Files of texts with entities, in every form; what is refused, and where."""

import json

import pytest

from albert_tf.data import read_tagged_texts

SENTENCE = "小明在北京。"
SPANS = [(0, 2, "PER"), (3, 5, "LOC")]


@pytest.fixture
def read(tmp_path):
    def write_and_read(content, name="data.txt", **options):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return read_tagged_texts(path, **options)

    return write_and_read


def columns(tags, tokens=SENTENCE, separator=" ", end="\n"):
    rows = zip(tokens, tags.split(), strict=True)
    return "".join(f"{token}{separator}{tag}{end}" for token, tag in rows)


STUDIO_VALUES = [
    {"start": 3, "end": 5, "text": "北京", "labels": ["LOC"]},
    {"start": 0, "end": 2, "labels": ["PER"]},
]
STUDIO_RESULT = [
    {"type": "labels", "value": STUDIO_VALUES[0]},
    {"type": "choices", "value": {"choices": ["news"]}},
    {"type": "labels", "value": STUDIO_VALUES[1]},
]
FORMS = {
    "BIO": columns("B-PER I-PER O B-LOC I-LOC O"),
    "BIOES": columns("B-PER E-PER O B-LOC E-LOC O", separator="\t"),
    "BMES": columns("B-PER E-PER O B-LOC E-LOC O", end="\r\n"),
    "IO": columns("I-PER I-PER O I-LOC I-LOC O"),
    "more columns": "-DOCSTART- -X- O O\n\n"
    + columns("B-PER I-PER O B-LOC I-LOC O", separator=" NN x "),
    "a byte order mark": "\ufeff" + columns("B-PER I-PER O B-LOC I-LOC O"),
    "slashes": "小明/PER 在/o 北京/LOC 。/o\n",
    "cluener": '{"text": "小明在北京。", "label": '
    '{"PER": {"小明": [[0, 1]]}, "LOC": {"北京": [[3, 4]]}}}\n',
    "doccano": '{"id": 1, "text": "小明在北京。", '
    '"label": [[3, 5, "LOC"], [0, 2, "PER"]]}\n',
    "doccano entities": '{"text": "小明在北京。", "entities": [{"label": "PER", '
    '"start_offset": 0, "end_offset": 2}, {"label": "LOC", "start_offset": 3, '
    '"end_offset": 5}], "relations": []}\n',
    "label studio": json.dumps(
        [
            {
                "id": 7,
                "data": {"text": SENTENCE},
                "annotations": [{"result": STUDIO_RESULT}],
            },
            {"id": 8, "data": {"text": "没有人看过"}, "annotations": []},
            {
                "id": 9,
                "data": {"text": "跳过"},
                "annotations": [{"was_cancelled": True, "result": []}],
            },
        ],
        indent=2,
    ),
    "label studio min": json.dumps(
        [{"text": SENTENCE, "id": 7, "label": STUDIO_VALUES}]
    ),
}


@pytest.mark.parametrize("content", FORMS.values(), ids=FORMS)
def test_every_form(read, content):
    data = read(content)
    assert (data.x, data.spans, data.skipped) == ([SENTENCE], [SPANS], 0)
    assert data.labels == ["LOC", "PER"]


def test_several_sentences_and_tokens_that_are_spaces(read):
    data = read("\n\n中 B-ORG\n  O\n\u3000 O\n国 B-ORG\n\n\n-DOCSTART- O\n好 O\n")
    assert data.x == ["中 \u3000国", "好"]
    assert data.spans == [[(0, 1, "ORG"), (3, 4, "ORG")], []]


@pytest.mark.parametrize("joiner", [None, "_"])
def test_words_are_joined_by_spaces(read, joiner):
    content = "John B-PER\nSmith I-PER\nsaw O\nParis B-LOC\n. O\n"
    data = read(content, joiner=joiner)
    assert data.x == [(joiner or " ").join(["John", "Smith", "saw", "Paris", "."])]
    (row,) = data.spans
    assert row == [(0, 10, "PER"), (15, 20, "LOC")]


def test_words_of_chinese_are_joined_by_nothing(read):
    data = read("小明 B-PER\n在 O\n北京 B-LOC\n工作 O\n")
    assert data.x == ["小明在北京工作"]
    assert data.spans == [[(0, 2, "PER"), (3, 5, "LOC")]]


def test_offsets_of_browsers_count_utf16_units(read):
    values = [
        {"start": 3, "end": 5, "text": "小明", "labels": ["PER"]},
        {"start": 5, "end": 8, "text": "😀好", "labels": ["LOC"]},
    ]
    data = read(json.dumps([{"text": "😀 小明😀好", "label": values}]))
    assert data.spans == [[(2, 4, "PER"), (4, 6, "LOC")]]


STUDIO = (
    '[{{"id": 7, "data": {{"text": "好"}}, '
    '"annotations": [{{"result": [{{"value": {}}}]}}]}}]'
)
WRONG = {
    "no tag": ("中 B-ORG\n国\n", "Line 2 of .*data.txt: '国' has one column"),
    "other tag": ("中 B-ORG\n国 X-ORG\n", "Line 2 of .*'X-ORG' is no tag"),
    "separator": ("中 B-ORG\n", "Line 1 of .*one column", {"separator": "\t"}),
    "slash": ("小明/PER 在 \n", "Line 1 of .*'在' is no word", {"form": "slashes"}),
    "empty": (" \n", "is empty"),
    "encoding": ("中 O\n好 ".encode() + b"\x80 O\n", "not UTF-8: byte 0x80 in line 2"),
    "form": ("中 O\n", "`form` must be one of", {"form": "xml"}),
    "json": ('{"text": "a", "label": []}\n{"text": \n', "Line 2 of .* not JSON"),
    "no object": ('{"text": "a", "label": []}\n[]\n', "Line 2 of .* no JSON object"),
    "no text": ('{"label": []}\n', r"Line 1 of .*no text or data in \['label'\]"),
    "no spans": ('{"text": "a"}\n', 'Line 1 of .*expected "label"'),
    "outside": (
        '\n{"text": "好", "label": [[0, 2, "X"]]}\n',
        "Line 2 of .*does not lie",
    ),
    "overlap": ('{"text": "很好", "label": [[0, 2, "X"], [1, 2, "Y"]]}\n', "overlap"),
    "no span": ('{"text": "很好", "label": [[0, 2]]}\n', "Line 1 of .* is no span"),
    "cluener": (
        '{"text": "小明", "label": {"PER": {"小红": [[0, 1]]}}}\n',
        "Line 1 of .*stands '小明', not '小红'",
    ),
    "cluener test set": ('{"text": "a", "label": {"b": 3}}\n', "Line 1 of .*expected"),
    "studio json": ("[\n{]", "Line 2 of .*not JSON"),
    "studio": (STUDIO.format('{"labels": ["X"]}'), r"Task 1 \(id 7\) of .*one label"),
    "studio labels": (
        STUDIO.format('{"start": 0, "end": 1, "labels": ["X", "Y"]}'),
        "with one label",
    ),
    "studio nothing": ('[{"data": {"text": "好"}}]', "holds no text with annotations"),
}


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG)
def test_what_is_refused_and_where(read, case):
    content, message, *options = case
    with pytest.raises(ValueError, match=message):
        read(content, **(options[0] if options else {}))


def test_wrong_spans_are_skipped_and_counted(read):
    content = '{"text": "很好", "label": [[0, 2, "X"], [1, 2, "Y"], [1, 9, "Z"]]}\n'
    data = read(content + content, skip_wrong=True)
    assert data.spans == [[(0, 2, "X")]] * 2
    assert data.skipped == 4


def test_peoples_daily(assets, tmp_path):
    import zipfile

    with zipfile.ZipFile(assets / "data" / "peopledaily.zip") as archive:
        archive.extract("dev.txt", tmp_path)
    data = read_tagged_texts(tmp_path / "dev.txt")
    lines = (tmp_path / "dev.txt").read_text("utf-8").split("\n")
    assert data.labels == ["LOC", "ORG", "PER"]
    # Eleven have lost their beginning.
    assert sum(map(len, data.spans)) == 11 + sum(" B-" in line for line in lines)
    assert sum(map(len, data.x)) == sum(bool(line.strip()) for line in lines)
    assert data.x[0][slice(*data.spans[0][0][:2])] == "中共中央"
