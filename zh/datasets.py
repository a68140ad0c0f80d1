"""Chinese data sets as they are distributed, read for the tasks of `albert_tf`.

AFQMC, TNEWS, IFLYTEK, CMNLI, CSL, CLUEWSC and CHID are those of
https://github.com/CLUEbenchmark/CLUE, OCNLI of its repository OCNLI, C3 of
https://github.com/nlpdata/c3, CMRC of https://github.com/ymcui/cmrc2018, DRCD of
https://github.com/DRCKnowledgeTeam/DRCD, LCQMC of https://aclanthology.org/C18-1166, BQ
of https://aclanthology.org/D18-1536, ChnSentiCorp of
https://github.com/pengming617/bert_classification.
"""

from __future__ import annotations

import collections
import dataclasses
import fnmatch
import os
import pathlib
import re
import tempfile
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from albert_tf.data import read_choices, read_squad
from albert_tf.data.labels import visible
from albert_tf.data.reading import read_json
from albert_tf.data.tables import Table
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.inputs import is_missing


@dataclasses.dataclass(frozen=True)
class Examples:
    """A split of a data set.

    Attributes:
        x, y: the arguments of `fit` for the task. `y` is `None` for a test set without
            answers. Labels of texts are strings.
        task: string, as for `albert-tf finetune --task`.
        labels: for text classification the list of labels, else `None`. Labels that the
            data set does not define are those of this split.
        rejects: dict, the number of records that were left out, by reason.
    """

    x: Any
    y: list | None
    task: str
    labels: list[str] | None
    rejects: dict[str, int]

    def __len__(self) -> int:
        return len(self.x[0] if isinstance(self.x, tuple) else self.x)


def load(name: str, path: str | os.PathLike, split: str = "train") -> Examples:
    """Read a split of a downloaded data set.

    | name | x | y |
    |---|---|---|
    | `afqmc`, `lcqmc`, `bq` | two questions | "1" if they mean the same, else "0" |
    | `cmnli`, `ocnli` | premise and hypothesis | "entailment", "neutral", "contradiction" |
    | `tnews`, `iflytek` | a headline, the description of an app | the name of the class |
    | `chnsenticorp` | a review | "1" if it is positive, else "0" |
    | `csl` | an abstract, keywords separated by spaces | "1" if all are real, else "0" |
    | `cluewsc` | a text with _the noun_ and [the pronoun] marked | "true" if they are the same |
    | `c3` | document, question, choices | the position of the right choice |
    | `chid` | text with `____` for an idiom (`……` for others), `""`, candidates | the position of the right candidate |
    | `cmrc`, `drcd` | question, context | a list of (start, text) |

    Records without a text or label, with a label that the data set does not define
    (such as "-" of `ocnli`, where the annotators did not agree) or with an answer that
    is not in its context are left out and counted in a warning.

    Args:
        name: string, as above.
        path: the directory or zip archive of the data set, with the file names of the
            distribution, or one of the files.
        split: `"train"`, `"dev"` or `"test"`; for `cmrc` also `"trial"`, for `ocnli`
            also `"train.10k"` and the like.

    Returns:
        An `Examples`.

    Raises:
        FileNotFoundError: if the files of the split do not exist.
        AlbertError: if the data set is unknown, a file is damaged, or no records
            are left.

    Example:
    ```python
    train = zh.datasets.load("ocnli", "ocnli_public.zip")
    dev = zh.datasets.load("ocnli", "ocnli_public.zip", split="dev")
    classifier = albert_tf.models.AlbertTextClassifier.from_checkpoint(
        "albert_tiny_zh", labels=train.labels
    )
    classifier.fit(train.x, train.y, validation_data=(dev.x, dev.y))
    ```
    """  # noqa: E501 (a table)
    if name not in DATASETS:
        raise AlbertError(
            f"There is no data set {name!r}. Known: {', '.join(DATASETS)}"
        )
    data_set, path = DATASETS[name], pathlib.Path(path)
    records: list[tuple] = []
    with tempfile.TemporaryDirectory() as folder:
        root = path
        if path.suffix.lower() == ".zip":
            root = pathlib.Path(folder)
            try:
                with zipfile.ZipFile(path) as archive:
                    archive.extractall(root)
            except (zipfile.BadZipFile, zlib.error, EOFError) as error:
                raise AlbertError(
                    f"{path} is damaged. Copy it again. ({error})"
                ) from error
        for file in _files(root, name, split):
            try:
                records += data_set.read(file, data_set)
            except (AttributeError, LookupError, TypeError, ValueError) as error:
                raise AlbertError(
                    f"{file.name} of {path} is damaged, or not a file of {name}: "
                    f"{error}"
                ) from error
    # A test set may have no answers at all.
    is_test = split.startswith("test")
    has_answers = not is_test or any(y is not None for *_, y in records)
    reasons = [_reason(x, y, data_set, has_answers) for *x, y in records]
    rejects = collections.Counter(filter(None, reasons))
    if rejects:
        warnings.warn(
            f"{rejects.total():,} of {len(records):,} records of {path} were left out: "
            + ", ".join(f"{reason} ({n:,})" for reason, n in rejects.most_common()),
            stacklevel=2,
        )
    kept = [row for row, reason in zip(records, reasons, strict=True) if not reason]
    if not kept:
        raise AlbertError(
            f"{path} holds no complete records of {name}, split {split!r}."
        )
    *x, y = map(list, zip(*kept, strict=True))
    labels = None
    if data_set.task == "text-classification":
        labels = list(data_set.labels or sorted(set(y) - {None}))
    return Examples(
        x=x[0] if len(x) == 1 else tuple(x),
        y=y if has_answers else None,
        task=data_set.task,
        labels=labels,
        rejects=dict(rejects),
    )


def _reason(x, y, data_set, has_answers):
    """Return why a record is not an example, or `None`."""
    if None in x:
        return "a text is missing"
    if y is None:
        return "no label or answer" if has_answers else None
    if data_set.labels and y not in data_set.labels:
        return f"the label {y!r}"
    return None


def _files(root: pathlib.Path, name: str, split: str) -> list[pathlib.Path]:
    """Return the files of a split in a directory, or the file itself."""
    if root.is_file():
        return [root]
    # macOS adds hidden files of the same names to archives.
    files = [x for x in root.rglob("*") if x.is_file() and not x.name.startswith(".")]
    patterns = [
        # CMRC and DRCD.
        *(f"{name}*_{split}.json", f"{name}*_{split}ing.json"),
        *(f"{split}.50k.json", f"{split}.json", f"{split}.tsv"),
        # CLUE has two versions of some test sets.
        *(("test1.1.json", "test1.0.json") if split == "test" else ()),
    ]
    if name == "c3":
        # Mixed texts and dialogues.
        patterns.insert(0, f"*[dm]-{split}.json")
    for pattern in patterns:
        found = [x for x in files if fnmatch.fnmatchcase(x.name.lower(), pattern)]
        # Preferably in a folder of the data set's name.
        found = [x for x in found if name in str(x.parent).lower()] or found
        if len({x.name for x in found}) < len(found):
            raise AlbertError(
                f"There are several files for {name}: {sorted(map(str, found))}. Pass "
                "the folder of one, or the file."
            )
        if found:
            return sorted(found)
    raise FileNotFoundError(
        f"{name} should have a file {' or '.join(patterns)}. Found: "
        f"{sorted(file.name for file in files)[:10]}"
    )


# === Readers: functions of a file and its row of the table. They yield the parts of x,
# `None` for a missing text, and y, `None` without an answer. ===


def _read_texts(file: pathlib.Path, data_set: DataSet) -> Iterator[tuple]:
    """Read a table, or one JSON object per line as in most of CLUE."""
    names = (*data_set.fields, data_set.label)
    table = Table(file)
    # Without a header the columns are in this order.
    header = table.header if table.has_header else names
    for row in table.rows:
        record = dict(zip(header, row, strict=True))
        texts = (record.get(name) for name in data_set.fields)
        # The keywords of CSL are a list.
        texts = (None if is_missing(x) else x or None for x in texts)
        texts = (" ".join(x) if isinstance(x, list) else x for x in texts)
        label = record.get(data_set.label)
        yield *texts, None if is_missing(label) else visible(str(label))


def _read_idioms(file: pathlib.Path, data_set: DataSet) -> Iterator[tuple]:
    """Read CHID: texts with several blanks, and the answers from a second file."""
    beside = file.with_name(f"{file.stem}_answer.json")
    answers: Any = dict(next(read_json(beside))[1]) if beside.exists() else {}
    for _, record in read_json(file):
        for text in record["content"]:
            parts = re.split("(#idiom[0-9]+#)", text)
            for blank in range(1, len(parts), 2):
                shown = parts.copy()
                shown[1::2] = ["……"] * (len(parts) // 2)
                shown[blank] = "____"
                label = answers.get(parts[blank])
                yield "".join(shown), "", record["candidates"], label


def _read_choices(file: pathlib.Path, data_set: DataSet) -> Iterator[tuple]:
    found = read_choices(file)
    labels: Any = found.labels or [None] * len(found)
    return zip(*found.x, labels, strict=True)


def _read_questions(file: pathlib.Path, data_set: DataSet) -> Iterator[tuple]:
    found = read_squad(file)
    for question, context, answers in zip(*found.x, found.answers, strict=True):
        # An answer that its context does not contain cannot be learned.
        y = [(start, text) for start, text in answers if start is not None]
        yield question or None, context, y or None


# === The table ===


class DataSet(NamedTuple):
    """A data set as it is distributed.

    Attributes:
        labels: all labels, or `None` if any string is a label.
        fields, label: the names of the texts and the label in a JSON object.
        task: string, as for `albert-tf finetune --task`.
        read: function of a file and this row, see "Readers" above.
    """

    labels: tuple[str, ...] | None = None
    fields: tuple[str, ...] = ("sentence1", "sentence2")
    label: str = "label"
    task: str = "text-classification"
    read: Callable[[pathlib.Path, Any], Iterator[tuple]] = _read_texts


_PAIRS = DataSet(("0", "1"))
_INFERENCE = DataSet(("entailment", "neutral", "contradiction"))
_QUESTIONS = DataSet(task="question-answering", read=_read_questions)
_NEWS = (
    *("story", "culture", "entertainment", "sports", "finance", "house", "car", "edu"),
    *("tech", "military", "travel", "world", "stock", "agriculture", "game"),
)
DATASETS = {
    "afqmc": _PAIRS,
    "tnews": DataSet(tuple(f"news_{x}" for x in _NEWS), ("sentence",), "label_desc"),
    "iflytek": DataSet(None, ("sentence",), "label_des"),
    "cmnli": _INFERENCE,
    "ocnli": _INFERENCE,
    "csl": DataSet(("0", "1"), ("abst", "keyword")),
    "cluewsc": DataSet(("false", "true"), ("text",)),
    "c3": DataSet(task="multiple-choice", read=_read_choices),
    "chid": DataSet(task="multiple-choice", read=_read_idioms),
    "cmrc": _QUESTIONS,
    "drcd": _QUESTIONS,
    "lcqmc": _PAIRS,
    "bq": _PAIRS,
    "chnsenticorp": DataSet(("0", "1"), ("text_a",)),
}
