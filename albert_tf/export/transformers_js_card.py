"""The README.md of a model for transformers.js, in English and Chinese."""

import json
import pathlib
import re
import string
import tomllib
from collections.abc import Callable
from typing import NamedTuple

from albert_tf.files import read_template, write_text
from albert_tf.model_card import MARK, example_input
from albert_tf.models.task import AlbertTask

# The releases that the tests run and the page of examples/browser loads.
LIBRARY = "@huggingface/transformers@4.3.1"
_CDN = f"https://cdn.jsdelivr.net/npm/{LIBRARY}"
_CLASSIFIER = "AutoModelForSequenceClassification"


class _Note(NamedTuple):
    """A sentence about the answers of a task."""

    english: str = ""
    chinese: str = ""


class _Usage(NamedTuple):
    """A call of a task in transformers.js."""

    tag: str  # The name of the pipeline.
    names: str  # What is imported.
    code: str  # With $folder and $dtype.
    note: _Note = _Note()


def write_card(folder: pathlib.Path, task: AlbertTask, name: str) -> None:
    """Write the README.md of a directory called `name`, unless a person wrote one."""
    path = folder / "README.md"
    # A file in another encoding was written by a person.
    if path.exists() and MARK not in path.read_text("utf-8", errors="replace"):
        return
    usage = _USAGES[task.name_of_task](task)
    node = _template("node.js").substitute(
        names=usage.names, call=_filled_in(usage.code, folder=name, dtype="fp32")
    )
    browser = _template("page.html").substitute(
        names=usage.names,
        library=_CDN,
        call=_filled_in(usage.code, folder=name, dtype="q8"),
    )
    card = _template("card.md").substitute(
        tag=usage.tag,
        mark=MARK,
        name=type(task).__name__,
        length=task.preprocessor.sequence_length,
        note_english=usage.note.english,
        note_chinese=usage.note.chinese,
        library=LIBRARY,
        node=node.rstrip("\n"),
        browser=browser.rstrip("\n"),
    )
    # A note may be empty.
    write_text(path, re.sub(" +$", "", card, flags=re.MULTILINE))


def _template(name: str) -> string.Template:
    return read_template("albert_tf.export", f"transformers_js_{name}")


def _filled_in(code: str, **values: str) -> str:
    """Return code with some of its `$names` replaced."""
    return string.Template(code).safe_substitute(values)


def _note(name: str, **values: str) -> _Note:
    """Return a note of transformers_js_notes.toml."""
    notes = tomllib.loads(_template("notes.toml").template)
    return _Note(
        english=_filled_in(notes[name]["english"], **values),
        chinese=_filled_in(notes[name]["chinese"], **values),
    )


# === Calls, by task ===


def _examples(task: AlbertTask, *names: str) -> list[str]:
    """Return texts to try, as JavaScript."""
    tokens = task.preprocessor.tokenizer.get_vocabulary()
    chinese = [token for token in tokens if "\u4e00" <= token <= "\u9fff"]
    is_chinese = len(chinese) > len(tokens) / 10
    inputs = [example_input(name, is_chinese) for name in names]
    return [json.dumps(value, ensure_ascii=False) for value in inputs]


def _pipeline(tag: str, arguments: list[str], note: _Note | None = None) -> _Usage:
    """Return a call of a pipeline."""
    code = _filled_in(
        _template("pipeline.js").template.rstrip("\n"),
        tag=tag,
        arguments=", ".join(arguments),
    )
    return _Usage(tag, "pipeline", code, note or _Note())


def _direct(
    task: AlbertTask, tag: str, cls: str, output: str, shown: str, note: _Note
) -> _Usage:
    """Return a call of the model itself, for a text or a pair of texts."""
    first, second = _examples(task, "text", "text_b")
    options = "truncation: true"
    if len(task.text_inputs) > 1:
        options = f"text_pair: {second}, {options}"
    names = ["AutoTokenizer", cls]
    if "softmax(" in shown:
        names.append("softmax")
    code = _filled_in(
        _template("model.js").template.rstrip("\n"),
        cls=cls,
        output=output,
        arguments=f"{first}, {{ {options} }}",
        shown=shown,
    )
    return _Usage(tag, ", ".join(names), code, note)


def _classes(task: AlbertTask) -> _Usage:
    tag = "text-classification"
    if len(task.text_inputs) == 1:
        return _pipeline(tag, _examples(task, "text"))
    shown = "model.config.id2label, softmax(logits.data)"
    return _direct(task, tag, _CLASSIFIER, "logits", shown, _Note())


def _several_classes(task: AlbertTask) -> _Usage:
    settings = task.exported_settings() or {}
    thresholds = [f"{x:g}" for x in settings["thresholds"]]
    if len(set(thresholds)) > 1:
        note = _note("thresholds", all=", ".join(thresholds))
    else:
        note = _note("threshold", first=thresholds[0])
    tag = "text-classification"
    if len(task.text_inputs) == 1:
        return _pipeline(tag, [*_examples(task, "text"), "{ top_k: null }"], note)
    shown = "model.config.id2label, logits.sigmoid().data"
    return _direct(task, tag, _CLASSIFIER, "logits", shown, note)


def _score(task: AlbertTask) -> _Usage:
    tag, note = "text-classification", _note("scores")
    return _direct(task, tag, _CLASSIFIER, "logits", "logits.data[0]", note)


def _entities(task: AlbertTask) -> _Usage:
    arguments = [*_examples(task, "text"), '{ aggregation_strategy: "simple" }']
    return _pipeline("token-classification", arguments, _note("tags"))


def _answer(task: AlbertTask) -> _Usage:
    arguments = _examples(task, "question", "context")
    return _pipeline("question-answering", arguments, _note("answers"))


def _vectors(task: AlbertTask) -> _Usage:
    tag, mode = "feature-extraction", task.pooling_mode
    if mode in ("mean", "cls"):
        normalize = str(task.normalize).lower()
        options = f'{{ pooling: "{mode}", normalize: {normalize} }}'
        return _pipeline(tag, [*_examples(task, "text"), options])
    output, note = "sentence_embedding", _note("pooling", mode=mode)
    return _direct(task, tag, "AutoModel", output, f"{output}.tolist()", note)


def _masks(task: AlbertTask) -> _Usage:
    (masked,) = _examples(task, "masked")
    token = task.preprocessor.tokenizer.mask_token
    return _pipeline("fill-mask", [masked.replace("[MASK]", token)])


_USAGES: dict[str | None, Callable[[AlbertTask], _Usage]] = {
    "text-classification": _classes,
    "multi-label": _several_classes,
    "regression": _score,
    "token-classification": _entities,
    "question-answering": _answer,
    "fill-mask": _masks,
    "text-embedding": _vectors,
}
