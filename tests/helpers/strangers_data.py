"""Files of labelled data and of text: how valid ones are written, and read."""

import dataclasses
import fnmatch
import functools
import gzip
import json
import pathlib
import tempfile
from collections.abc import Callable
from typing import Any

import pandas
import zstandard
from small_classifier import TEXTS

from albert_tf import data
from albert_tf.pretraining.records.corpus import Corpus


@dataclasses.dataclass(frozen=True)
class Case:
    """Files of one kind.

    Attributes:
        write: function that writes valid files into an empty folder.
        read: function of the folder that reads them.
        changed: string, a pattern of the names of the files to change.
        kind: optional string, the structure of these, by default their suffix.
    """

    write: Callable[[pathlib.Path], Any]
    read: Callable[[pathlib.Path], Any]
    changed: str = "*"
    kind: str | None = None

    @property
    def files(self) -> dict[str, bytes]:
        """The contents of the valid files by their names."""
        return contents_of(self.write)

    def names(self) -> list[str]:
        """Return the names of the files to change."""
        return fnmatch.filter(self.files, self.changed)


@functools.cache
def contents_of(write_files):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_files(folder)
        return {
            x.relative_to(folder).as_posix(): x.read_bytes()
            for x in sorted(folder.rglob("*"))
            if x.is_file() and not x.name.endswith(".lock")
        }


def only_file(read):
    """Return a function that reads the file of a folder."""

    def read_file(folder):
        (path,) = (x for x in folder.iterdir() if not x.name.startswith("."))
        return read(path)

    return read_file


TSV = "label\ttext\n1\t很好\n0\t太差了，不会再来\n1\t还行吧\n0\t不好\n"
TEXT, OTHER = "小明在北京上班", "小红去了上海"
SPANS = [[0, 2, "PER"], [3, 5, "LOC"]]
ITEMS = [{"start": s, "end": e, "text": TEXT[s:e], "labels": [x]} for s, e, x in SPANS]
OFFSETS = [{"start_offset": s, "end_offset": e, "label": x} for s, e, x in SPANS]
META = {"annotator": 1, "annotation_id": 9, "created_at": "2024", "lead_time": 3.2}


def studio(*values):
    results = [{"from_name": "tags", "type": "labels", "value": x} for x in values]
    annotation = {"id": 9, "result": results, "was_cancelled": False}
    return [{"id": 1, "data": {"text": TEXT}, "annotations": [annotation], "meta": {}}]


def text_file(name, content):
    """Return a function that writes a file: a string, JSON, or a list of JSON lines."""
    if not isinstance(content, (str, bytes)):
        content = json.dumps(content, ensure_ascii=False)
    if isinstance(content, str):
        content = content.encode()
    return lambda folder: (folder / name).write_bytes(content)


def lines(*values):
    return "".join(f"{json.dumps(x, ensure_ascii=False)}\n" for x in values)


def workbook(folder):
    frame = pandas.DataFrame({"text": TEXTS, "label": [1, 0, 1, 0, 1.5, True, "x"]})
    with pandas.ExcelWriter(folder / "a.xlsx") as writer:
        frame.to_excel(writer, sheet_name="一", index=False)
        frame.to_excel(writer, sheet_name="二", index=False)
        writer.book["一"].merge_cells("A2:A3")
        writer.book["一"].row_dimensions[4].hidden = True


def parquet(folder):
    frame = pandas.DataFrame(
        {"text": TEXTS, "label": ["1", "0", "1", "0", "1", "1", "x"]}
    )
    frame.to_parquet(folder / "a.parquet")


def read_table(path):
    found = data.read_labelled_texts(path)
    found.label_lists()
    return found.x, found.labels, data.read_texts(path)


def read_corpus(path, **options):
    corpus = Corpus([str(path)], **options)
    return [block for _, block in corpus.blocks()]


CHOICES = [
    [
        [OTHER, TEXT],
        [{"question": "谁？", "choice": ["甲", "乙"], "answer": "乙"}],
        "m1",
    ]
]
RACE = {"article": "天", "questions": ["一", "二"], "options": [["甲", "乙"]] * 2}
RACE |= {"answers": ["A", "B"]}
ANSWER = {"text": "北京", "answer_start": 3}
QUESTION = {"id": "T1_Q1", "question": "在哪？", "answers": [ANSWER]}
SQUAD = {"data": [{"paragraphs": [{"context": TEXT, "qas": [QUESTION]}]}]}
FACE = {**QUESTION, "context": TEXT, "answers": {"text": ["北京"], "answer_start": [3]}}
PRONOUN = {"span1_index": 2, "span1_text": "杯", "span2_index": 5, "span2_text": "它"}
CLUE = {"target": PRONOUN, "text": "旧杯子碎了，它很脆。", "label": "true"}
CLUENER = {
    "text": TEXT,
    "label": {"PER": {"小明": [[0, 1]]}, "LOC": {"北京": [[3, 4]]}},
}
STUDIO_CSV = (
    "annotation_id,id,lead_time,tags,text\n"
    f'9,1,3.2,"{json.dumps(ITEMS).replace(chr(34), chr(34) * 2)}",{TEXT}\n'
)
CONLL = "小 B-PER\n明 I-PER\n在 O\n\n北 B-LOC\n京 I-LOC\n"
SLASHES = "[中国/ns 政府/n]nt 好/a\n小明/nr 在/p 北京/ns\n"
CORPUS = "第一句。\n第二句！\n\nAnother document.\n" * 3


def table(name, content, read=read_table):
    return Case(text_file(name, content), only_file(read))


def tagged(name, content):
    return table(name, content, data.read_tagged_texts)


DATA = {
    "tsv": table("a.tsv", TSV),
    "csv": table("a.csv", TSV.replace("\t", ",").replace("还行吧", '"还行,""吧"')),
    "csv in gb18030": table("a.csv", TSV.replace("\t", ",").encode("gb18030")),
    "tsv.gz": table("a.tsv.gz", gzip.compress(TSV.encode(), mtime=0)),
    "tsv.zst": table("a.tsv.zst", zstandard.compress(TSV.encode())),
    "json lines": table(
        "a.jsonl", lines(*({"label": i % 2, "text": x} for i, x in enumerate(TEXTS)))
    ),
    "xlsx": Case(workbook, only_file(read_table)),
    "parquet": Case(parquet, only_file(read_table)),
    "doccano labels": table(
        "a.jsonl",
        lines(
            {"id": 1, "text": TEXT, "label": ["a"]},
            {"id": 2, "text": OTHER, "label": ["b"]},
        ),
    ),
    "Label Studio choices": table("a.json", studio({"choices": ["a"]})),
    "CLUEWSC": table("a.jsonl", lines(CLUE, CLUE)),
    "CSL": table(
        "a.jsonl",
        lines({"id": 7, "abst": TEXT, "keyword": ["北京", "班"], "label": "1"}),
    ),
    "CoNLL": tagged("a.txt", CONLL),
    "slashes": tagged("a.txt", SLASHES),
    "CLUENER": tagged("a.jsonl", lines(CLUENER)),
    "doccano spans": tagged("a.jsonl", lines({"id": 1, "text": TEXT, "label": SPANS})),
    "doccano entities": tagged("a.jsonl", lines({"text": TEXT, "entities": OFFSETS})),
    "Label Studio": tagged("a.json", studio(*ITEMS)),
    "Label Studio, JSON-MIN": tagged(
        "a.json", [{"text": TEXT, "id": 1, "tags": ITEMS, **META}]
    ),
    "Label Studio, CSV": tagged("a.csv", STUDIO_CSV),
    "SQuAD": table("a.json", SQUAD, data.read_squad),
    "SQuAD lines": table("a.jsonl", lines(FACE, FACE), data.read_squad),
    "C3": table("a.json", CHOICES, data.read_choices),
    "RACE": table("a.json", RACE, data.read_choices),
    "articles": table(
        "a.jsonl", lines({"article": "好。坏！", "summary": "好。"}), data.read_articles
    ),
    "spelling": table("a.tsv", "好\t好\n好坏\t好好\n", data.read_spelling),
    "corpus": table("a.txt", CORPUS, read_corpus),
    "corpus.zst": table("a.txt.zst", zstandard.compress(CORPUS.encode()), read_corpus),
    "corpus.gz": table(
        "a.txt.gz", gzip.compress(CORPUS.encode(), mtime=0), read_corpus
    ),
    "corpus in JSON": table(
        "a.jsonl", lines(*({"text": x} for x in TEXTS)), read_corpus
    ),
}
