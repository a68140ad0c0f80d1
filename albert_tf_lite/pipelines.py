"""Functions from strings to dicts of plain Python."""

from __future__ import annotations

import difflib
import os
import warnings
from collections.abc import Iterable
from typing import Any

from albert_tf_lite.errors import AlbertError
from albert_tf_lite.inputs import as_list
from albert_tf_lite.opening import open_exported

# The field whose value is a list of strings, not a string.
_CHOICES = "choices"
_TEXT = (str, bytes)
# Arguments of models, which a pipeline does not take.
_OF_MODELS = ("vocabulary", "sequence_length")


class Pipeline:
    """Function from strings to dicts of plain Python.

    Attributes:
        task: string, the name of the task.
        answerer: the `LiteRTModel` or `OnnxModel`.
        options: dict, the options of calls that pass none.
    """

    def __init__(self, answerer: Any, **options: Any):
        self.task = answerer.name_of_task
        self.answerer = answerer
        self.options = self._checked(options)

    def __call__(self, x: Any = None, **options: Any) -> Any:
        """Return the answer for one example, or a list of answers.

        Args:
            x: an example or a list of examples. An example is a string, or a tuple or
                dict of the fields of the task: `text` and `text_pair`; `question` and
                `context`; `context`, `question` and `choices`.
            **options: the fields by name, instead of `x`; and options of this call.

        Raises:
            AlbertError: if an option is unknown, or an example has another form.
        """
        fields = self.answerer.fields
        parts = {name: options.pop(name) for name in fields if name in options}
        if (x is None) != bool(parts):
            raise AlbertError(f"Pass examples, or {', '.join(fields)} by name.")
        options = {**self.options, **self._checked(options)}
        optional = self.answerer.optional_fields
        given = parts if x is None else x
        examples, is_one = _read_examples(given, fields, len(fields) - len(optional))
        if not examples:
            return []
        if optional and self.takes_pairs and len(examples[0]) < 2:
            raise AlbertError(
                "This model takes pairs of texts: tuples, or dicts of "
                f"{' and '.join(fields)}. Received: {examples[0][0][:80]!r}"
            )
        if optional and not self.takes_pairs and isinstance(x, tuple):
            warnings.warn(
                "A tuple is a pair of texts, and gets one answer. For an answer to "
                "each text pass a list.",
                stacklevel=2,
            )
        columns = tuple(map(list, zip(*examples, strict=True)))
        answers = self._answer(columns[0] if len(columns) == 1 else columns, **options)
        return answers[0] if is_one else answers

    @property
    def takes_pairs(self) -> bool:
        """Return whether an example must be a pair of texts."""
        return self.answerer.pairs

    def _option_names(self) -> list[str]:
        return self.answerer.option_names

    def _answer(self, columns, **options):
        return self.answerer.answers(columns, **options)

    def _checked(self, options):
        known = self._option_names()
        if unknown := sorted(set(options) - set(known)):
            close = difflib.get_close_matches(unknown[0], [*known, *_OF_MODELS], 1)
            hint = f"Did you mean {close[0]}? " if close else ""
            raise AlbertError(
                f"The pipeline for {self.task} has no option {', '.join(unknown)}. "
                f"{hint}Its options: {', '.join(known)}. Pass arguments of the model, "
                "such as `vocabulary`, to from_checkpoint of its class."
            )
        return options


def pipeline(
    path: str | os.PathLike,
    threads: int | None = None,
    precision: str | None = None,
    **options: Any,
) -> Pipeline:
    """Return a function from texts to dicts, as `albert_tf.pipeline`.

    Args:
        path: an exported file, or a model directory that `albert-tf finetune` wrote.
        threads: optional int, threads of the network. By default one per core (LiteRT:
            at most four). Pass 1 if several processes or threads answer at a time.
        precision: optional `"float32"` or `"int8"`, the file of a directory. By
            default int8, if `albert-tf finetune` found its answers to be those of
            float32: see `answerer.settings["agreement"]`.
        **options: of all calls, as for `albert_tf.pipeline`.

    Raises:
        FileNotFoundError: if the path does not exist.
        ImportError: if onnxruntime, or for LiteRT ai-edge-litert, is not installed.
        AlbertError: if the path holds no exported model, or that of other weights.

    Example:
    ```python
    classify = albert_tf_lite.pipeline("my_model")
    classify("很好")  # {"label": "好评", "score": 0.98}
    ```
    """
    answerer = open_exported(path, threads, precision=precision)
    return Pipeline(answerer, **options)


def _read_examples(given, fields, num_required):
    """Return a list of tuples of equal length, and whether `given` is one example.

    `given` is one example: a string, a tuple or a dict of the fields; a list of
    examples; or a tuple or dict of lists, one per field, in which a string is the same
    for all examples.
    """
    is_one = isinstance(given, (*_TEXT, tuple, dict))
    examples = [
        _parts(one, fields, num_required, f"Example {i}")
        for i, one in enumerate([given] if is_one else as_list(given, "x"))
    ]
    if is_one:
        columns = [
            as_list(x) if isinstance(x, Iterable) and not isinstance(x, _TEXT) else x
            for x in examples[0]
        ]
        texts = {**dict(zip(fields, columns, strict=False)), _CHOICES: ""}.values()
        if any(isinstance(x, list) for x in texts):
            counts = {len(x) for x in columns if isinstance(x, list)}
            if len(counts) > 1:
                raise AlbertError(
                    f"The lists of {', '.join(fields)} must have the same length. "
                    f"Received the lengths {sorted(counts)}."
                )
            lists = [x if isinstance(x, list) else [x] * max(counts) for x in columns]
            examples, is_one = list(zip(*lists, strict=True)), False
    for i, example in enumerate(examples):
        if len(example) != len(examples[0]):
            raise AlbertError(
                f"Example {i} has {len(example)} of the fields {list(fields)}, the "
                f"first has {len(examples[0])}. Pass the same fields for all."
            )
        rows = zip(fields, example, strict=False)
        examples[i] = tuple(_checked_part(*row, i) for row in rows)
    return examples, is_one


def _checked_part(name, value, position):
    """Return a string, or the list of choices, of an example."""
    is_list = name == _CHOICES and not isinstance(value, _TEXT)
    values = [value]
    if is_list and isinstance(value, Iterable):
        values = as_list(value, name)
    texts = [x.decode("utf-8", "ignore") if isinstance(x, bytes) else x for x in values]
    is_right = is_list == (name == _CHOICES) and texts
    if not is_right or not all(isinstance(text, str) for text in texts):
        expected = "a list of strings" if name == _CHOICES else "a string"
        raise AlbertError(
            f"`{name}` of example {position} must be {expected}. Received: "
            f"{str(value)[:80]!r}"
        )
    return list(map(str, texts)) if is_list else str(texts[0])


def _parts(given, fields, num_required, name):
    """Return the fields of an example as a tuple."""
    parts = (given,) if isinstance(given, _TEXT) else given
    if isinstance(given, dict):
        found = [x for x in fields if given.get(x) is not None]
        is_whole = {*given} <= {*fields} and found == list(fields[: len(found)])
        parts = tuple(given[x] for x in found) if is_whole else ()
    is_list = isinstance(parts, (tuple, list))
    if not is_list or not num_required <= len(parts) <= len(fields):
        raise AlbertError(
            f"{name} must be {'a string, or ' * (num_required == 1)}a dict or tuple of "
            f"{', '.join(fields)}. Received: {type(given).__name__} {str(given)[:80]}"
        )
    return tuple(parts)
