"""Answers on a terminal and as the cells of a table."""

import itertools
import re
from collections.abc import Callable, Container
from typing import TYPE_CHECKING, Any, cast

from rich.text import Text

from albert_tf_cli.shared.colours import coloured_runs, strongest_of
from albert_tf_cli.shared.console import console, escaped, print_json, print_line
from albert_tf_cli.tasks.task import Answer, Inputs, Task, as_columns

if TYPE_CHECKING:
    from albert_tf.tools.attributions import Attributions


def explained(
    answer: Callable[[Inputs], list[Answer]],
    explain: Callable[[Any], "Attributions"],
    x: Inputs,
) -> list[dict[str, Any]]:
    """Return the answers for examples, each with its explanation."""
    answers = []
    examples = zip(*as_columns(x), strict=True)
    for one, parts in zip(answer(x), examples, strict=True):
        values = explain(parts if len(parts) > 1 else parts[0])
        explanation = {
            "label": values.label,
            "probability": values.output,
            "baseline": values.baseline,
            "characters": [of_text.tolist() for of_text in values.values],
        }
        answers.append({"answer": one, "explanation": explanation})
    return answers


def answer_cells(
    task: Task, answer: Answer, is_explained: bool
) -> dict[str, str | float]:
    """Return the columns of an answer, which `explained` may have given."""
    if is_explained:
        answer = cast(dict, answer)["answer"]
    return task.columns(answer)


def free_name(name: str, columns: Container[str]) -> str:
    """Return a name for a column of answers that no column of the input has."""
    numbered = (f"predicted_{name}_{i}" for i in itertools.count(2))
    names = itertools.chain([name, f"predicted_{name}"], numbered)
    return next(free for free in names if free not in columns)


def print_answer(
    task: Task, parts: tuple, answer: Answer, as_json: bool, is_explained: bool
) -> None:
    """Print the answer for an example and its texts, separated by tabs, or JSON."""
    if as_json:
        print_json(answer)
        return
    values = answer_cells(task, answer, is_explained).values()
    cells = [f"{x:.4f}" if isinstance(x, float) else str(x) for x in values]
    if is_explained:
        # rich would turn the tabs into spaces.
        print(escaped("\t".join([*cells, ""])), end="", flush=True)
        characters = cast(dict, answer)["explanation"]["characters"]
        console.print(_coloured(parts, characters), soft_wrap=True)
    else:
        print_line("\t".join(cells + _lines(parts)))


def _lines(parts):
    """Return the texts of an example, each as a line without tabs."""
    *texts, last = parts
    texts += [last] if isinstance(last, str) else last
    if len(texts) > 1:
        texts = [text.replace("\t", " ") for text in texts]
    return [re.sub("[\r\n]", " ", text) for text in texts]


def _coloured(texts, attributions):
    """Return texts for a terminal, coloured on a common scale."""
    strongest = strongest_of(attributions)
    coloured = []
    for text, values in zip(texts, attributions, strict=True):
        line = Text()
        for piece, colour in coloured_runs(text, values, strongest):
            line.append(escaped(piece), colour and f"black on {colour}")
        coloured.append(line)
    return Text("\t").join(coloured)
