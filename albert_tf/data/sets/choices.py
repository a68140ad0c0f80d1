"""Read questions with choices: C3, RACE, CHID."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import re
import string
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from albert_tf.data.files.json_values import field, read_json
from albert_tf_lite.errors import AlbertError


@dataclasses.dataclass(frozen=True)
class ChoiceQuestions:
    """Questions about texts, with several choices each.

    Attributes:
        contexts, questions: lists of strings.
        choices: list of lists of strings, possibly of different lengths.
        labels: list of ints, the position of the correct choice; `None` if an answer
            is missing.
        ids: list, the `id` of each document, `None` if it has none.
    """

    contexts: list[str]
    questions: list[str]
    choices: list[list[str]]
    labels: list[int] | None
    ids: list = dataclasses.field(default_factory=list, compare=False)

    def __len__(self) -> int:
        return len(self.questions)

    @property
    def x(self) -> tuple[list[str], list[str], list[list[str]]]:
        """Return the columns for `fit` and `predict`."""
        return self.contexts, self.questions, self.choices


def read_choices(
    path: str | os.PathLike, encoding: str | None = None
) -> ChoiceQuestions:
    """Read a file in the form of C3 or CHID, or a file or directory as of RACE.

    C3 is a JSON list of `[document, questions, id]`, where a document is a list of
    strings (the turns of a dialogue) and the answer is the text of a choice. RACE is a
    JSON object with `article`, `questions`, `options` and `answers` ("A" to "Z"), one
    per file, or one per line of a `.jsonl` file. CHID has a JSON object with `content`
    and `candidates` per line, and the answers in a file `NAME_answer.json` beside; in
    the context of each question the idiom is `____`, and other idioms are `……`.

    Args:
        path: path of a file, or of a directory, whose `.txt` and `.json` files are all
            read.
        encoding: optional string, as in `read_labelled_texts`.

    Returns:
        A `ChoiceQuestions`.

    Raises:
        FileNotFoundError: if the file does not exist, or the directory has none.
        AlbertError: if an entry has another form.

    Example:
    ```python
    train = albert_tf.data.read_choices("c3-d-train.json")
    model.fit(train.x, train.labels)
    ```

    Reference:
        [Sun et al., 2020](https://arxiv.org/abs/1904.09679) (C3),
        [Lai et al., 2017](https://arxiv.org/abs/1704.04683) (RACE),
        [Zheng et al., 2019](https://arxiv.org/abs/1906.01265) (CHID).
    """
    path = pathlib.Path(path)
    files = [path]
    if path.is_dir():
        files = sorted(x for x in path.rglob("*") if x.suffix in (".txt", ".json"))
        if not files:
            raise FileNotFoundError(f"{path} holds no .txt or .json file of RACE.")
    questions: list[_Question] = []
    for file in files:
        questions.extend(_read_file(file, encoding))
    if not questions:
        raise AlbertError(f"{path} has no questions.")
    labels = [question.label for question in questions]
    return ChoiceQuestions(
        [question.context for question in questions],
        [question.text for question in questions],
        [question.choices for question in questions],
        None if None in labels else labels,  # type: ignore[arg-type]
        [question.id for question in questions],
    )


class _Question(NamedTuple):
    """A question with its choices; label and id are `None` if they are not known."""

    context: str
    text: str
    choices: list[str]
    label: int | None
    id: Any


def _read_file(file: pathlib.Path, encoding: str | None) -> Iterator[_Question]:
    """Return the questions of a file; none of a file of answers."""
    answers = _read_answers(file.with_name(f"{file.stem}_answer.json"), encoding)
    for place, entry in read_json(file, encoding):
        if isinstance(entry, list):
            yield from _c3_questions(entry, place)
        elif not isinstance(entry, dict):
            raise AlbertError(
                f"{place} should be a list of C3, or an object of RACE or CHID. Found: "
                f"{str(entry)[:80]!r}"
            )
        elif "candidates" in entry:
            yield from _chid_questions(entry, place, answers)
        elif not file.stem.endswith("_answer"):
            yield from _race_questions(entry, place)


def _read_answers(path: pathlib.Path, encoding: str | None) -> dict[str, int]:
    """Return the answers of CHID by the names of the blanks; none without a file."""
    if not path.exists():
        return {}
    values = [value for _, value in read_json(path, encoding)]
    if len(values) != 1 or not isinstance(values[0], dict):
        raise AlbertError(
            f"{path} should be one JSON object with the answer of each blank, such as "
            '{"#idiom000001#": 3}.'
        )
    return values[0]


# === Readers of an entry ===


def _c3_questions(document: list, place: str) -> Iterator[_Question]:
    if len(document) < 2 or not isinstance(document[1], list):
        raise AlbertError(
            f"{place} should be a list of a document, its questions and an id. "
            f"Found: {str(document)[:80]!r}"
        )
    turns, entries = document[:2]
    number = document[2] if len(document) > 2 else None
    context = "\n".join(_strings(turns, f"The document of {place}"))
    for entry in entries:
        text = field(entry, "question", str, f"A question of {place}")
        name = f"{text!r} of {place}"
        choices = _strings(entry.get("choice"), f"The question {name}")
        label = _label(entry.get("answer"), choices, name)
        yield _Question(context, text, choices, label, number)


def _chid_questions(
    record: dict, place: str, answers: Mapping[str, int]
) -> Iterator[_Question]:
    candidates = _strings(record["candidates"], place)
    for text in _strings(record.get("content"), place):
        # Every second part is the name of a blank.
        parts = re.split("(#idiom[0-9]+#)", text)
        for blank in range(1, len(parts), 2):
            shown = parts.copy()
            shown[1::2] = ["……"] * (len(parts) // 2)
            shown[blank] = "____"
            label = answers.get(parts[blank])
            if label is not None and label not in range(len(candidates)):
                raise AlbertError(
                    f"The answer of {parts[blank]} in {place} should be the position "
                    f"of one of {len(candidates)} candidates. Found: {label!r}"
                )
            number = parts[blank].strip("#")
            yield _Question("".join(shown), "", candidates, label, number)


def _race_questions(record: dict, place: str) -> Iterator[_Question]:
    article = field(record, "article", str, place)
    texts = _strings(record.get("questions"), place)
    options = field(record, "options", list, place)
    letters: Any = [None] * len(texts)
    if record.get("answers"):
        letters = field(record, "answers", list, place)
    if not len(texts) == len(options) == len(letters):
        raise AlbertError(
            f"{place} has {len(texts)} questions, {len(options)} lists of options "
            f"and {len(letters)} answers. Expected the same number of each."
        )
    for text, choices, letter in zip(texts, options, letters, strict=True):
        allowed = string.ascii_uppercase[: len(_strings(choices, place))]
        label = _label(letter, list(allowed), place)
        yield _Question(article, text, choices, label, record.get("id"))


def _label(answer: str | None, answers: list[str], place: str) -> int | None:
    if answer is None:
        return None
    if answer not in answers:
        raise AlbertError(
            f"The answer of {place} should be one of {answers}. Found: {answer!r}"
        )
    return answers.index(answer)


def _strings(values: Any, place: str) -> list[str]:
    is_list = isinstance(values, list) and values
    if not is_list or not all(isinstance(value, str) for value in values):
        raise AlbertError(
            f"{place} should have a list of one or more strings. Found: "
            f"{str(values)[:80]!r}"
        )
    return values
