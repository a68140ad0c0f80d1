"""Chinese data sets: real files where there are some, else their documented form."""

import json
import warnings
import zipfile

import pytest

from zh.datasets import DATASETS, load

PAIR = {"sentence1": "怎么还款", "sentence2": "如何还钱", "label": "1"}
NLI = {**PAIR, "label": "neutral", "genre": "lit"}
NEWS = {"label": "102", "label_desc": "news_entertainment", "sentence": "新片上映"}
APP = {"label": "0", "label_des": "打车", "sentence": "叫车的应用"}
PAPER = {"id": 1, "abst": "本文研究声呐。", "keyword": ["声呐", "FFT"], "label": "0"}
SPANS = {"span1_index": 2, "span1_text": "猫", "span2_index": 7, "span2_text": "它"}
WSC = {"target": SPANS, "label": "true", "text": "桌上猫睡着了，它很累。"}
QUESTION = {"question": "现在几点？", "choice": ["七点", "八点"], "answer": "八点"}
C3 = [["男：几点了？", "女：八点。"], [QUESTION], "1-1"]
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


def lines(*records):
    return "\n".join(json.dumps(x, ensure_ascii=False) for x in records) + "\n"


def whole(value):
    return json.dumps(value, ensure_ascii=False, indent=1)


PAIRS = ["怎么还款"], ["如何还钱"]
# Files of the split "dev", x and y, for each data set.
CASES = {
    "afqmc": (
        {"dev.json": lines(PAIR, {**PAIR, "label": "0", "sentence1": "你好"})},
        (["怎么还款", "你好"], ["如何还钱"] * 2),
        ["1", "0"],
    ),
    "tnews": ({"dev.json": lines(NEWS)}, ["新片上映"], ["news_entertainment"]),
    "iflytek": ({"dev.json": lines(APP)}, ["叫车的应用"], ["打车"]),
    "cmnli": ({"dev.json": lines(NLI)}, PAIRS, ["neutral"]),
    "ocnli": ({"dev.json": lines(NLI)}, PAIRS, ["neutral"]),
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
    **{
        name: (
            {file: whole({"data": [{"paragraphs": [SQUAD]}]})},
            (["哪本？"], [SQUAD["context"]]),
            [[(3, "聖經")]],
        )
        for name, file in (("cmrc", "cmrc2018_dev.json"), ("drcd", "DRCD_dev.json"))
    },
    "lcqmc": (
        {"dev.tsv": "你好\t您好\t1\n在吗\t几点\t0\n好吗\t好的\t0\n"},
        (["你好", "在吗", "好吗"], ["您好", "几点", "好的"]),
        ["1", "0", "0"],
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
    with zipfile.ZipFile(tmp_path / f"{name}.zip", "w") as archive:
        for file in folder.iterdir():
            archive.write(file, f"{name}/{file.name}")
            archive.writestr(f"__MACOSX/{name}/._{file.name}", "")
    paths = [folder, tmp_path / "clue", tmp_path / f"{name}.zip"]
    paths += [folder / next(iter(files))] if name != "c3" else []
    for path in paths:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            data = load(name, path, split="dev")
        assert (data.x, data.y, data.task) == (x, y, DATASETS[name].task)
        assert (data.rejects, len(data)) == ({}, len(y))
        assert data.labels is None or set(y) <= set(data.labels)


def test_incomplete_records_are_left_out_and_counted(tmp_path):
    no_cat = {**WSC, "target": {**SPANS, "span1_text": "狗"}}
    # Wrong positions are corrected.
    moved = {**WSC, "target": {**SPANS, "span1_index": 5}}
    absent = {"question": "谁？", "answers": [{**ANSWER, "text": "佛經"}]}
    blank = {"question": "", "answers": [ANSWER]}
    paragraph = {**SQUAD, "qas": [*SQUAD["qas"], absent, blank]}
    missing, unlabelled = "a text is missing", "no label or answer"
    for name, content, rejects in (
        (
            "ocnli",
            lines(NLI, {**NLI, "label": "-"}, {**NLI, "sentence2": ""}, {"id": 1}),
            {"the label '-'": 1, missing: 2},
        ),
        ("afqmc", lines(PAIR, {**PAIR, "label": None}), {unlabelled: 1}),
        ("cluewsc", lines(moved, no_cat), {missing: 1}),
        ("chid", lines(CHID, {**CHID, "content": ["#idiom000009#"]}), {unlabelled: 1}),
        (
            "drcd",
            whole({"data": [{"paragraphs": [paragraph]}]}),
            {missing: 1, unlabelled: 1},
        ),
    ):
        files, x, _ = CASES[name]
        folder = write(tmp_path / name, {**files, "dev.json": content})
        with pytest.warns(UserWarning, match=f"^{sum(rejects.values())} of .*left out"):
            data = load(name, folder / "dev.json", split="dev")
        assert data.rejects == rejects
        assert name == "afqmc" or data.x == x


def test_other_files_are_refused(tmp_path):
    files = {"dev.tsv": "一\t1\n二\t2\n", "train.json": "[[", "bq.zip": "no archive"}
    write(tmp_path, files)
    for part, path, split, message in (
        ("bq", "bq.zip", "dev", "bq.zip is damaged. Copy it again"),
        ("bq", "", "trial", "bq should have a file .*trial.json or .*'dev.tsv'"),
        ("bq", "", "train", "train.json of .* is damaged, or not a file of bq"),
        ("xnli", "", "dev", "no data set 'xnli'. Known: afqmc, "),
    ):
        with pytest.raises((ValueError, FileNotFoundError), match=message):
            load(part, tmp_path / path, split)


# === Real files ===


@pytest.mark.filterwarnings("ignore:.* records of .* were left out")
@pytest.mark.parametrize(
    ("name", "path", "split", "count"),
    [
        ("lcqmc", "lcqmc", "dev", 8802),
        ("chnsenticorp", "chnsenticorp.zip", "train", 9600),
        ("cmrc", "cmrc2018", "dev", 3219),
    ],
)
def test_real_files(assets, name, path, split, count):
    data = load(name, assets / "data" / path, split)
    assert len(data) == count
    if name == "cmrc":
        for context, answers in zip(data.x[1], data.y, strict=True):
            assert all(context.startswith(text, start) for start, text in answers)
    else:
        assert {*data.y} == {"0", "1"}
