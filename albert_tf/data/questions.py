"""Read questions about texts: SQuAD, CMRC 2018, DRCD; multiple choice as C3, RACE."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import string

from albert_tf.data.reading import field, read_json
from albert_tf_lite.errors import AlbertError

# The start of an answer in its context, in characters (`None` if the context does not
# contain it), and its text.
Answer = tuple[int | None, str]


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
    """

    questions: list[str]
    contexts: list[str]
    answers: list[list[Answer]]
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
            skipped=len(self) - len(kept),
        )


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
    questions, contexts, answer_lists = [], [], []
    moved = absent = 0
    for context, place, question in _squad_questions(path):
        answers = []
        impossible = isinstance(question, dict) and question.get("is_impossible")
        for answer in [] if impossible else field(question, "answers", list, place):
            text = field(answer, "text", str, f"an answer in {place}")
            given = field(answer, "answer_start", int, f"an answer in {place}")
            if not text:
                continue
            start = find_answer(context, given, text)
            absent += start is None
            moved += start not in (None, given)
            answers.append((start, text))
        questions.append(field(question, "question", str, place))
        contexts.append(context)
        answer_lists.append(answers)
    if not questions:
        raise AlbertError(f"{path} has no questions.")
    return SpanQuestions(questions, contexts, answer_lists, moved, absent)


def _squad_questions(path):
    """Yield the context, the place and the entry of each question."""
    for place, content in read_json(path):
        for i, article in enumerate(field(content, "data", list, place)):
            part = f"data[{i}] of {place}"
            for j, paragraph in enumerate(field(article, "paragraphs", list, part)):
                part = f"data[{i}].paragraphs[{j}] of {place}"
                context = field(paragraph, "context", str, part)
                for question in field(paragraph, "qas", list, part):
                    yield context, part, question


# === Multiple choice ===


@dataclasses.dataclass(frozen=True)
class ChoiceQuestions:
    """Questions about texts, with several choices each.

    Attributes:
        contexts, questions: lists of strings.
        choices: list of lists of strings, possibly of different lengths.
        labels: list of ints, the position of the correct choice; `None` if an answer
            is missing.
    """

    contexts: list[str]
    questions: list[str]
    choices: list[list[str]]
    labels: list[int] | None

    def __len__(self) -> int:
        return len(self.questions)

    @property
    def x(self) -> tuple[list[str], list[str], list[list[str]]]:
        """Return the columns for `fit` and `predict`."""
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
        AlbertError: if an entry has another form.

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
    rows = [
        row
        for file in files
        for place, entry in read_json(file)
        for row in (_c3_rows if isinstance(entry, list) else _race_rows)(entry, place)
    ]
    if not rows:
        raise AlbertError(f"{path} has no questions.")
    contexts, questions, choices, labels = map(list, zip(*rows, strict=True))
    return ChoiceQuestions(
        contexts, questions, choices, None if None in labels else labels
    )


# === Readers of an entry. They yield context, question, choices and the label. ===


def _c3_rows(document, place):
    if len(document) < 2 or not isinstance(document[1], list):
        raise AlbertError(
            f"{place} should be a list of a document, its questions and an id. "
            f"Found: {str(document)[:80]!r}"
        )
    turns, questions, *_ = document
    context = "\n".join(_strings(turns, f"The document of {place}"))
    for question in questions:
        text = field(question, "question", str, f"A question of {place}")
        name = f"{text!r} of {place}"
        choices = _strings(question.get("choice"), f"The question {name}")
        yield context, text, choices, _label(question.get("answer"), choices, name)


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
        yield article, question, choices, _label(letter, list(allowed), place)


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
