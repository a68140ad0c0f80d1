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
import functools
import json
import os
import pathlib
import re
import warnings
import zipfile
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from albert_tf.data import find_answer
from albert_tf_lite.errors import AlbertError

# Number of rejected records that are named.
NAMED = 5


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
        rejected: list of strings, the first of them: place, file and reason.
        moved: int, answers or spans whose position was wrong and that were found
            elsewhere in the text.
        files: list of strings, the files that were read.
    """

    x: Any
    y: list | None
    task: str
    labels: list[str] | None = None
    rejects: dict[str, int] = dataclasses.field(default_factory=dict)
    rejected: list[str] = dataclasses.field(default_factory=list)
    moved: int = 0
    files: list[str] = dataclasses.field(default_factory=list)

    def __len__(self) -> int:
        return len(self.x[0] if isinstance(self.x, tuple) else self.x)


class Example(NamedTuple):
    """The parts of x, the y, and the number of corrected positions."""

    x: tuple
    y: Any
    moved: int = 0


class Rejected(ValueError):
    """The reason why a record is not an example, the same for similar records."""


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

    Damaged records are left out, counted and reported in a warning: damaged lines,
    missing fields, labels that the data set does not define (such as "-" of `ocnli`,
    where the annotators did not agree), answers that are not in their context.

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
        AlbertError: if the data set is unknown, a JSON file is damaged, or no records
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
    row = DATASETS[name]
    found, rejects = [], []
    files = _split_files(pathlib.Path(path), row.patterns(split), name)
    for file in files:
        for place, example in row.read(file, row):
            kind = rejects if isinstance(example, Rejected) else found
            kind.append((f"{place} of {file}", example))
    # A test set may have no answers at all.
    if not split.startswith("test") or any(x.y is not None for _, x in found):
        rejects += [(at, "no label or answer") for at, x in found if x.y is None]
        found = [(at, x) for at, x in found if x.y is not None]
    kept = [example for _, example in found]
    names = list(map(str, files))
    reasons = collections.Counter(str(reason) for _, reason in rejects)
    counts = dict(reasons.most_common())
    named = [f"{place}: {reason}" for place, reason in rejects[:NAMED]]
    _report(len(kept), counts, named, " and ".join(names))
    columns = tuple(map(list, zip(*(example.x for example in kept), strict=True)))
    y = [example.y for example in kept]
    labels = None
    if row.task == "text-classification":
        labels = list(row.labels or sorted(set(y) - {None}))
    return Examples(
        columns[0] if len(columns) == 1 else columns,
        None if y[0] is None else y,
        row.task,
        labels,
        counts,
        named,
        sum(example.moved for example in kept),
        names,
    )


def _report(kept, counts, named, files):
    """Warn of rejected records. Raise if no others are left."""
    left_out = sum(counts.values())
    reasons = ", ".join(f"{reason} ({count:,})" for reason, count in counts.items())
    shown = (
        f"{left_out:,} of {left_out + kept:,} records of {files} were left out: "
        f"{reasons}. The first: {'; '.join(named)}"
    )
    if not kept:
        raise AlbertError(shown if left_out else f"{files} holds no records.")
    if left_out:
        warnings.warn(shown, stacklevel=3)


# === Files ===


class _File(NamedTuple):
    """A file in a folder or archive, and the readers of all files there by name."""

    folder: pathlib.Path
    name: str
    readers: dict[str, Callable[[], bytes]]

    def __str__(self) -> str:
        return str(self.folder / self.name)

    def read(self) -> bytes:
        """The content without a byte order mark."""
        return self.readers[self.name]().removeprefix(b"\xef\xbb\xbf")

    def lines(self) -> Iterator[tuple[str, bytes]]:
        """The places and contents of lines that are not blank."""
        for number, line in enumerate(self.read().split(b"\n"), start=1):
            if line.strip():
                yield f"line {number}", line.removesuffix(b"\r")

    def json(self, kind: type) -> Any:
        """The value of a JSON file."""
        try:
            value = json.loads(self.read())
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise AlbertError(f"{self} is not JSON: {error}") from None
        if not isinstance(value, kind):
            expected = {list: "list", dict: "object"}[kind]
            raise AlbertError(
                f"{self} should hold a JSON {expected}. Found: {str(value)[:80]}"
            )
        return value


def _split_files(path, patterns, name):
    """The files of a split in a directory or archive, or the file itself."""
    if path.is_dir():
        names = (x.relative_to(path) for x in path.rglob("*") if x.is_file())
        readers = {x.as_posix(): (path / x).read_bytes for x in names}
    elif path.is_file() and path.suffix.lower() == ".zip":
        try:
            archive = zipfile.ZipFile(path)
        except zipfile.BadZipFile as error:
            raise AlbertError(
                f"{path} is damaged or not a zip archive: {error}"
            ) from None
        names = (x for x in archive.namelist() if not x.endswith("/"))
        readers = {x: functools.partial(archive.read, x) for x in names}
    elif path.is_file():
        beside = (x for x in path.parent.iterdir() if x.is_file())
        return [_File(path.parent, path.name, {x.name: x.read_bytes for x in beside})]
    else:
        raise FileNotFoundError(f"{path} does not exist.")
    # macOS adds hidden files of the same names to archives.
    hidden = re.compile(r"(^|/)(\.|__MACOSX/)")
    names = [x for x in readers if not hidden.search(x)]
    wanted = [_matching(path, names, pattern, name) for pattern in patterns]
    if not any(wanted):
        found = sorted(x.rpartition("/")[2] for x in names)
        raise FileNotFoundError(
            f"{path} holds no {' or '.join(patterns)}. Found: {found[:10]}"
        )
    return [_File(path, x, readers) for x in wanted if x]


def _matching(path, names, pattern, name):
    """The file of a pattern, preferably in a folder of the name, the least deep one."""
    for alternative in pattern.split("|"):
        parts = {x: x.lower().rpartition("/") for x in names}
        found = [x for x in names if fnmatch.fnmatch(parts[x][2], alternative)]
        found = [x for x in found if name in parts[x][0]] or found
        depth = min((x.count("/") for x in found), default=0)
        found = [x for x in found if x.count("/") == depth]
        if len(found) > 1:
            raise AlbertError(
                f"{path} holds several files for {name}: {sorted(found)}. Give the "
                "folder of one, or the file."
            )
        if found:
            return found[0]
    return None


# === Fields of records ===

_KINDS = {str: "text", list: "a list", dict: "an object", int: "a number"}


def _checked(value, kind, name):
    """A value of a type. Strings must not be empty."""
    if not isinstance(value, kind) or isinstance(value, bool):
        raise Rejected(f"{name} is not {_KINDS[kind]}")
    if kind is str and not value.strip():
        raise Rejected(f"{name} is empty")
    return value


def _field(record, names, kind=str):
    """A field of a record, the first of the names separated by `|` that it has."""
    _checked(record, dict, "the record")
    for name in names.split("|"):
        if record.get(name) is not None:
            return _checked(record[name], kind, f"the field {name!r}")
    raise Rejected(f"no field {names.replace('|', ' or ')!r}")


def _strings(values, name):
    return [_checked(x, str, name) for x in _checked(values, list, name)]


def _placed(text, start, part, name):
    """The position of a part in a text, and 1 if it is not the expected `start`."""
    found = find_answer(text, start if isinstance(start, int) else None, part)
    if found is None:
        raise Rejected(f"{name} is not in its text")
    return found, int(start not in (None, found))


def _decoded(line):
    try:
        return line.decode()
    except UnicodeDecodeError:
        raise Rejected("not UTF-8") from None


def _parsed(line):
    try:
        record = json.loads(_decoded(line))
    except json.JSONDecodeError:
        raise Rejected("not JSON") from None
    return _checked(record, dict, "the line")


# === Readers: functions of a file and a row of the table. They yield the place of each
# record, and its `Example` or `Rejected`. ===


def _tried(function, *args):
    try:
        return function(*args)
    except Rejected as reason:
        return reason


def _json_lines(file, row):
    """One JSON object per line, as in most of CLUE."""
    for place, line in file.lines():
        yield place, _tried(lambda line=line: row.example(_parsed(line), row))


# Other names of columns in headers.
_HEADERS = {
    "sentence1": "text_a",
    "sentence2": "text_b",
    "question1": "text_a",
    "question2": "text_b",
    "text": "text_a",
    "review": "text_a",
}


def _tsv(file, row):
    """Columns separated by tabs, with a header or in the order of `row.columns`."""
    names = list(row.columns)

    def example(line):
        cells = _decoded(line).split("\t")
        if len(cells) != len(names):
            raise Rejected("another number of columns")
        return row.example(dict(zip(names, cells, strict=True)), row)

    for number, (place, line) in enumerate(file.lines()):
        cells = line.decode(errors="replace").lower().split("\t")
        header = [_HEADERS.get(x.strip(), x.strip()) for x in cells]
        if number == 0 and set(names) <= set(header):
            names = header
        else:
            yield place, _tried(example, line)


def _c3(file, row):
    """A JSON list of documents with their questions."""
    for d, document in enumerate(file.json(list)):
        is_whole = isinstance(document, list) and len(document) > 1
        if not is_whole or not isinstance(document[1], list):
            yield f"[{d}]", Rejected("no list of a document and its questions")
            continue
        for q, question in enumerate(document[1]):
            yield f"[{d}][1][{q}]", _tried(_choice, document[0], question)


def _choice(turns, question):
    context = "\n".join(_strings(turns, "the document"))
    text = _field(question, "question")
    choices = _strings(_field(question, "choice", list), "a choice")
    answer = question.get("answer")
    if answer is not None and answer not in choices:
        raise Rejected("the answer is none of the choices")
    label = None if answer is None else choices.index(answer)
    return Example((context, text, choices), label)


_IDIOM = re.compile("(#idiom[0-9]+#)")
# The idiom in question, and other idioms of the same text.
BLANK, OTHER_BLANK = "____", "……"


def _chid(file, row):
    """A JSON object per line, with blanks in texts. Answers are in a second file."""
    beside = file._replace(name=file.name.removesuffix(".json") + "_answer.json")
    answers = beside.json(dict) if beside.name in file.readers else {}
    for place, line in file.lines():
        try:
            record = _parsed(line)
            texts, candidates = (_field(record, x, list) for x in row.fields)
            texts = [_IDIOM.split(text) for text in _strings(texts, "a text")]
        except Rejected as error:
            yield place, error
            continue
        for parts in texts:
            for i in range(1, len(parts), 2):
                label = answers.get(parts[i])
                example = _tried(_idiom, parts, i, candidates, label)
                yield f"{parts[i]} in {place}", example


def _idiom(parts, blank, candidates, label):
    """The example of one blank. Blanks are the odd parts."""
    candidates = _strings(candidates, "a candidate")
    if label is not None and _checked(label, int, "the answer") not in range(
        len(candidates)
    ):
        raise Rejected("the answer is none of the candidates")
    shown = list(parts)
    shown[1::2] = [OTHER_BLANK] * len(parts[1::2])
    shown[blank] = BLANK
    return Example(("".join(shown), "", candidates), label)


def _squad(file, row):
    """The form of SQuAD, or of CMRC 2018, which has no paragraphs."""
    for a, article in enumerate(_list_in(file.json(dict), "data", [])):
        for p, paragraph in enumerate(_list_in(article, "paragraphs", [article])):
            # A paragraph without questions is rejected.
            for q, entry in enumerate(_list_in(paragraph, "qas", [None])):
                place = f"data[{a}].paragraphs[{p}].qas[{q}]"
                yield place, _tried(_question, paragraph, entry)


def _question(paragraph, entry):
    context = _field(paragraph, "context|context_text")
    text = _field(entry, "question|query_text")
    if entry.get("answers") is None:
        return Example((text, context), None)
    found, moved = [], 0
    for answer in _checked(entry["answers"], list, "the field 'answers'"):
        # CMRC 2018 has strings.
        answer = {"text": answer} if isinstance(answer, str) else answer
        part = _field(answer, "text")
        try:
            start, was_moved = _placed(context, answer.get("answer_start"), part, "it")
        except Rejected:
            continue
        found.append((start, part))
        moved += was_moved
    if not found:
        raise Rejected("no answer is in the context")
    return Example((text, context), found, moved)


def _list_in(record, name, default):
    value = record.get(name) if isinstance(record, dict) else None
    return value if isinstance(value, list) else default


# === Examples of single records ===


def _label(record, row):
    """The label of a record, or `None`."""
    value = record.get(row.label)
    if value is None:
        return None
    label = str(value).strip()
    if not label or (row.labels and label not in row.labels):
        raise Rejected(f"the label {label!r}")
    return label


def _labelled_texts(record, row):
    """A text or a pair of texts. Lists, such as the keywords of CSL, are joined."""

    def text(name):
        is_list = isinstance(record.get(name), list)
        value = _field(record, name, list if is_list else str)
        return " ".join(_strings(value, f"the field {name!r}")) if is_list else value

    return Example(tuple(map(text, row.fields)), _label(record, row))


def _marked_pronoun(record, row):
    """CLUEWSC: a text with _the noun_ and [the pronoun] marked."""
    text, target = _field(record, "text"), _field(record, "target", dict)
    spans, moved = [], 0
    for number, marks in (("1", "__"), ("2", "[]")):
        part = _field(target, f"span{number}_text")
        given = target.get(f"span{number}_index")
        start, was_moved = _placed(text, given, part, "a span")
        spans.append((start, start + len(part), marks))
        moved += was_moved
    first, second = sorted(spans)
    if first[1] > second[0]:
        raise Rejected("the two spans overlap")
    # The later span first, so that the position of the other stays right.
    for start, end, (before, after) in (second, first):
        text = text[:start] + before + text[start:end] + after + text[end:]
    return Example((text,), _label(record, row), moved)


# === The table ===

# CLUE has two versions of some test sets.
_TEST = "test.json|test1.1.json|test1.0.json"


@dataclasses.dataclass(frozen=True)
class DataSet:
    """A data set as it is distributed.

    Attributes:
        task: as for `albert-tf finetune --task`.
        read: function of a file and this row, see "Readers" above.
        fields: the names of the parts of an example in a record.
        label: the name of the label in a record.
        labels: all labels, or `None` if any string is a label.
        columns: the names of the columns of files without header.
        example: function of a record and this row that returns an `Example`.
        files: the names of the files of a split, as for `fnmatch`, if they are not the
            split and `suffix`. Alternatives are separated by `|`.
        suffix: of the files.
    """

    task: str = "text-classification"
    read: Callable = _json_lines
    fields: tuple[str, ...] = ("sentence1", "sentence2")
    label: str = "label"
    labels: tuple[str, ...] | None = ("0", "1")
    columns: tuple[str, ...] = ()
    example: Callable = _labelled_texts
    files: dict[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    suffix: str = ".json"

    def patterns(self, split: str) -> tuple[str, ...]:
        """The names of the files of a split."""
        is_clue = split == "test" and self.suffix == ".json"
        default = _TEST if is_clue else f"{split}{self.suffix}"
        return self.files.get(split, (default,))


_NLI = ("entailment", "neutral", "contradiction")
_NEWS = (
    *("story", "culture", "entertainment", "sports", "finance", "house", "car", "edu"),
    *("tech", "military", "travel", "world", "stock", "agriculture", "game"),
)
_PAIRS = DataSet(
    read=_tsv,
    fields=("text_a", "text_b"),
    columns=("text_a", "text_b", "label"),
    suffix=".tsv",
)
DATASETS = {
    "afqmc": DataSet(),
    "tnews": DataSet(
        fields=("sentence",),
        label="label_desc",
        labels=tuple(f"news_{x}" for x in _NEWS),
    ),
    "iflytek": DataSet(fields=("sentence",), label="label_des", labels=None),
    "cmnli": DataSet(labels=_NLI),
    "ocnli": DataSet(labels=_NLI, files={"train": ("train.50k.json|train.json",)}),
    "csl": DataSet(fields=("abst", "keyword")),
    "cluewsc": DataSet(labels=("false", "true"), example=_marked_pronoun),
    "c3": DataSet(
        task="multiple-choice",
        read=_c3,
        # Mixed texts and dialogues.
        files={
            "train": ("*m-train.json", "*d-train.json"),
            "dev": ("*m-dev.json", "*d-dev.json"),
            "test": (f"*m-test.json|{_TEST}", "*d-test.json"),
        },
    ),
    "chid": DataSet(
        task="multiple-choice", read=_chid, fields=("content", "candidates")
    ),
    "cmrc": DataSet(
        task="question-answering",
        read=_squad,
        files={x: (f"*{x}.json",) for x in ("train", "dev", "trial")},
    ),
    "drcd": DataSet(
        task="question-answering",
        read=_squad,
        files={
            "train": ("drcd_training.json|train.json",),
            "dev": ("drcd_dev.json|dev.json",),
            "test": ("drcd_test.json|test.json",),
        },
    ),
    "lcqmc": _PAIRS,
    "bq": _PAIRS,
    "chnsenticorp": dataclasses.replace(
        _PAIRS, fields=("text_a",), columns=("label", "text_a")
    ),
}
