"""Read questions about texts: SQuAD, CMRC 2018, DRCD; multiple choice as C3, RACE."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import re
import string
from typing import Any

from albert_tf.data.reading import field, read_json
from albert_tf_lite.errors import AlbertError


@dataclasses.dataclass(frozen=True)
class SpanQuestions:
    """Questions, the contexts that answer them, and the answers.

    Attributes:
        questions, contexts: lists of strings.
        answers: list of lists of `(start, text)`, the correct answers; an empty list
            if the context does not answer. `context[start:start + len(text)] == text`,
            or `start` is `None` if the context does not contain the text. Such an
            answer counts in evaluation but cannot be learned.
        moved: int. Answers whose `answer_start` was wrong and has been corrected.
        absent: int. Answers that their context does not contain.
        skipped: int. Questions that `for_training` left out.
        ids: list, the `id` of each question, `None` if it has none.
    """

    questions: list[str]
    contexts: list[str]
    answers: list[list[tuple[int | None, str]]]
    moved: int = 0
    absent: int = 0
    skipped: int = 0
    ids: list = dataclasses.field(default_factory=list, compare=False)

    def __len__(self) -> int:
        return len(self.questions)

    @property
    def x(self) -> tuple[list[str], list[str]]:
        """Return questions and contexts, for `fit` and `predict`."""
        return self.questions, self.contexts

    @property
    def texts(self) -> list[list[str]]:
        """Return the texts of the answers of each question, for the scores."""
        return [[text for _, text in answers] for answers in self.answers]

    def for_training(self) -> SpanQuestions:
        """Return the questions with an answer that the context contains, or with none.

        The others, which cannot be learned, are counted in `skipped`.
        """
        kept = [
            i
            for i, answers in enumerate(self.answers)
            if not answers or any(start is not None for start, _ in answers)
        ]
        names = ("questions", "contexts", "answers", "ids")
        columns: Any = {name: [getattr(self, name)[i] for i in kept] for name in names}
        return dataclasses.replace(self, **columns, skipped=len(self) - len(kept))


def find_answer(context: str, start: int | None, text: str) -> int | None:
    """Return where a text begins that is nearest to a start, or `None`.

    >>> find_answer("黄河长5464公里", 5, "5464公里")
    3
    """
    start = max(start or 0, 0)
    before = context.rfind(text, 0, start + len(text))
    after = context.find(text, start)
    places = [place for place in (before, after) if place >= 0]
    return min(places, key=lambda place: abs(place - start), default=None)


def read_squad(
    path: str | os.PathLike, encoding: str | None = None, has_answers: bool = True
) -> SpanQuestions:
    """Read questions about texts: SQuAD v1.1 and v2.0, CMRC 2018, DRCD.

    JSON lines with `question`, `context` and `answers` are read, too. A wrong
    `answer_start` is replaced by the nearest occurrence of the text.

    Args:
        path: path of a JSON file.
        encoding: optional string, as in `read_labelled_texts`.
        has_answers: bool. With `False`, answers are not read.

    Returns:
        A `SpanQuestions`, which counts corrected offsets and missing answers.

    Raises:
        FileNotFoundError: if the file does not exist.
        AlbertError: if the file is not JSON, or an entry has another form.

    Example:
    ```python
    train = albert_tf.data.read_squad("cmrc2018_train.json").for_training()
    model.fit(train.x, train.answers)
    ```

    Reference:
        [Rajpurkar et al., 2018](https://arxiv.org/abs/1806.03822).
    """
    rows = []
    moved = absent = 0
    for context, place, question in _squad_questions(path, encoding):
        answers = []
        for text, given in _squad_answers(question, place) if has_answers else ():
            if not text:
                continue
            start = find_answer(context, given, text)
            absent += start is None
            moved += given is not None and start not in (None, given)
            answers.append((start, text))
        text = field(question, ("question", "query_text"), str, place)
        number = question.get("id", question.get("query_id"))
        rows.append((text, context, answers, number))
    if not rows:
        raise AlbertError(f"{path} has no questions.")
    questions, contexts, answer_lists, ids = map(list, zip(*rows, strict=True))
    return SpanQuestions(questions, contexts, answer_lists, moved, absent, ids=ids)


def _squad_questions(path, encoding):
    """Yield the context, the place and the entry of each question."""
    for place, content in read_json(path, encoding):
        for part, paragraph in _paragraphs(content, place):
            context = field(paragraph, ("context", "context_text"), str, part)
            # Without a list, a paragraph is its own question.
            is_list = "question" not in paragraph
            entries = field(paragraph, "qas", list, part) if is_list else [paragraph]
            for question in entries:
                yield context, part, question


def _paragraphs(content, place):
    """Yield the place and the dict of each paragraph, at any depth."""
    for name in ("data", "paragraphs"):
        if isinstance(content, dict) and name in content:
            for i, part in enumerate(field(content, name, list, place)):
                yield from _paragraphs(part, f"{name}[{i}] of {place}")
            return
    yield place, content


def _squad_answers(question, place):
    """Yield the text and the start of each answer, `None` if it is not given."""
    if isinstance(question, dict) and question.get("is_impossible"):
        return
    answers = field(question, "answers", list | dict, place)
    if isinstance(answers, dict):
        # As the data sets of Hugging Face have them.
        texts, starts = (answers.get(x, []) for x in ("text", "answer_start"))
        yield from zip(texts, starts, strict=True)
        return
    for answer in answers:
        if isinstance(answer, str):
            yield answer, None
            continue
        text = field(answer, "text", str, f"an answer in {place}")
        yield text, field(answer, "answer_start", int, f"an answer in {place}")


# === Multiple choice ===


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
    rows = [row for file in files for row in _choice_rows(file, encoding)]
    if not rows:
        raise AlbertError(f"{path} has no questions.")
    contexts, questions, choices, labels, ids = map(list, zip(*rows, strict=True))
    return ChoiceQuestions(
        contexts, questions, choices, None if None in labels else labels, ids
    )


def _choice_rows(file, encoding):
    """Return the rows of a file of questions; none of a file of answers."""
    idioms = file.with_name(f"{file.stem}_answer.json")
    answers = (
        dict(next(iter(read_json(idioms, encoding)))[1]) if idioms.exists() else {}
    )
    for place, entry in read_json(file, encoding):
        if isinstance(entry, list):
            yield from _c3_rows(entry, place)
        elif "candidates" in entry:
            yield from _chid_rows(entry, place, answers)
        elif not file.stem.endswith("_answer"):
            yield from _race_rows(entry, place)


# === Readers of an entry. They yield context, question, choices, label and id. ===


def _c3_rows(document, place):
    if len(document) < 2 or not isinstance(document[1], list):
        raise AlbertError(
            f"{place} should be a list of a document, its questions and an id. "
            f"Found: {str(document)[:80]!r}"
        )
    turns, questions, *ids = document
    context = "\n".join(_strings(turns, f"The document of {place}"))
    for question in questions:
        text = field(question, "question", str, f"A question of {place}")
        name = f"{text!r} of {place}"
        choices = _strings(question.get("choice"), f"The question {name}")
        label = _label(question.get("answer"), choices, name)
        yield context, text, choices, label, next(iter(ids), None)


def _chid_rows(record, place, answers):
    candidates = _strings(record["candidates"], place)
    for text in _strings(record.get("content"), place):
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
            yield "".join(shown), "", candidates, label, parts[blank].strip("#")


def _race_rows(record, place):
    article = field(record, "article", str, place)
    questions = _strings(record.get("questions"), place)
    options = field(record, "options", list, place)
    letters = record.get("answers") or [None] * len(questions)
    if not len(questions) == len(options) == len(letters):
        raise AlbertError(
            f"{place} has {len(questions)} questions, {len(options)} lists of options "
            f"and {len(letters)} answers. Expected the same number of each."
        )
    for question, choices, letter in zip(questions, options, letters, strict=True):
        allowed = string.ascii_uppercase[: len(_strings(choices, place))]
        label = _label(letter, list(allowed), place)
        yield article, question, choices, label, record.get("id")


def _label(answer, answers, place):
    if answer is not None and answer not in answers:
        raise AlbertError(
            f"The answer of {place} should be one of {answers}. Found: {answer!r}"
        )
    return None if answer is None else answers.index(answer)


def _strings(values, place):
    is_list = isinstance(values, list) and values
    if not is_list or not all(isinstance(value, str) for value in values):
        raise AlbertError(
            f"{place} should have a list of one or more strings. Found: "
            f"{str(values)[:80]!r}"
        )
    return values
