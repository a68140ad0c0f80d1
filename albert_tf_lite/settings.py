"""Check the settings in an exported file, which a stranger may have written."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from albert_tf_lite.answers import ACTIVATIONS, ANSWERS
from albert_tf_lite.errors import AlbertError

_LARGEST = 2**31 - 1


class _Field(NamedTuple):
    """A field: what its value is, in words and as a function."""

    expected: str
    is_valid: Callable[[Any], bool]


def _integer(least: int) -> _Field:
    return _Field(
        f"an integer from {least}", lambda x: type(x) is int and least <= x <= _LARGEST
    )


def _is_number(value: object) -> bool:
    return type(value) in (int, float) and math.isfinite(value)  # type: ignore[arg-type]


def _list_of(kind: str, is_valid: Callable[[Any], bool]) -> _Field:
    return _Field(
        f"a list of {kind}",
        lambda x: isinstance(x, list) and bool(x) and all(map(is_valid, x)),
    )


def _optional(field: _Field) -> _Field:
    return _Field(
        f"{field.expected}, or null", lambda x: x is None or field.is_valid(x)
    )


_BOOL = _Field("true or false", lambda x: isinstance(x, bool))
_STRING = _Field("a string", lambda x: isinstance(x, str))
_NUMBER = _Field("a number", _is_number)
_STRINGS = _list_of("strings", _STRING.is_valid)
_FIELDS = {
    "task": _Field(
        f"one of {', '.join(ANSWERS)}", lambda x: isinstance(x, str) and x in ANSWERS
    ),
    "output": _STRING,
    "pairs": _BOOL,
    "units": _integer(1),
    "sequence_length": _integer(5),
    "vocabulary": _Field(
        "a list of tokens, or a model of SentencePiece",
        lambda x: _STRING.is_valid(x) or _STRINGS.is_valid(x),
    ),
    "lowercase": _BOOL,
    "strip_accents": _optional(_BOOL),
    "tokenize_chinese_chars": _BOOL,
    "max_input_chars_per_word": _integer(1),
    "added_tokens": _Field(
        "a dict of tokens",
        lambda x: isinstance(x, dict) and all(map(_BOOL.is_valid, x.values())),
    ),
    "labels": _list_of("names", lambda x: type(x) in (str, int)),
    "activation": _Field(
        f"one of {', '.join(map(str, ACTIVATIONS))}",
        lambda x: x is None or (isinstance(x, str) and x in ACTIVATIONS),
    ),
    "temperature": _Field("a number above 0", lambda x: _is_number(x) and x > 0),
    "thresholds": _list_of("numbers", _is_number),
    "tags": _STRINGS,
    "stride": _optional(_integer(1)),
    "max_question_length": _optional(_integer(1)),
    "max_answer_length": _integer(1),
    "null_threshold": _optional(_NUMBER),
    "lengths": _list_of("integers from 5", _integer(5).is_valid),
    "batch_tokens": _integer(0),
    "sha256": _STRING,
    "preset": _STRING,
    "agreement": _Field(
        "a dict of the numbers answers and examples",
        lambda x: (
            isinstance(x, dict)
            and all(_is_number(x.get(name)) for name in ("answers", "examples"))
        ),
    ),
    "weights": _Field(
        "a dict of the strings file and sha256",
        lambda x: (
            isinstance(x, dict)
            and all(isinstance(x.get(name), str) for name in ("file", "sha256"))
        ),
    ),
}
# Files of earlier versions have no other fields.
_REQUIRED = ("task", "output", "pairs", "units", "sequence_length", "vocabulary")
_REQUIRED_BY_TASK = {
    "text-classification": ("labels", "activation"),
    "multi-label": ("labels", "activation", "thresholds"),
    "token-classification": ("tags", "stride"),
    "question-answering": (
        *("stride", "max_question_length"),
        *("max_answer_length", "null_threshold"),
    ),
}
# Fields with a value for each output of the network.
_PER_UNIT = {
    "text-classification": ("labels",),
    "multi-label": ("labels", "thresholds"),
    "token-classification": ("tags",),
}


def check_settings(settings: Any) -> dict[str, Any]:
    """Return the settings of an exported file; raise if a field is missing or wrong.

    Fields of later versions are kept.

    Raises:
        AlbertError: that names the field. The caller names the file.
    """
    if not isinstance(settings, dict):
        raise AlbertError(f"Expected a JSON object. Found: {type(settings).__name__}")
    for name, field in _FIELDS.items():
        if name in settings and not field.is_valid(settings[name]):
            raise AlbertError(
                f"{name} is {settings[name]!r:.80}. Expected {field.expected}."
            )
    missing = {*_REQUIRED, *_REQUIRED_BY_TASK.get(settings.get("task", ""), ())}
    if missing := missing - settings.keys():
        raise AlbertError(f"{', '.join(sorted(missing))} is missing.")
    for name in _PER_UNIT.get(settings["task"], ()):
        if len(settings[name]) != settings["units"]:
            raise AlbertError(
                f"{name} has {len(settings[name])} values for "
                f"{settings['units']} outputs of the network."
            )
    return settings
