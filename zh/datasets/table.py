"""The data sets, a row each: what they are for, and how their files are read."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from zh.datasets import examples, forms

# CLUE has two versions of some test sets.
_TEST = "test.json|test1.1.json|test1.0.json"


@dataclasses.dataclass(frozen=True)
class DataSet:
    """A data set as it is distributed.

    Attributes:
        name: as `load` takes it.
        task: what it is for, as `albert-tf finetune --task` has it.
        source: where it is described.
        form: function of a file and this row, see `zh.datasets.forms`.
        fields: the names of the parts of an example in a record.
        label: the name of the label in a record.
        labels: all labels there are; `None` where the data set has others.
        columns: of a file without header, the names of its columns.
        example: function of a record and this row, which gives an `Example`.
        files: the names of the files of a split, as `open_files` takes them, where they
            are not the split and `suffix`.
        suffix: of the files.
    """

    name: str
    task: str
    source: str
    form: Callable = forms.json_lines
    fields: tuple[str, ...] = ("sentence1", "sentence2")
    label: str = "label"
    labels: tuple[str, ...] | None = ("0", "1")
    columns: tuple[str, ...] = ()
    example: Callable = examples.labelled_texts
    files: dict[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    suffix: str = ".json"

    def patterns(self, split: str) -> tuple[str, ...]:
        """The names of the files of a split."""
        is_clue = split == "test" and self.suffix == ".json"
        default = _TEST if is_clue else f"{split}{self.suffix}"
        return self.files.get(split, (default,))


_CLUE = "https://github.com/CLUEbenchmark/CLUE"
_NLI = ("entailment", "neutral", "contradiction")
_NEWS = (
    *("story", "culture", "entertainment", "sports", "finance", "house", "car", "edu"),
    *("tech", "military", "travel", "world", "stock", "agriculture", "game"),
)
_PAIR_COLUMNS = ("text_a", "text_b", "label")

_ROWS = (
    DataSet("afqmc", "text-classification", _CLUE),
    DataSet(
        "tnews",
        "text-classification",
        _CLUE,
        fields=("sentence",),
        label="label_desc",
        labels=tuple(f"news_{x}" for x in _NEWS),
    ),
    DataSet(
        "iflytek",
        "text-classification",
        _CLUE,
        fields=("sentence",),
        label="label_des",
        labels=None,
    ),
    DataSet("cmnli", "text-classification", _CLUE, labels=_NLI),
    DataSet(
        "ocnli",
        "text-classification",
        "https://github.com/CLUEbenchmark/OCNLI",
        # "-", where the annotators did not agree, is none.
        labels=_NLI,
        files={"train": ("train.50k.json|train.json",)},
    ),
    DataSet(
        "csl",
        "text-classification",
        _CLUE,
        fields=("abst", "keyword"),
        example=examples.abstract_and_keywords,
    ),
    DataSet(
        "cluewsc",
        "text-classification",
        _CLUE,
        fields=("text",),
        labels=("false", "true"),
        example=examples.marked_pronoun,
    ),
    DataSet(
        "c3",
        "multiple-choice",
        "https://github.com/nlpdata/c3",
        form=forms.c3,
        # Texts of all kinds, and dialogues.
        files={
            "train": ("*m-train.json", "*d-train.json"),
            "dev": ("*m-dev.json", "*d-dev.json"),
            "test": (f"*m-test.json|{_TEST}", "*d-test.json"),
        },
    ),
    DataSet(
        "chid",
        "multiple-choice",
        _CLUE,
        form=forms.chid,
        fields=("content", "candidates"),
    ),
    DataSet(
        "cmrc",
        "question-answering",
        "https://github.com/ymcui/cmrc2018",
        form=forms.squad,
        files={x: (f"*{x}.json",) for x in ("train", "dev", "trial")},
    ),
    DataSet(
        "drcd",
        "question-answering",
        "https://github.com/DRCKnowledgeTeam/DRCD",
        form=forms.squad,
        files={
            "train": ("drcd_training.json|train.json",),
            "dev": ("drcd_dev.json|dev.json",),
            "test": ("drcd_test.json|test.json",),
        },
    ),
    DataSet(
        "lcqmc",
        "text-classification",
        "https://aclanthology.org/C18-1166",
        form=forms.tsv,
        fields=("text_a", "text_b"),
        columns=_PAIR_COLUMNS,
        suffix=".tsv",
    ),
    DataSet(
        "bq",
        "text-classification",
        "https://aclanthology.org/D18-1536",
        form=forms.tsv,
        fields=("text_a", "text_b"),
        columns=_PAIR_COLUMNS,
        suffix=".tsv",
    ),
    DataSet(
        "chnsenticorp",
        "text-classification",
        "https://github.com/pengming617/bert_classification",
        form=forms.tsv,
        fields=("text_a",),
        columns=("label", "text_a"),
        suffix=".tsv",
    ),
)
DATASETS = {row.name: row for row in _ROWS}
