"""Chinese data sets: real files where there are some, else their documented form."""

import json
import warnings
import zipfile

import pytest

from albert_tf.data import read_labelled_texts, read_squad
from zh.datasets import DATASETS, load

PAIR = {"sentence1": "怎么还款", "sentence2": "如何还钱", "label": "1"}
NLI = {**PAIR, "label": "neutral", "genre": "lit", "prem_id": "lit_1", "id": 0}
NEWS = {"label": "102", "label_desc": "news_entertainment", "sentence": "新片上映"}
APP = {"label": "0", "label_des": "打车", "sentence": "叫车的应用"}
PAPER = {"id": 1, "abst": "本文研究声呐。", "keyword": ["声呐", "FFT"], "label": "0"}
WSC = {
    "target": {
        "span1_index": 2,
        "span1_text": "猫",
        "span2_index": 7,
        "span2_text": "它",
    },
    "idx": 3,
    "label": "true",
    "text": "桌上猫睡着了，它很累。",
}
C3 = [
    ["男：几点了？", "女：八点。"],
    [{"question": "现在几点？", "choice": ["七点", "八点"], "answer": "八点"}],
    "1-1",
]
CHID = {
    "content": ["他#idiom000001#，又#idiom000002#。", "前程#idiom000003#"],
    "candidates": ["一日千里", "百花齐放"],
}
IDIOMS = {"#idiom000001#": 1, "#idiom000002#": 0, "#idiom000003#": 1}
ANSWER = {"id": "1", "text": "聖經", "answer_start": 3}
SQUAD = {
    "context": "新教以聖經為權威",
    "qas": [{"question": "哪本？", "answers": [ANSWER]}],
}
CMRC = {
    "context_id": "TRIAL_0",
    "context_text": "指数上升到78.1，高于72。",
    "qas": [{"query_text": "多少？", "query_id": "0", "answers": ["78.1", "没有的"]}],
}


def lines(*records):
    return "\n".join(json.dumps(x, ensure_ascii=False) for x in records) + "\n"


def whole(value):
    return json.dumps(value, ensure_ascii=False, indent=1)


# Files of the split "dev", x and y, for each data set.
CASES = {
    "afqmc": (
        {"dev.json": lines(PAIR, {**PAIR, "label": "0", "sentence1": "你好"})},
        (["怎么还款", "你好"], ["如何还钱"] * 2),
        ["1", "0"],
    ),
    "tnews": ({"dev.json": lines(NEWS)}, ["新片上映"], ["news_entertainment"]),
    "iflytek": ({"dev.json": lines(APP)}, ["叫车的应用"], ["打车"]),
    "cmnli": ({"dev.json": lines(NLI)}, (["怎么还款"], ["如何还钱"]), ["neutral"]),
    "ocnli": ({"dev.json": lines(NLI)}, (["怎么还款"], ["如何还钱"]), ["neutral"]),
    "csl": ({"dev.json": lines(PAPER)}, (["本文研究声呐。"], ["声呐 FFT"]), ["0"]),
    "cluewsc": ({"dev.json": lines(WSC)}, ["桌上_猫_睡着了，[它]很累。"], ["true"]),
    "c3": (
        {"m-dev.json": whole([C3]), "d-dev.json": whole([C3])},
        (["男：几点了？\n女：八点。"] * 2, ["现在几点？"] * 2, [["七点", "八点"]] * 2),
        [1, 1],
    ),
    "chid": (
        {"dev.json": lines(CHID), "dev_answer.json": whole(IDIOMS)},
        (
            ["他____，又……。", "他……，又____。", "前程____"],
            [""] * 3,
            [CHID["candidates"]] * 3,
        ),
        [1, 0, 1],
    ),
    "cmrc": (
        {"cmrc2018_dev.json": whole({"data": [CMRC]})},
        (["多少？"], [CMRC["context_text"]]),
        [[(5, "78.1")]],
    ),
    "drcd": (
        {"DRCD_dev.json": whole({"data": [{"paragraphs": [SQUAD]}]})},
        (["哪本？"], [SQUAD["context"]]),
        [[(3, "聖經")]],
    ),
    "lcqmc": (
        {"dev.tsv": "你好\t您好\t1\n在吗\t几点\t0\n"},
        (["你好", "在吗"], ["您好", "几点"]),
        ["1", "0"],
    ),
    "bq": (
        {"dev.tsv": "sentence1\tsentence2\tlabel\n你好\t您好\t1\n"},
        (["你好"], ["您好"]),
        ["1"],
    ),
    "chnsenticorp": (
        {"dev.tsv": "qid\tlabel\ttext_a\n0\t1\t很好\n1\t0\t差\n"},
        ["很好", "差"],
        ["1", "0"],
    ),
}


def write(folder, files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content.encode())
    return folder


@pytest.mark.parametrize("name", DATASETS)
def test_a_directory_an_archive_or_a_file(tmp_path, name):
    files, x, y = CASES[name]
    folder = write(tmp_path / "clue" / f"{name}_public", files)
    # Files of another data set, and what macOS adds.
    write(tmp_path / "clue" / "other", {x: "" for x in files})
    write(tmp_path / "clue" / "__MACOSX", {x: "" for x in files})
    with zipfile.ZipFile(tmp_path / f"{name}.zip", "w") as archive:
        for file in folder.iterdir():
            archive.write(file, f"{name}/{file.name}")
            archive.writestr(f"__MACOSX/{name}/._{file.name}", "")
    paths = [folder, tmp_path / "clue", tmp_path / f"{name}.zip"]
    paths += [folder / "dev.json"] if name == "chid" else []
    for path in paths:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            data = load(name, path, split="dev")
        assert (data.x, data.y, data.task) == (x, y, DATASETS[name].task)
        assert (data.rejects, data.moved, len(data)) == ({}, 0, len(y))
        assert data.labels is None or set(y) <= set(data.labels)


# Lines that are added to the files, and how they are counted.
DAMAGE = {
    "afqmc": (
        [
            '{"sentence1"',
            b"\xff",
            "[1]",
            lines({**PAIR, "label": 2}),
            lines({"sentence1": "好", "label": "1"}),
            lines({**PAIR, "sentence2": " "}),
        ],
        {
            "not JSON": 1,
            "not UTF-8": 1,
            "the line is not an object": 1,
            "the label '2'": 1,
            "no field 'sentence2'": 1,
            "the field 'sentence2' is empty": 1,
        },
    ),
    "cluewsc": (
        [
            lines({**WSC, "target": {**WSC["target"], "span1_text": "狗"}}),
            lines({**WSC, "target": {**WSC["target"], "span2_text": "猫睡"}}),
        ],
        {"a span is not in its text": 1, "the two spans overlap": 1},
    ),
    "chid": (
        [
            lines({"content": ["好"]}),
            lines({**CHID, "content": ["#idiom000009#"]}),
        ],
        {"no field 'candidates'": 1, "no label or answer": 1},
    ),
    "lcqmc": (
        ["你好\t您好", "你好\t\t1"],
        {"another number of columns": 1, "the field 'text_b' is empty": 1},
    ),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_lines_are_counted_and_the_first_are_named(tmp_path, name):
    files, x, y = CASES[name]
    damaged, expected = DAMAGE[name]
    folder = write(tmp_path, files)
    file = next(x for x in files if "answer" not in x)
    count = files[file].count("\n")
    with open(folder / file, "ab") as opened:
        for line in damaged:
            line = line if isinstance(line, bytes) else line.encode()
            opened.write(line.rstrip(b"\n") + b"\n")
    with pytest.warns(UserWarning, match=f"^{len(damaged)} of .* were left out"):
        data = load(name, folder, split="dev")
    assert (data.x, data.y) == (x, y)
    assert data.rejects == expected
    first = next(x for x in data.rejected if f"line {count + 1} of" in x)
    assert str(folder / file) in first
    assert len(data.rejected) == min(5, len(damaged))


def test_wrong_answers_are_left_out_or_moved(tmp_path):
    wrong = {**C3[1][0], "answer": "九点"}
    write(tmp_path, {"m-dev.json": whole([C3, [C3[0], [wrong], "2"], [C3[0]]])})
    with pytest.warns(UserWarning, match="2 of 3"):
        data = load("c3", tmp_path, "dev")
    assert data.y == [1]
    assert set(data.rejects) == {
        "the answer is none of the choices",
        "no list of a document and its questions",
    }
    moved = {"question": "谁？", "answers": [{**ANSWER, "answer_start": 7}]}
    absent = {"question": "谁？", "answers": [{**ANSWER, "text": "佛經"}]}
    paragraph = {**SQUAD, "qas": [moved, absent, 7]}
    write(tmp_path, {"dev.json": whole({"data": [{"paragraphs": [paragraph]}]})})
    with pytest.warns(UserWarning, match="2 of 3"):
        data = load("drcd", tmp_path, "dev")
    assert (data.y, data.moved) == ([[(3, "聖經")]], 1)
    assert data.rejects == {
        "no answer is in the context": 1,
        "the record is not an object": 1,
    }


def test_a_test_set_without_labels(tmp_path):
    bare = {x: PAIR[x] for x in ("sentence1", "sentence2")}
    write(tmp_path, {"test.json": lines(bare, bare), "train.json": lines(bare)})
    data = load("afqmc", tmp_path, "test")
    assert data.y is None and len(data) == 2 and data.labels == ["0", "1"]
    with pytest.raises(ValueError, match=r"1 of 1 .* left out: no label or answer \(1"):
        load("afqmc", tmp_path, "train")
    write(tmp_path, {"test.json": lines(bare, PAIR)})
    with pytest.warns(UserWarning, match="1 of 2 records"):
        assert load("afqmc", tmp_path, "test").y == ["1"]


def test_mistakes_name_the_file_and_what_is_there(tmp_path):
    files = {"bad.zip": "x", "c3-d-train.json": "[", "a.json": ""}
    write(tmp_path, files)
    for name, path, error, message in (
        ("thucnews", tmp_path, ValueError, "no data set 'thucnews'. Known: afqmc"),
        ("afqmc", tmp_path / "nowhere", FileNotFoundError, "nowhere does not exist"),
        ("afqmc", tmp_path, FileNotFoundError, "holds no train.json. Found: .'a.json'"),
        ("afqmc", tmp_path / "bad.zip", ValueError, "bad.zip is damaged or not a zip"),
        ("c3", tmp_path, ValueError, "c3-d-train.json is not JSON"),
        ("afqmc", tmp_path / "a.json", ValueError, "a.json holds no records"),
    ):
        with pytest.raises(error, match=message):
            load(name, path)
    for folder in ("one", "two"):
        write(tmp_path / folder, {"train.json": lines(PAIR)})
    with pytest.raises(ValueError, match="holds several files for afqmc"):
        load("afqmc", tmp_path)


def test_small_training_sets_of_ocnli(tmp_path):
    files = {"train.50k.json": lines(NLI, NLI), "train.3k.json": lines(NLI)}
    write(tmp_path, files)
    assert len(load("ocnli", tmp_path)) == 2
    assert len(load("ocnli", tmp_path, "train.3k")) == 1


# === Real files ===


def test_real_pairs_and_reviews(assets):
    """Equal to the reader of tables, which has no table of data sets."""
    data = load("lcqmc", assets / "data", "dev")
    expected = read_labelled_texts(assets / "data/lcqmc/dev.tsv")
    assert (data.x, data.y) == (expected.x, expected.labels)
    assert (len(data), data.rejects) == (8802, {})
    archive = assets / "data" / "chnsenticorp.zip"
    counts = {
        x: len(load("chnsenticorp", archive, x)) for x in ("train", "dev", "test")
    }
    assert counts == {"train": 9600, "dev": 1200, "test": 1200}
    assert {*load("chnsenticorp", archive, "dev").y} == {"0", "1"}


@pytest.mark.filterwarnings("ignore:.* records of .* were left out")
@pytest.mark.parametrize("split", ["dev", "trial"])
def test_real_questions(assets, split):
    data = load("cmrc", assets / "data", split)
    found = read_squad(assets / f"data/cmrc2018/cmrc2018_{split}.json")
    expected = found.for_training()
    # Two of trial ask nothing.
    rows = zip(*expected.x, expected.answers, strict=True)
    columns = zip(*(row for row in rows if row[0]), strict=True)
    questions, contexts, answers = map(list, columns)
    assert data.x == (questions, contexts)
    assert data.y == [[x for x in y if x[0] is not None] for y in answers]
    empty = len(expected) - len(questions)
    assert sum(data.rejects.values()) == expected.skipped + empty
    assert (data.moved, empty) == (expected.moved, {"dev": 0, "trial": 2}[split])
