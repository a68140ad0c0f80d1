"""Read questions about texts: SQuAD, CMRC 2018, DRCD; multiple choice as C3, RACE."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import string

from albert_tf.data.reading import field, parse_json, read_json_records, read_text
from albert_tf_lite.errors import AlbertError

# The start of an answer in its context, in characters (`None` if the context does not
# contain it), and its text.
Answer = tuple[int | None, str]


@dataclasses.dataclass(frozen=True)
class SpanQuestions:
    """Questions, the contexts that answer them, and the answers.

    Attributes:
        questions: list of strings.
        contexts: list of strings, as many.
        answers: list of lists of `(start, text)`, the correct answers; an empty list
            if the context does not answer. `context[start:start + len(text)] == text`,
            or `start` is `None` if the context does not contain the text. Such an
            answer counts in evaluation but cannot be learned.
        ids: list of strings.
        moved: int. Answers whose `answer_start` was wrong and has been corrected.
        absent: int. Answers that their context does not contain.
        skipped: int. Questions that `for_training` left out.
    """

    questions: list[str]
    contexts: list[str]
    answers: list[list[Answer]]
    ids: list[str]
    moved: int = 0
    absent: int = 0
    skipped: int = 0

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
        return dataclasses.replace(
            self,
            questions=[self.questions[i] for i in kept],
            contexts=[self.contexts[i] for i in kept],
            answers=[self.answers[i] for i in kept],
            ids=[self.ids[i] for i in kept],
            skipped=len(self) - len(kept),
        )


def find_answer(context: str, start: int | None, text: str) -> int | None:
    """Find the occurrence of a text that is nearest to a given start.

    Args:
        context: string.
        start: optional int, in characters.
        text: string.

    Returns:
        The start of the occurrence, or `None` if the context does not contain the text.

    Example:

    >>> find_answer("黄河长5464公里", 5, "5464公里")
    3
    """
    start = start or 0
    before = context.rfind(text, 0, max(start, 0) + len(text))
    after = context.find(text, max(start, 0))
    places = [place for place in (before, after) if place >= 0]
    return min(places, key=lambda place: abs(place - start), default=None)


def read_squad(path: str | os.PathLike) -> SpanQuestions:
    """Read a file in the form of SQuAD: v1.1, v2.0, CMRC 2018, DRCD.

    A wrong `answer_start` is replaced by the nearest occurrence of the text.

    Args:
        path: path of a `.json` file in UTF-8.

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
    rows: list[tuple] = []
    moved = absent = 0
    for context, place, question in _squad_questions(path):
        answers = []
        impossible = isinstance(question, dict) and (
            question.get("is_impossible") is True
        )
        for answer in [] if impossible else field(question, "answers", list, place):
            text = field(answer, "text", str, f"an answer in {place}")
            given = field(answer, "answer_start", int, f"an answer in {place}")
            if not text:
                continue
            start = find_answer(context, given, text)
            absent += start is None
            moved += start not in (None, given)
            answers.append((start, text))
        text = field(question, "question", str, place)
        rows.append((text, context, answers, str(question.get("id", len(rows)))))
    if not rows:
        raise AlbertError(f"{path} has no questions.")
    questions, contexts, answer_lists, ids = map(list, zip(*rows, strict=True))
    return SpanQuestions(questions, contexts, answer_lists, ids, moved, absent)


def _squad_questions(path):
    """Yield the context, the place and the entry of each question."""
    content = parse_json(read_text(path), str(path))
    for a, article in enumerate(field(content, "data", list, str(path))):
        place = f"data[{a}] of {path}"
        for p, paragraph in enumerate(field(article, "paragraphs", list, place)):
            place = f"data[{a}].paragraphs[{p}] of {path}"
            context = field(paragraph, "context", str, place)
            for q, question in enumerate(field(paragraph, "qas", list, place)):
                yield context, f"data[{a}].paragraphs[{p}].qas[{q}] of {path}", question


# === Multiple choice ===


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
    rows = [row for file in files for row in _choice_rows(file)]
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
    known = None if unlabelled else labels
    return ChoiceQuestions(contexts, questions, choices, known, ids)


def _choice_rows(path):
    """Yield context, question, choices, the position of the answer, and an id."""
    if path.suffix == ".jsonl":
        for place, record in read_json_records(path):
            yield from _race_rows(record, place)
        return
    content = parse_json(read_text(path), str(path))
    if isinstance(content, list):
        for number, document in enumerate(content):
            yield from _c3_rows(document, number, f"[{number}] of {path}")
    else:
        yield from _race_rows(content, str(path))


def _c3_rows(document, number, place):
    if not isinstance(document, list) or len(document) < 2:
        raise AlbertError(
            f"{place} should be a list of a document, its questions and an id. "
            f"Found: {str(document)[:80]!r}"
        )
    turns, questions, *names = document
    if not isinstance(questions, list):
        raise AlbertError(
            f"The questions of {place} should be a list. Found: {str(questions)[:80]!r}"
        )
    context = "\n".join(_strings(turns, f"The document of {place}"))
    for q, question in enumerate(questions):
        name = f"question {q} of {place}"
        text = field(question, "question", str, name)
        choices = _strings(field(question, "choice", list, name), name)
        label = _label(question.get("answer"), choices, name)
        yield context, text, choices, label, f"{names[0] if names else number}-{q}"


def _race_rows(record, place):
    article = field(record, "article", str, place)
    questions = _strings(field(record, "questions", list, place), place)
    options = field(record, "options", list, place)
    letters = record.get("answers") or [None] * len(questions)
    if not len(questions) == len(options) == len(letters):
        raise AlbertError(
            f"{place} has {len(questions)} questions, {len(options)} lists of options "
            f"and {len(letters)} answers. Expected the same number of each."
        )
    rows = enumerate(zip(questions, options, letters, strict=True))
    for q, (question, choices, letter) in rows:
        name = f"question {q} of {place}"
        allowed = string.ascii_uppercase[: len(_strings(choices, name))]
        label = _label(letter, list(allowed), name)
        yield article, question, choices, label, f"{record.get('id', place)}-{q}"


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
