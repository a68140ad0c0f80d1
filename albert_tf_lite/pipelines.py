"""Functions from strings to dicts of plain Python."""

from __future__ import annotations

import difflib
import os
import warnings
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol

import numpy as np

from albert_tf_lite.answers import ABSTAINING, check_abstain, withhold
from albert_tf_lite.errors import AlbertError, listed
from albert_tf_lite.inputs import as_list
from albert_tf_lite.network_files import open_exported

# The field whose value is a list of strings, not a string.
_CHOICES = "choices"
_TEXT = (str, bytes)
# The tasks whose models have a probability for each class of a text.
_CLASSIFIERS = ("text-classification", "multi-label")
# The options of a call that concern the computation, not the form of the answers.
_COMPUTING = ("batch_size", "engine", "verbose")
# Arguments of models, which a pipeline does not take.
_OF_MODELS = ("vocabulary", "sequence_length")


class Answerer(Protocol):
    """A model that answers examples, each a string or several."""

    @property
    def name_of_task(self) -> str | None: ...

    @property
    def fields(self) -> tuple[str, ...]: ...

    @property
    def optional_fields(self) -> tuple[str, ...]: ...

    @property
    def answers(self) -> Callable[..., list]:
        """Return an answer for each example: a dict, or a list of dicts."""


class ClassProbabilities(NamedTuple):
    """Probabilities of texts.

    Attributes:
        probabilities: float32 array [texts, classes].
        classes: list of strings, the names of the classes.
    """

    probabilities: np.ndarray
    classes: list[str]


class Pipeline:
    """Function from strings to dicts of plain Python.

    Attributes:
        task: string, the name of the task.
        answerer: what answers, such as a `LiteRTModel` or `OnnxModel`.
        options: dict, the options of calls that pass none.
    """

    def __init__(self, answerer: Answerer, **options: Any):
        self.task = str(answerer.name_of_task)
        self.answerer: Any = answerer
        self.options = self._checked(options)

    def __call__(self, x: object = None, **options: Any) -> Any:
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
        columns, is_one = self._read_columns(parts if x is None else x)
        if columns is None:
            return []
        abstain = options.pop("abstain", None)
        answers = self._answer(columns, **options)
        if abstain is not None:
            answers = withhold(answers, abstain)
        return answers[0] if is_one else answers

    def probabilities(self, x: Any, **options: Any) -> ClassProbabilities:
        """Return the probabilities of all classes as an array.

        Those of one class per text sum to 1; those of a multi-label model are
        independent. The temperature of the model is applied.

        Args:
            x: an example or a list of examples.
            **options: options of this call, `batch_size`, and for a Keras model
                `engine` and `verbose`. By default those of the pipeline.

        Returns:
            `ClassProbabilities`: an array [texts, classes], with one row for a single
            example, and the names of the classes.

        Raises:
            AlbertError: if the task is not text or multi-label classification.

        Example:
        ```python
        probabilities, classes = classify.probabilities(["很好", "太差了"])
        probabilities[:, classes.index("好评")]
        ```
        """
        if self.task not in _CLASSIFIERS:
            raise AlbertError(
                f"`probabilities` is for {' and '.join(_CLASSIFIERS)}. This pipeline "
                f"is for {self.task}: call it for its answers."
            )
        if unused := sorted(set(options) - set(_COMPUTING)):
            raise AlbertError(
                f"`probabilities` has no option {', '.join(unused)}. It returns all "
                f"classes. Its options: {', '.join(_COMPUTING)}."
            )
        options = {**self.options, **self._checked(options)}
        options = {name: options[name] for name in _COMPUTING if name in options}
        classes = self.answerer.class_names
        columns, _ = self._read_columns(x)
        if columns is None:
            return ClassProbabilities(np.zeros((0, len(classes)), "float32"), classes)
        return ClassProbabilities(self._probabilities(columns, **options), classes)

    def __repr__(self) -> str:
        parts = [repr(self.task)]
        for name, value in {**self._description(), **self.options}.items():
            if value is not None:
                shown = listed(value) if isinstance(value, list) else repr(value)
                parts.append(f"{name}={shown}")
        return f"{type(self).__name__}({', '.join(parts)})"

    def _description(self) -> dict[str, Any]:
        """Return what `repr` shows of the model, by name."""
        model = self.answerer
        labels = model.settings.get("labels")
        return {"model": type(model).__name__, "path": model.path, "classes": labels}

    def _read_columns(self, x: Any) -> tuple[Any, bool]:
        """Return examples as a list per field, and whether `x` is one example.

        The list stands alone for a single field. It is `None` if there is no example.
        """
        fields, optional = self.answerer.fields, self.answerer.optional_fields
        examples, is_one = _read_examples(x, fields, len(fields) - len(optional))
        if not examples:
            return None, is_one
        if optional and self.takes_pairs and len(examples[0]) < 2:
            raise AlbertError(
                "This model takes pairs of texts: tuples, or dicts of "
                f"{' and '.join(fields)}. Received: {examples[0][0][:80]!r}"
            )
        if optional and not self.takes_pairs and isinstance(x, tuple):
            warnings.warn(
                "A tuple is a pair of texts, and gets one answer. For an answer to "
                "each text pass a list.",
                stacklevel=3,
            )
        columns = tuple(map(list, zip(*examples, strict=True)))
        return (columns[0] if len(columns) == 1 else columns), is_one

    @property
    def takes_pairs(self) -> bool:
        """Return whether an example must be a pair of texts."""
        return self.answerer.pairs

    def _option_names(self) -> list[str]:
        return self.answerer.option_names

    def _answer(self, columns: Any, **options: Any) -> list:
        return self.answerer.answers(columns, **options)

    def _probabilities(self, columns: Any, **options: Any) -> np.ndarray:
        return self.answerer.predict(columns, **options)["probabilities"]

    def _checked(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return options; raise if one is unknown."""
        known = self._option_names()
        if options.get("abstain") is not None:
            if self.task not in ABSTAINING:
                raise AlbertError(
                    f"`abstain` is for {', '.join(ABSTAINING)}, whose answers have a "
                    f"label and a score. Received it for {self.task}."
                )
            check_abstain(options["abstain"])
        if self.task in ABSTAINING:
            known = [*known, "abstain"]
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
        **options: of all calls: `batch_size`, the examples per call of the network;
            `top_k`, the number of answers of an example, for the tasks with a choice;
            `abstain`, the score below which a classifier or tagger does not answer;
            `null_threshold` and `max_answer_length` of question answering.

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


def _read_examples(
    given: Any, fields: tuple[str, ...], num_required: int
) -> tuple[list[tuple], bool]:
    """Return a list of tuples of equal length, and whether `given` is one example.

    `given` is one example: a string, a tuple or a dict of the fields; a list of
    examples; or a tuple or dict of lists, one per field, in which a string is the same
    for all examples.
    """
    is_one = isinstance(given, (*_TEXT, tuple, dict))
    if is_one:
        examples = [_parts(given, fields, num_required, "Example 0")]
        if columns := _columns(examples[0], fields):
            is_one = False
            examples = list(zip(*columns, strict=True))
    else:
        examples = []
        for number, one in enumerate(as_list(given, "x")):
            examples.append(_parts(one, fields, num_required, f"Example {number}"))
    for number, example in enumerate(examples):
        if len(example) != len(examples[0]):
            raise AlbertError(
                f"Example {number} has {len(example)} of the fields {list(fields)}, "
                f"the first has {len(examples[0])}. Pass the same fields for all."
            )
        examples[number] = tuple(
            _checked_part(name, value, number)
            for name, value in zip(fields, example, strict=False)
        )
    return examples, is_one


def _columns(example: tuple, fields: tuple[str, ...]) -> list[list] | None:
    """Return the parts of an example as columns of several, `None` if it is one.

    They are columns if a part that is a string in one example is a list. A string
    beside them is the same for all examples.
    """
    parts = []
    for value in example:
        is_list = isinstance(value, Iterable) and not isinstance(value, _TEXT)
        parts.append(as_list(value) if is_list else value)
    texts = [
        value for name, value in zip(fields, parts, strict=False) if name != _CHOICES
    ]
    if not any(isinstance(value, list) for value in texts):
        return None
    counts = {len(value) for value in parts if isinstance(value, list)}
    if len(counts) > 1:
        raise AlbertError(
            f"The lists of {', '.join(fields)} must have the same length. "
            f"Received the lengths {sorted(counts)}."
        )
    (count,) = counts
    return [value if isinstance(value, list) else [value] * count for value in parts]


def _checked_part(name: str, value: Any, position: int) -> str | list[str]:
    """Return a string, or the list of choices, of an example."""
    takes_list = name == _CHOICES
    is_text = isinstance(value, _TEXT)
    values = [value]
    if takes_list and isinstance(value, Iterable) and not is_text:
        values = as_list(value, name)
    texts = [x.decode("utf-8", "ignore") if isinstance(x, bytes) else x for x in values]
    are_strings = all(isinstance(text, str) for text in texts)
    if not texts or not are_strings or takes_list == is_text:
        expected = "a list of strings" if takes_list else "a string"
        raise AlbertError(
            f"`{name}` of example {position} must be {expected}. Received: "
            f"{str(value)[:80]!r}"
        )
    return list(map(str, texts)) if takes_list else str(texts[0])


def _parts(given: Any, fields: tuple[str, ...], num_required: int, name: str) -> tuple:
    """Return the fields of an example as a tuple."""
    parts: Any = given
    if isinstance(given, _TEXT):
        parts = (given,)
    elif isinstance(given, dict):
        names = [field for field in fields if given.get(field) is not None]
        # Only the last fields may be left out.
        are_first = names == list(fields[: len(names)])
        is_known = set(given) <= set(fields)
        parts = tuple(given[field] for field in names) if are_first and is_known else ()
    if isinstance(parts, (tuple, list)) and num_required <= len(parts) <= len(fields):
        return tuple(parts)
    string = "a string, or " if num_required == 1 else ""
    raise AlbertError(
        f"{name} must be {string}a dict or tuple of {', '.join(fields)}. Received: "
        f"{type(given).__name__} {str(given)[:80]!r}"
    )
