"""Write SavedModels: the graph, a model card and warm-up requests."""

import importlib.util
import inspect
import os
import pathlib
import shutil
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import tensorflow as tf

from albert_tf.export.description import check_backend, check_preprocessor
from albert_tf.files import (
    NEW,
    check_directory,
    check_space,
    exchange_directory,
    read_template,
    temporary_directory,
    write_json,
)
from albert_tf.layers.arguments import unknown_argument
from albert_tf.model_card import write_model_card
from albert_tf.models.task import AlbertTask
from albert_tf.quiet_import import import_tensorflow_text
from albert_tf.writing_errors import name_final_path, writing_errors
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.inputs import as_list

# Rows that the encoder reads at once, so that the windows of a text of 100,000
# characters, or a request of as many texts, take no more memory than those of a batch.
ROWS_AT_A_TIME = 64
# The first request of a length may take longer than others.
_WARMUP_LENGTHS = (16, 32, 64, 128, 256, 512)
# The files and directories of an export.
_EXPORTED = {
    "saved_model.pb",
    "fingerprint.pb",
    "variables",
    "assets",
    "assets.extra",
    "README.md",
    "labels.json",
}
_COMMAND = "saved_model_cli show --all --dir ."


def saved_model(
    task: AlbertTask,
    directory: str | os.PathLike,
    *,
    version: str | None = None,
    card: dict[str, Any] | None = None,
    **options: Any,
) -> pathlib.Path:
    """Write a SavedModel that takes strings, for TensorFlow Serving.

    It has two signatures, which return what `task.postprocess` does. Their names are
    public interface (docs/reference/serving.md):

    - `serving_default` takes the texts, string tensors [batch] or [batch, 1]: for a
      classifier `text` and, if it takes pairs, `text_b`, which is ignored if empty.
    - `tokens` takes the inputs of the model, int32 [batch, time].

    Loading needs tensorflow and the ops of tensorflow_text that TensorFlow Serving
    links. The directory contains the graph with the vocabulary, the weights, a model
    card (`README.md`), `labels.json` for a task with labels, and warm-up requests if
    tensorflow-serving-api is installed.

    Args:
        task: a task with a preprocessor, such as an `AlbertTextClassifier`.
        directory: path to write, such as `"serving/reviews/1"`. An earlier export in it
            is replaced as a whole, except a README.md that a person wrote. With
            `version` the parent, `"serving/reviews"`.
        version: optional, `"next"` for the number after the highest in `directory`. An
            existing version is never replaced.
        card: optional dict, facts for `write_model_card`.
        **options: options of `task.postprocess`. For a classifier `labels`, the names
            of the classes; for one with early exit also `early_exit`, the patience.

    Returns:
        The path of the SavedModel.

    Raises:
        AlbertError: if Keras has another backend, the task has no preprocessor,
            tensorflow-text is not installed, or an argument is invalid.
        FileExistsError: if `directory` holds other files.
        OSError: if writing fails, for example because the disk is full. Then nothing is
            changed.

    Example:
    ```python
    path = albert_tf.export.saved_model(
        classifier, "serving/reviews", version="next", labels=["差评", "好评"]
    )
    answers = tf.saved_model.load(path).signatures["serving_default"]
    answers(text=tf.constant(["很好"]))["label"]
    ```
    """
    _check_options(task, options)
    check_backend()
    check_preprocessor(task)
    check_text_ops()
    specs = task.text_specs
    names = getattr(task, "class_names", getattr(task, "tags", None))
    labels = names
    if options.get("labels") is not None:
        labels = list(map(str, as_list(options["labels"], "labels")))
    module = tf.Module()
    # The variables themselves, so that each is written once.
    module.weights = [variable.value for variable in task.weights]
    functions = _functions(task, specs, options)

    def write(folder):
        check_space(folder, task.variables)
        tf.saved_model.save(
            module,
            str(folder),
            signatures=functions,
            options=tf.saved_model.SaveOptions(experimental_debug_stripper=True),
        )
        _write_warmup(task, specs, folder)
        if labels:
            write_json(folder / "labels.json", labels)
        facts = {"examples": dict.fromkeys(labels or (), "")}
        if card is not None:
            facts.update(card)
        python = _example(functions["serving_default"].input_signature)
        usage = ("tensorflow, tensorflow-text", python, _COMMAND)
        write_model_card(folder, task, usage=usage, **facts)

    return write_version(directory, version, write)


def _check_options(task: AlbertTask, options: Iterable[str]) -> None:
    """Raise if a task has no option of a name."""
    parameters = list(inspect.signature(task.postprocess).parameters.values())
    if any(x.kind is inspect.Parameter.VAR_KEYWORD for x in parameters):
        return
    # After the outputs.
    known = [*(x.name for x in parameters[1:]), "early_exit"]
    for name in options:
        if name not in known:
            arguments = ["task", "directory", "version", "card", *known]
            raise TypeError(unknown_argument("saved_model", name, arguments))


def _example(specs: Sequence[tf.TensorSpec]) -> str:
    """Return Python code that asks a SavedModel."""
    arguments = []
    for spec in specs:
        text = [["很好"]] if spec.shape.rank else ["很好"]
        arguments.append(f"{spec.name}=tf.constant({text!r})")
    template = read_template("albert_tf.export", "saved_model.py.txt")
    return template.substitute(arguments=", ".join(arguments)).rstrip("\n")


def check_text_ops() -> None:
    """Raise where a graph cannot tokenize strings, because TensorFlow Text is missing.

    That includes Windows, for which it has no wheels.
    """
    if import_tensorflow_text() is None:
        raise AlbertError(
            "A SavedModel of strings needs tensorflow-text, which is not installed and "
            "does not exist for Windows: export to ONNX or LiteRT, or run this on "
            "Linux, in WSL 2 or in Docker."
        )


# === The graph: strings in, answers out ===


def _functions(task, specs, options):
    """Return the signatures by name."""
    model, options = task, dict(options)
    patience = options.pop("early_exit", None)
    if patience is not None:
        if not hasattr(task, "exiting"):
            raise AlbertError(f"`early_exit` is not for a {type(task).__name__}.")
        model = task.exiting(patience)
    ids = [
        tf.TensorSpec(tensor.shape, tensor.dtype, name=name)
        for name, tensor in task.input.items()
    ]

    # Without AutoGraph, which would wrap what `answers` raises.
    @tf.function(input_signature=ids, autograph=False)
    def call(*values):
        inputs = dict(zip(task.input, values, strict=True))
        return model(inputs, training=False)

    # These call the function above, so that the encoder is in the graph once.
    @tf.function(input_signature=ids, autograph=False)
    def answer(*values):
        return task.postprocess(call(*values), **options)

    # A text may come as [batch] and as [batch, 1].
    texts_in = [
        tf.TensorSpec(None if x.shape.rank == 1 else x.shape, x.dtype, x.name)
        for x in specs
    ]

    @tf.function(input_signature=texts_in, autograph=False)
    def answer_texts(*texts):
        def call_named(inputs):
            return _in_parts(call, [inputs[name] for name in task.input])

        return task.serve(_checked(texts, specs), call_named, **options)

    # Here, so that wrong options are found before anything is written.
    answer.get_concrete_function()
    return {"serving_default": answer_texts, "tokens": answer}


def _in_parts(call, values):
    """Call a function of rows [batch, ...] for a limited number of rows at a time."""

    def call_part(start):
        return call(*(value[start : start + ROWS_AT_A_TIME] for value in values))

    def spec_of_part(spec):
        # The last part has fewer rows.
        return tf.RaggedTensorSpec(spec.shape, spec.dtype, ragged_rank=0)

    outputs = call.get_concrete_function().structured_outputs
    # No rows are one empty part, which has a shape.
    rows = tf.maximum(tf.shape(values[0])[0], 1)
    parts = tf.map_fn(
        call_part,
        tf.range(0, rows, ROWS_AT_A_TIME),
        parallel_iterations=1,
        fn_output_signature=tf.nest.map_structure(spec_of_part, outputs),
    )
    return tf.nest.map_structure(lambda part: part.values, parts)


def _checked(texts, specs):
    """Check the texts of a request, which a server does not compare with the signature.

    A check fails with the name of its node. Assertions would be stripped.
    """
    texts = [_check_shape(text, spec) for text, spec in zip(texts, specs, strict=True)]
    first, others = texts[0], texts[1:]
    for text, spec in zip(others, specs[1:], strict=True):
        nothing = tf.strings.substr(text, 0, 0)
        if spec.shape.rank > 1:
            nothing = tf.strings.reduce_join(nothing, axis=1)
        name = f"as_many_{spec.name}_as_{specs[0].name}"
        first = tf.strings.join([first, nothing], name=name)
    # No other operation reads the texts, and fails, before these checks.
    with tf.control_dependencies([first]):
        return (first, *[tf.identity(text) for text in others])


def _check_shape(text, spec):
    name = f"{spec.name}_of_a_batch"
    if spec.shape.rank > 1:
        return tf.ensure_shape(text, spec.shape, name=name)
    # Makes [batch] of [batch, 1], and fails for [batch, 2]. A text outside a list fails
    # after it.
    text = tf.reshape(text, tf.shape(text)[:1], name=name)
    return tf.ensure_shape(text, [None], name=f"{spec.name}_in_a_list")


# === Directories NAME/VERSION, which are complete or absent ===


def write_version(
    directory: str | os.PathLike,
    version: str | None,
    write: Callable[[pathlib.Path], None],
) -> pathlib.Path:
    """Write a directory that gets its final name in one step at the end.

    `directory` and `version` are those of `saved_model`. `write` is called with the
    path of an empty directory.
    """
    directory = pathlib.Path(directory)
    check_directory(directory)
    if version is None:
        names = os.listdir(directory) if directory.exists() else []
        if others := sorted(set(names) - _EXPORTED):
            raise FileExistsError(
                f"{directory} holds files that are not of an export: "
                f"{', '.join(others)}. Move them, or choose another directory."
            )
    elif version != "next":
        raise AlbertError(f'`version` must be None or "next". Received: {version!r}')
    # Its name is not a number: a server loads every directory whose name is one.
    final = directory if version is None else directory / "next"
    with name_final_path(directory), temporary_directory(final) as temporary:
        folder = temporary / NEW
        folder.mkdir()
        if version is None and (directory / "README.md").is_file():
            shutil.copy(directory / "README.md", folder)
        with writing_errors(directory, tf.errors.OpError):
            write(folder)
        if version == "next":
            return _rename_to_next(folder, directory)
        exchange_directory(folder, directory)
        return directory


def versions(directory: pathlib.Path) -> list[int]:
    """Return the versions of a model in ascending order."""
    names = os.listdir(directory)
    return sorted(int(name) for name in names if name.isascii() and name.isdigit())


def _rename_to_next(folder, directory):
    """Rename to the next version that no other process takes."""
    while True:
        path = directory / str(max(versions(directory), default=0) + 1)
        try:
            # This fails for a directory that is not empty, and so replaces nothing.
            return folder.rename(path)
        except OSError:
            if not path.exists():
                raise


# === Warm-up requests ===


def _write_warmup(task, specs, directory):
    """Write `assets.extra/tf_serving_warmup_requests`, one request per length.

    Without tensorflow-serving-api, which has their format, there are none.
    """
    if importlib.util.find_spec("tensorflow_serving") is None:
        return
    folder = directory / "assets.extra"
    folder.mkdir()
    longest = task.preprocessor.sequence_length
    lengths = [length for length in _WARMUP_LENGTHS if length < longest]
    lengths.append(longest)
    with tf.io.TFRecordWriter(str(folder / "tf_serving_warmup_requests")) as writer:
        for length in lengths:
            # A Chinese character is one token in every vocabulary.
            texts = ["一[MASK]"] * len(specs)
            texts[0] += " 一" * max(length - 6, 0)
            writer.write(_prediction_log(specs, texts))


def _prediction_log(specs, texts):
    """Serialize a predict request as a `tensorflow.serving.PredictionLog`."""
    from tensorflow_serving.apis import prediction_log_pb2

    log = prediction_log_pb2.PredictionLog()
    request = log.predict_log.request
    request.model_spec.signature_name = "serving_default"
    for spec, text in zip(specs, texts, strict=True):
        tensor = tf.make_tensor_proto(text, tf.string, [1] * spec.shape.rank)
        request.inputs[spec.name].CopyFrom(tensor)
    return log.SerializeToString()
