"""Reading questions on texts, in the form of SQuAD, CMRC 2018 and DRCD."""

from __future__ import annotations

import dataclasses
import os

from albert_tf.data.json_files import field, read_json
from albert_tf_lite.errors import AlbertError

# Where an answer starts in its context, in characters (`None` if it is not in it),
# and its text.
Answer = tuple[int | None, str]


@dataclasses.dataclass(frozen=True)
class SpanQuestions:
    """Questions, the contexts that answer them, and the answers.

    Attributes:
        questions: list of strings.
        contexts: list of strings, as many.
        answers: list of lists of `(start, text)`: all that are right, none where
            the context does not answer. `context[start:start + len(text)] == text`,
            or `start` is `None` where the context does not hold the text: such
            answers count in evaluation, and none can be learned.
        ids: list of strings.
        moved: int. Answers whose `answer_start` was wrong and that were found
            elsewhere in the context.
        absent: int. Answers that their context does not hold.
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
        """Questions and contexts, as `fit` and `predict` take them."""
        return self.questions, self.contexts

    @property
    def texts(self) -> list[list[str]]:
        """The texts of the answers, as the scores take them."""
        return [[text for _, text in answers] for answers in self.answers]

    def for_training(self) -> SpanQuestions:
        """Those that can be learned: an answer is in the context, or there is none.

        What is left out is counted in `skipped`.
        """
        kept = [
            i
            for i, answers in enumerate(self.answers)
            if not answers or any(start is not None for start, _ in answers)
        ]
        columns = (self.questions, self.contexts, self.answers, self.ids)
        return SpanQuestions(
            *([column[i] for i in kept] for column in columns),
            moved=self.moved,
            absent=self.absent,
            skipped=len(self) - len(kept),
        )


def find_answer(context: str, start: int | None, text: str) -> int | None:
    """Where a text is in its context: at `start`, or the nearest place to it.

    Args:
        context: string.
        start: optional int, in characters.
        text: string.

    Returns:
        An int, or `None` if the context does not hold the text.
    """
    start = 0 if start is None else start
    if start >= 0 and context.startswith(text, start):
        return start
    before = context.rfind(text, 0, max(start, 0) + len(text))
    after = context.find(text, max(start, 0))
    places = [place for place in (before, after) if place >= 0]
    return min(places, key=lambda place: abs(place - start), default=None)


def read_squad(path: str | os.PathLike) -> SpanQuestions:
    """Read a file of the SQuAD form: v1.1, v2.0, CMRC 2018, DRCD.

    An answer whose `answer_start` does not point at its text is looked for in the
    context, and the nearest place is taken.

    Args:
        path: string, a `.json` file in UTF-8.

    Returns:
        A `SpanQuestions`, which counts what was moved and what was not found.

    Raises:
        FileNotFoundError: if there is no such file.
        AlbertError: if it is no JSON, or an entry is not as SQuAD's, saying which.

    Example:
    ```python
    train = albert_tf.data.read_squad("cmrc2018_train.json").for_training()
    model.fit(train.x, train.answers)
    ```

    Reference:
        [Rajpurkar et al., 2018](https://arxiv.org/abs/1806.03822).
    """
    rows, counts = [], {"moved": 0, "absent": 0}
    for context, entry, question in _questions(path):
        answers = []
        for number, answer in enumerate(_answers(question, entry)):
            name = f"answers[{number}] of {entry}"
            text = field(answer, "text", str, name)
            given = field(answer, "answer_start", int, name)
            if not text:
                continue
            start = find_answer(context, given, text)
            counts["absent"] += start is None
            counts["moved"] += start not in (None, given)
            answers.append((start, text))
        text = field(question, "question", str, entry)
        rows.append((text, context, answers, str(question.get("id", len(rows)))))
    if not rows:
        raise AlbertError(f"{path} has no questions.")
    return SpanQuestions(*map(list, zip(*rows, strict=True)), **counts)


def _questions(path):
    """The context, the name of the entry and the entry of each question."""
    articles = field(read_json(path), "data", list, str(path))
    for a, article in enumerate(articles):
        place = f"data[{a}]"
        paragraphs = field(article, "paragraphs", list, f"{place} of {path}")
        for p, paragraph in enumerate(paragraphs):
            place = f"data[{a}].paragraphs[{p}]"
            context = field(paragraph, "context", str, f"{place} of {path}")
            questions = field(paragraph, "qas", list, f"{place} of {path}")
            for q, question in enumerate(questions):
                yield context, f"{place}.qas[{q}] of {path}", question


def _answers(question, entry):
    if isinstance(question, dict) and question.get("is_impossible") is True:
        return []
    return field(question, "answers", list, entry)
