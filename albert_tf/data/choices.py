"""Reading multiple choice questions, in the forms of C3 and RACE."""

from __future__ import annotations

import dataclasses
import os
import pathlib

from albert_tf.data.json_files import field, read_json, read_json_lines
from albert_tf_lite.errors import AlbertError


@dataclasses.dataclass(frozen=True)
class ChoiceQuestions:
    """Questions on texts with several choices each.

    Attributes:
        contexts: list of strings.
        questions: list of strings.
        choices: list of lists of strings, possibly of different lengths.
        labels: list of ints, the position of the right choice; `None` if the file
            does not say it.
        ids: list of strings.
    """

    contexts: list[str]
    questions: list[str]
    choices: list[list[str]]
    labels: list[int] | None
    ids: list[str]

    def __len__(self) -> int:
        return len(self.questions)

    @property
    def x(self) -> tuple[list[str], list[str], list[list[str]]]:
        """Contexts, questions and choices, as `fit` and `predict` take them."""
        return self.contexts, self.questions, self.choices


def read_choices(path: str | os.PathLike) -> ChoiceQuestions:
    """Read a file of the C3 form, or a file or directory of the RACE form.

    C3 is a JSON list of `[document, questions, id]`, where a document is a list of
    strings (the turns of a dialogue) and the answer is the text of a choice. RACE
    is a JSON object with `article`, `questions`, `options` and `answers` ("A" to
    "Z"), one a file, or one a line of a `.jsonl` file. Where a question of RACE has
    `_`, its choices stand for it, and are read as they are.

    Args:
        path: string, a file; or a directory, whose `.txt` and `.json` files are all
            read.

    Returns:
        A `ChoiceQuestions`.

    Raises:
        FileNotFoundError: if there is no such file, or none in the directory.
        AlbertError: if an entry is not of these forms, saying which.

    Reference:
        [Sun et al., 2020](https://arxiv.org/abs/1904.09679) (C3),
        [Lai et al., 2017](https://arxiv.org/abs/1704.04683) (RACE).
    """
    path = pathlib.Path(path)
    rows = [row for file in _files(path) for row in _rows(file)]
    if not rows:
        raise AlbertError(f"{path} has no questions.")
    contexts, questions, choices, labels, ids = map(list, zip(*rows, strict=True))
    unlabelled = labels.count(None)
    if 0 < unlabelled < len(labels):
        raise AlbertError(
            f"{path} has {unlabelled} questions without an answer among "
            f"{len(labels)}, the first with the id {ids[labels.index(None)]}. Expected "
            "an answer for all, or for none."
        )
    return ChoiceQuestions(
        contexts, questions, choices, None if unlabelled else labels, ids
    )


def _files(path):
    if not path.is_dir():
        return [path]
    files = sorted(x for x in path.rglob("*") if x.suffix in (".txt", ".json"))
    if not files:
        raise FileNotFoundError(f"{path} holds no .txt or .json file of RACE.")
    return files


def _rows(path):
    if path.suffix == ".jsonl":
        lines = read_json_lines(path)
        return [row for entry, record in lines for row in _race(record, entry)]
    content = read_json(path)
    if isinstance(content, dict):
        return list(_race(content, str(path)))
    if isinstance(content, list):
        return list(_c3(content, path))
    raise AlbertError(
        f"{path} should be a list of documents (C3) or an object with `article` "
        f"(RACE). Found: {str(content)[:80]!r}"
    )


def _c3(content, path):
    for d, document in enumerate(content):
        entry = f"[{d}] of {path}"
        if not isinstance(document, list) or len(document) < 2:
            raise AlbertError(
                f"{entry} should be a list of a document, its questions and an id. "
                f"Found: {str(document)[:80]!r}"
            )
        turns, questions, *rest = document
        context = "\n".join(_strings(turns, f"the document of {entry}"))
        if not isinstance(questions, list):
            raise AlbertError(f"The questions of {entry} should be a list.")
        for q, question in enumerate(questions):
            entry = f"[{d}][1][{q}] of {path}"
            choices = _strings(field(question, "choice", list, entry), entry)
            answer = question.get("answer")
            if answer is not None and answer not in choices:
                raise AlbertError(
                    f"The answer {answer!r} of {entry} is none of its choices: "
                    f"{choices}"
                )
            label = None if answer is None else choices.index(answer)
            name = f"{rest[0] if rest else d}-{q}"
            yield context, field(question, "question", str, entry), choices, label, name


def _race(record, entry):
    article = field(record, "article", str, entry)
    questions = _strings(field(record, "questions", list, entry), entry)
    options = field(record, "options", list, entry)
    answers = record.get("answers") or [None] * len(questions)
    if not len(questions) == len(options) == len(answers):
        raise AlbertError(
            f"{entry} has {len(questions)} questions, {len(options)} lists of options "
            f"and {len(answers)} answers. Expected as many of each."
        )
    for q, (question, letter) in enumerate(zip(questions, answers, strict=True)):
        place = f"question {q} of {entry}"
        choices = _strings(options[q], f"the options of {place}")
        label = None
        if letter is not None:
            label = ord(letter) - ord("A") if _is_letter(letter) else -1
            if not 0 <= label < len(choices):
                raise AlbertError(
                    f"The answer of {place} should be a letter of its {len(choices)} "
                    f"options, from A on. Found: {letter!r}"
                )
        yield article, question, choices, label, f"{record.get('id', entry)}-{q}"


def _is_letter(value):
    return isinstance(value, str) and len(value) == 1


def _strings(values, entry):
    if not isinstance(values, list) or not values:
        raise AlbertError(
            f"{entry} should have a list of strings, at least one. Found: "
            f"{str(values)[:80]!r}"
        )
    for value in values:
        if not isinstance(value, str):
            raise AlbertError(f"{entry} should hold strings only. Found: {value!r}")
    return values
