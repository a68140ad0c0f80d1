"""Read questions about texts, in the form of SQuAD, CMRC 2018 and DRCD."""

from __future__ import annotations

import dataclasses
import os

from albert_tf.data.reading import field, read_json
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
        columns = (self.questions, self.contexts, self.answers, self.ids)
        return SpanQuestions(
            *([column[i] for i in kept] for column in columns),
            moved=self.moved,
            absent=self.absent,
            skipped=len(self) - len(kept),
        )


def find_answer(context: str, start: int | None, text: str) -> int | None:
    """Find the occurrence of a text in its context that is nearest to `start`.

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
    start = 0 if start is None else start
    if start >= 0 and context.startswith(text, start):
        return start
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
    """Yield the context, the place and the entry of each question."""
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
