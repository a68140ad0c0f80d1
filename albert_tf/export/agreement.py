"""Comparison of the answers of an int8 file with those of float32."""

import tempfile
import warnings
from pathlib import Path
from typing import Any

from albert_tf.trainers.examples import Examples
from albert_tf_lite import OnnxModel
from albert_tf_lite.errors import AlbertError

# The tasks whose answers are numbers, of which none equals that of float32.
_NUMBERS = ("regression", "text-embedding")
# The parts of an answer that are no decision.
_SCORES = {"score"}


def is_comparable(task_name: str) -> bool:
    """Return whether the answers of a task can be equal to those of float32."""
    return task_name not in _NUMBERS


def check_comparable(task_name: str, precision: str) -> None:
    """Raise if there is nothing to compare."""
    if precision != "int8" or not is_comparable(task_name):
        raise AlbertError(
            "`compare` is for int8 files of tasks whose answers are labels, spans or "
            f"choices. Received a model for {task_name} and precision {precision!r}. "
            "Leave out `compare`."
        )


def agreement(plain: bytes, quantized: bytes, examples: Examples) -> dict[str, Any]:
    """Compare the answers of two ONNX files, given by their contents.

    Scores may differ. All labels, entities or the whole span of an answer must be
    equal.

    Returns:
        A dict of `answers`, the share of texts with equal answers, and `examples`,
        the number of texts.
    """
    expected, given = _decisions(plain, examples), _decisions(quantized, examples)
    if not expected:
        raise AlbertError("`compare` has no texts. Pass texts, or leave it out.")
    equal = [a == b for a, b in zip(expected, given, strict=True)]
    return {"answers": sum(equal) / len(equal), "examples": len(equal)}


def _decisions(content: bytes, examples: Examples) -> list[set[tuple]]:
    """Return the answers of a file without their scores, as sets."""
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        warnings.catch_warnings(),
    ):
        # About truncated texts and unknown tokens, as in the training.
        warnings.simplefilter("ignore")
        path = Path(folder, "model.onnx")
        path.write_bytes(content)
        answers = OnnxModel(path).answers(examples.x)
    decisions = []
    for answer in answers:
        choices = answer if isinstance(answer, list) else [answer]
        decisions.append({_without_scores(choice) for choice in choices})
    return decisions


def _without_scores(choice: dict[str, Any]) -> tuple:
    """Return a class, a span or an entity as a tuple of names and values."""
    names = sorted(choice.keys() - _SCORES)
    return tuple((name, choice[name]) for name in names)
