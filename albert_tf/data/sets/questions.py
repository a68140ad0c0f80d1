"""Read questions about texts with their answers: SQuAD, CMRC 2018, DRCD."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

from albert_tf.data.files.json_values import field, read_json
from albert_tf.data.labels.text_spans import find_answer
from albert_tf_lite.errors import AlbertError

# The start of an answer in its context, `None` if it is not there, and its text.
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
        ids: list, the `id` of each question, `None` if it has none.
    """

    questions: list[str]
    contexts: list[str]
    answers: list[list[Answer]]
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
        kept = [i for i, answers in enumerate(self.answers) if _can_be_learned(answers)]
        return SpanQuestions(
            questions=[self.questions[i] for i in kept],
            contexts=[self.contexts[i] for i in kept],
            answers=[self.answers[i] for i in kept],
            moved=self.moved,
            absent=self.absent,
            skipped=len(self) - len(kept),
            ids=[self.ids[i] for i in kept],
        )


def _can_be_learned(answers: list[Answer]) -> bool:
    """Return whether there is no answer, or one that the context contains."""
    return not answers or any(start is not None for start, _ in answers)


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
    questions: list[str] = []
    contexts: list[str] = []
    answers: list[list[Answer]] = []
    ids: list = []
    moved = absent = 0
    for context, place, entry in _squad_questions(path, encoding):
        given = _squad_answers(entry, place) if has_answers else []
        located = [_locate(context, answer) for answer in given if answer.text]
        absent += sum(answer.is_absent for answer in located)
        moved += sum(answer.is_moved for answer in located)
        questions.append(field(entry, ("question", "query_text"), str, place))
        contexts.append(context)
        answers.append([(answer.start, answer.text) for answer in located])
        ids.append(entry.get("id", entry.get("query_id")))
    if not questions:
        raise AlbertError(f"{path} has no questions.")
    return SpanQuestions(
        questions, contexts, answers, moved=moved, absent=absent, ids=ids
    )


class _GivenAnswer(NamedTuple):
    """The text of an answer, and its start, `None` if it is not given."""

    text: str
    start: int | None


class _LocatedAnswer(NamedTuple):
    """An answer at the place where the context has it, `None` if it does not."""

    text: str
    start: int | None
    is_absent: bool
    is_moved: bool


def _locate(context: str, answer: _GivenAnswer) -> _LocatedAnswer:
    start = find_answer(context, answer.start, answer.text)
    is_moved = answer.start is not None and start not in (None, answer.start)
    return _LocatedAnswer(answer.text, start, start is None, is_moved)


class _Question(NamedTuple):
    """An entry of a question, its context, and its place in the file."""

    context: str
    place: str
    entry: Any


def _squad_questions(
    path: str | os.PathLike, encoding: str | None
) -> Iterator[_Question]:
    for place, content in read_json(path, encoding):
        for paragraph_place, paragraph in _paragraphs(content, place):
            names = ("context", "context_text")
            context = field(paragraph, names, str, paragraph_place)
            # Without a list, a paragraph is its own question.
            entries = [paragraph]
            if "question" not in paragraph:
                entries = field(paragraph, "qas", list, paragraph_place)
            for entry in entries:
                yield _Question(context, paragraph_place, entry)


def _paragraphs(content: Any, place: str) -> Iterator[tuple[str, Any]]:
    """Yield the place and the dict of each paragraph, at any depth."""
    for name in ("data", "paragraphs"):
        if isinstance(content, dict) and name in content:
            for i, entry in enumerate(field(content, name, list, place)):
                yield from _paragraphs(entry, f"{name}[{i}] of {place}")
            return
    yield place, content


def _squad_answers(entry: Any, place: str) -> Iterator[_GivenAnswer]:
    if isinstance(entry, dict) and entry.get("is_impossible"):
        return
    answers = field(entry, "answers", list | dict, place)
    if isinstance(answers, dict):
        # As the data sets of Hugging Face have them.
        texts = field(answers, "text", list, place)
        starts = field(answers, "answer_start", list, place)
        are_answers = len(texts) == len(starts) and all(
            isinstance(text, str) and isinstance(start, int)
            for text, start in zip(texts, starts, strict=False)
        )
        if not are_answers:
            raise AlbertError(
                f"{place} should have as many texts of answers as numbers of their "
                f"starts. Found: {str(answers)[:80]!r}"
            )
        yield from map(_GivenAnswer, texts, starts)
        return
    for answer in answers:
        if isinstance(answer, str):
            yield _GivenAnswer(answer, None)
            continue
        answer_place = f"an answer in {place}"
        text = field(answer, "text", str, answer_place)
        yield _GivenAnswer(text, field(answer, "answer_start", int, answer_place))
