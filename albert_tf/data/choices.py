"""Read multiple choice questions, in the forms of C3 and RACE."""

from __future__ import annotations

import dataclasses
import os
import pathlib

from albert_tf.data.reading import field, numbered_lines, parse_json_lines, read_json
from albert_tf_lite.errors import AlbertError


@dataclasses.dataclass(frozen=True)
class ChoiceQuestions:
    """Questions about texts, with several choices each.

    Attributes:
        contexts: list of strings.
        questions: list of strings.
        choices: list of lists of strings, possibly of different lengths.
        labels: list of ints, the position of the correct choice; `None` if the file
            has no answers.
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
        """Return contexts, questions and choices, for `fit` and `predict`."""
        return self.contexts, self.questions, self.choices


def read_choices(path: str | os.PathLike) -> ChoiceQuestions:
    """Read a file in the form of C3, or a file or directory in the form of RACE.

    C3 is a JSON list of `[document, questions, id]`, where a document is a list of
    strings (the turns of a dialogue) and the answer is the text of a choice. RACE is a
    JSON object with `article`, `questions`, `options` and `answers` ("A" to "Z"), one
    per file, or one per line of a `.jsonl` file.

    Args:
        path: path of a file, or of a directory, whose `.txt` and `.json` files are all
            read.

    Returns:
        A `ChoiceQuestions`.

    Raises:
        FileNotFoundError: if the file does not exist, or the directory has none.
        AlbertError: if an entry has another form, or only some questions have answers.

    Example:
    ```python
    train = albert_tf.data.read_choices("c3-d-train.json")
    model.fit(train.x, train.labels)
    ```

    Reference:
        [Sun et al., 2020](https://arxiv.org/abs/1904.09679) (C3),
        [Lai et al., 2017](https://arxiv.org/abs/1704.04683) (RACE).
    """
    path = pathlib.Path(path)
    files = [path]
    if path.is_dir():
        files = sorted(x for x in path.rglob("*") if x.suffix in (".txt", ".json"))
        if not files:
            raise FileNotFoundError(f"{path} holds no .txt or .json file of RACE.")
    rows = [row for file in files for row in _rows(file)]
    if not rows:
        raise AlbertError(f"{path} has no questions.")
    contexts, questions, choices, labels, ids = map(list, zip(*rows, strict=True))
    unlabelled = labels.count(None)
    if 0 < unlabelled < len(labels):
        raise AlbertError(
            f"{path} has {unlabelled} questions without an answer among "
            f"{len(labels)}, the first with the id {ids[labels.index(None)]}. Expected "
            "answers for all questions or for none."
        )
    labels = None if unlabelled else labels
    return ChoiceQuestions(contexts, questions, choices, labels, ids)


def _rows(path):
    if path.suffix == ".jsonl":
        records = parse_json_lines(numbered_lines(path))
        return [row for place, record in records for row in _race(record, place)]
    content = read_json(path)
    if isinstance(content, dict):
        return _race(content, str(path))
    if isinstance(content, list):
        return _c3(content, path)
    raise AlbertError(
        f"{path} should be a list of documents (C3) or an object with `article` "
        f"(RACE). Found: {str(content)[:80]!r}"
    )


def _c3(content, path):
    for d, document in enumerate(content):
        place = f"[{d}] of {path}"
        if not isinstance(document, list) or len(document) < 2:
            raise AlbertError(
                f"{place} should be a list of a document, its questions and an id. "
                f"Found: {str(document)[:80]!r}"
            )
        turns, questions, *rest = document
        context = "\n".join(_strings(turns, f"the document of {place}"))
        if not isinstance(questions, list):
            raise AlbertError(f"The questions of {place} should be a list.")
        for q, question in enumerate(questions):
            place = f"[{d}][1][{q}] of {path}"
            choices = _strings(field(question, "choice", list, place), place)
            answer = question.get("answer")
            if answer is not None and answer not in choices:
                raise AlbertError(
                    f"The answer {answer!r} of {place} is none of its choices: "
                    f"{choices}"
                )
            label = None if answer is None else choices.index(answer)
            name = f"{rest[0] if rest else d}-{q}"
            yield context, field(question, "question", str, place), choices, label, name


def _race(record, place):
    article = field(record, "article", str, place)
    questions = _strings(field(record, "questions", list, place), place)
    options = field(record, "options", list, place)
    answers = record.get("answers") or [None] * len(questions)
    if not len(questions) == len(options) == len(answers):
        raise AlbertError(
            f"{place} has {len(questions)} questions, {len(options)} lists of options "
            f"and {len(answers)} answers. Expected the same number of each."
        )
    for q, (question, letter) in enumerate(zip(questions, answers, strict=True)):
        name = f"question {q} of {place}"
        choices = _strings(options[q], f"the options of {name}")
        label = None
        if letter is not None:
            is_letter = isinstance(letter, str) and len(letter) == 1
            label = ord(letter) - ord("A") if is_letter else -1
            if not 0 <= label < len(choices):
                raise AlbertError(
                    f"The answer of {name} should be a letter of its {len(choices)} "
                    f"options, from A. Found: {letter!r}"
                )
        yield article, question, choices, label, f"{record.get('id', place)}-{q}"


def _strings(values, place):
    if not isinstance(values, list) or not values:
        raise AlbertError(
            f"{place} should have a list of one or more strings. Found: "
            f"{str(values)[:80]!r}"
        )
    for value in values:
        if not isinstance(value, str):
            raise AlbertError(f"{place} should hold strings only. Found: {value!r}")
    return values
