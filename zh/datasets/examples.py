"""What the records of a data set are examples of."""

from __future__ import annotations

from typing import Any

from zh.datasets.records import Example, Rejected, checked, field, placed, strings


def label_of(record: dict, row: Any) -> str | None:
    """The label of a record, `None` if it has none."""
    value = record.get(row.label)
    if value is None:
        return None
    label = str(value).strip()
    if not label or (row.labels and label not in row.labels):
        raise Rejected(f"the label {label!r}")
    return label


def labelled_texts(record: dict, row: Any) -> Example:
    """A text or a pair of texts."""
    x = tuple(field(record, name) for name in row.fields)
    return Example(x, label_of(record, row))


def abstract_and_keywords(record: dict, row: Any) -> Example:
    """CSL: an abstract, and keywords with spaces between them."""
    text, keywords = row.fields
    keywords = strings(field(record, keywords, list), "a keyword")
    return Example((field(record, text), " ".join(keywords)), label_of(record, row))


def marked_pronoun(record: dict, row: Any) -> Example:
    """CLUEWSC: a text with _the noun_ and [the pronoun] marked."""
    text, target = field(record, "text"), field(record, "target", dict)
    spans, moved = [], 0
    for number, marks in (("1", "__"), ("2", "[]")):
        part = field(target, f"span{number}_text")
        start, was_moved = placed(
            text, target.get(f"span{number}_index"), part, "a span"
        )
        spans.append((start, start + len(part), marks))
        moved += was_moved
    first, second = sorted(spans)
    if first[1] > second[0]:
        raise Rejected("the two spans overlap")
    # The later one first, so that the places of the other still hold.
    for start, end, (before, after) in (second, first):
        text = text[:start] + before + text[start:end] + after + text[end:]
    return Example((text,), label_of(record, row), moved)


def choice(turns: Any, question: Any) -> Example:
    """C3: a document, a question on it, and choices."""
    context = "\n".join(strings(turns, "the document"))
    text, choices = field(question, "question"), field(question, "choice", list)
    choices = strings(choices, "a choice")
    answer = question.get("answer")
    if answer is not None and answer not in choices:
        raise Rejected("the answer is none of the choices")
    label = None if answer is None else choices.index(answer)
    return Example((context, text, choices), label)


# For the idiom that is asked for, and for others of the same text.
BLANK, OTHER_BLANK = "____", "……"


def idiom(parts: list[str], blank: int, candidates: Any, label: Any) -> Example:
    """CHID: a text with a blank, and idioms to choose from.

    Args:
        parts: the text, cut at its blanks, which are in between.
        blank: the position in `parts` of the one that is asked for.
        candidates: list of strings.
        label: the position of the right one; `None` if it is not known.
    """
    candidates = strings(candidates, "a candidate")
    if label is not None and checked(label, int, "the answer") not in range(
        len(candidates)
    ):
        raise Rejected("the answer is none of the candidates")
    shown = list(parts)
    shown[1::2] = [OTHER_BLANK] * len(parts[1::2])
    shown[blank] = BLANK
    return Example(("".join(shown), "", candidates), label)


def question(paragraph: Any, entry: Any) -> Example:
    """CMRC and DRCD: a question, its context, and the answers in that."""
    context = field(paragraph, "context|context_text")
    text = field(entry, "question|query_text")
    if entry.get("answers") is None:
        return Example((text, context), None)
    found, moved = [], 0
    for answer in checked(entry["answers"], list, "the field 'answers'"):
        # In the form of CMRC itself they are strings.
        answer = {"text": answer} if isinstance(answer, str) else answer
        part = field(answer, "text")
        try:
            start, was_moved = placed(context, answer.get("answer_start"), part, "it")
        except Rejected:
            continue
        found.append((start, part))
        moved += was_moved
    if not found:
        raise Rejected("no answer is in the context")
    return Example((text, context), found, moved)
