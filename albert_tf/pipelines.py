"""Tasks as functions from strings to dicts: `albert_tf.pipeline(task, path)`."""

from __future__ import annotations

import inspect
import os
import sys
import threading
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np

from albert_tf.checkpoints import Checkpoint, open_checkpoint
from albert_tf.files import BUNDLED
from albert_tf.models.task import TASKS, AlbertTask
from albert_tf.models.task_of_checkpoint import (
    build_model,
    choose_trained_head,
    task_class,
)
from albert_tf.tools.zero_shot_classifier import ZeroShotClassifier
from albert_tf_lite.answers import probabilities_of
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.pipelines import Pipeline

# Names of transformers, and of a use of a task.
ALIASES = {
    "feature-extraction": "text-embedding",
    "ner": "token-classification",
    "paraphrase": "text-classification",
    "sentiment-analysis": "text-classification",
    "text-similarity": "regression",
    "topic-classification": "text-classification",
}
# The models of pipelines without `path`.
(_MICRO,) = BUNDLED
DEFAULTS = {
    "feature-extraction": _MICRO,
    "fill-mask": _MICRO,
    "ner": f"{_MICRO}:entities",
    "paraphrase": f"{_MICRO}:paraphrase",
    "sentence-order": _MICRO,
    "sentiment-analysis": f"{_MICRO}:sentiment",
    "text-classification": f"{_MICRO}:sentiment",
    "text-embedding": _MICRO,
    "text-similarity": f"{_MICRO}:similarity",
    "token-classification": f"{_MICRO}:entities",
    "topic-classification": f"{_MICRO}:topics",
    "zero-shot-classification": f"{_MICRO}:inference",
}
# From this number of examples a call shows a progress bar on a terminal, which moves
# after each block.
_LONG = 5000
_BLOCK = 1000
# Concurrent calls export a model once. LiteRT's converter, and building a Keras model,
# are not safe in several threads.
_LOCK = threading.Lock()


class TaskPipeline(Pipeline):
    """Pipeline of a Keras model; see `albert_tf.pipeline`.

    Attributes:
        task: string, the name of the task.
        model: the model, such as an `AlbertTextClassifier`.
        answerer: the model, or a `ZeroShotClassifier` of it.
        path: string, where the model is from; `None` for a model object.
        options: dict, the options of calls that pass none.
    """

    def __init__(
        self,
        answerer: AlbertTask | ZeroShotClassifier,
        model: AlbertTask,
        path: str | None = None,
        **options: Any,
    ):
        self.model = model
        self.path = path
        self._exported: dict[str, Any] = {}
        super().__init__(answerer, **options)

    @property
    def takes_pairs(self) -> bool:
        return len(self.model.text_inputs) > 1

    def _option_names(self):
        # After the examples.
        names = list(inspect.signature(self.answerer.answers).parameters)[1:]
        if isinstance(self.answerer, AlbertTask):
            names.append("engine")
        return [*names, "verbose"]

    def _description(self):
        labels = getattr(self.model, "labels", None)
        model = type(self.model).__name__
        return {"model": model, "path": self.path, "classes": labels}

    def _answer(self, columns, engine=None, verbose="auto", **options):
        answerer = self._export(engine) if engine else self.answerer
        answers = []
        for block in _blocks(columns, verbose):
            answers += answerer.answers(block, **options)
        return answers

    def _probabilities(self, columns, engine=None, verbose="auto", **options):
        arrays = []
        for block in _blocks(columns, verbose):
            if engine:
                array = self._export(engine).predict(block, **options)["probabilities"]
            else:
                outputs = self.model.predict(block, verbose=0, **options)
                array = probabilities_of(outputs, self.model.exported_settings())
            arrays.append(array)
        return np.concatenate(arrays)

    def _export(self, engine):
        """Return the model in the file of an engine, exported at the first call."""
        # Here, so that `import albert_tf` does not import the exports.
        from albert_tf.export import exported

        with _LOCK:
            if engine not in self._exported:
                self._exported[engine] = exported(self.model, engine)
        return self._exported[engine]


def _blocks(columns: Any, verbose: str | int) -> Iterator[Any]:
    """Yield all examples at once, or blocks of them below a progress bar.

    Args:
        columns: list of the texts of examples, or the tuple of a list per field.
        verbose: 0 for silence, 1 for a progress bar; `"auto"` shows it on a terminal
            for long lists.
    """
    is_single = isinstance(columns, list)
    count = len(columns if is_single else columns[0])
    if verbose == "auto":
        verbose = count >= _LONG and sys.stdout is not None and sys.stdout.isatty()
    if not verbose:
        yield columns
        return
    bar = keras.utils.Progbar(count, unit_name="example")
    for start in range(0, count, _BLOCK):
        rows = slice(start, start + _BLOCK)
        yield columns[rows] if is_single else tuple(part[rows] for part in columns)
        bar.update(min(start + _BLOCK, count))


def pipeline(
    task: str | None = None,
    path: str | os.PathLike | AlbertTask | None = None,
    *,
    head: str | None = None,
    **options: Any,
) -> TaskPipeline:
    """Return a function from texts to dicts with the keys of transformers.

    | task | an example | its answer |
    |---|---|---|
    | `text-classification`, `sentiment-analysis`, `topic-classification`, `paraphrase` | `text`, or with `text_pair` | `label`, `score`; with `top_k` a list of them |
    | `multi-label` | the same | a list of `label`, `score`: those it has, or the `top_k` likeliest |
    | `regression`, `text-similarity` | the same | `score` |
    | `token-classification`, `ner` | `text` | a list of `entity_group`, `word`, `start`, `end`, `score` |
    | `question-answering` | `question`, `context` | `answer`, `start`, `end`, `score`; with `top_k` a list of them |
    | `multiple-choice` | `context`, `question`, `choices` | `label`, `label_id`, `score`; with `top_k` a list of them |
    | `text-embedding`, `feature-extraction` | `text`, or with `text_pair` | `embedding`, a list of floats; for two texts `score`, their cosine |
    | `spelling-correction` | `text` | `source`, `target`, `errors` |
    | `summarization` | `text` | `summary`, `sentences`: start, end and score of each |
    | `fill-mask` | `text` | a list of `token_str`, `token`, `sequence`, `score`, `start`, `end`; for several masks a list of such lists |
    | `zero-shot-classification` | `text`, with the option `candidate_labels` | `sequence`, `labels`, `scores`, the likeliest first |
    | `sentence-order` | `text`, `text_pair` | `label` (`in_order`, `swapped`), `score` |

    Args:
        task: string, as above. Optional for a path that determines it: a preset, a
            `.keras` file, a checkpoint with one fine-tuned head.
        path: what `albert_tf.load_checkpoint` takes (a directory, a file, the name of a
            release, `"hf://user/name"`), or a task model. Optional for the tasks of
            the bundled checkpoint, see `DEFAULTS`.
        head: optional string, the name of one of several heads of the checkpoint, as
            in `path="my_model:entities"`. By default the only one for the task.
        **options: of all calls: `batch_size`, examples per batch; `top_k`, where the
            table has it, `None` for all; `abstain`, a score from 0 to 1: below it, a
            `text-classification` has the label "", and labels of `multi-label`,
            entities and classes of a `top_k` are left out; `engine` (`"onnx"`, `"litert"`), see
            `albert_tf.export.exported`, where the weights are those of the first
            call; `verbose`, 1 for a progress bar, 0 for none, by default `"auto"`: on a
            terminal for 5,000 examples or more; `targets` of `fill-mask`; `null_threshold` and `max_answer_length` of
            `question-answering`; `sentences` and `max_characters` of `summarization`;
            `candidate_labels` (a list), `hypothesis_template` and `multi_label` of
            `zero-shot-classification`.

    Returns:
        A `TaskPipeline`, which takes an example or a list of them. Its method
        `probabilities` returns those of all classes as an array.

    Raises:
        FileNotFoundError: if a file of the checkpoint or its config is missing.
        albert_tf.checkpoints.CheckpointError: if the file is damaged or of an unknown
            layout, or a weight is missing or has no place in the model.
        AlbertError: if the task is unknown, or the model is not trained for it.

    Example:
    ```python
    classify = albert_tf.pipeline("text-classification", "my_model")
    classify("很好")  # {"label": "好评", "score": 0.98}
    classify(["很好", "太差了"], top_k=2)  # A list of lists.
    albert_tf.pipeline("fill-mask", "albert_tiny_zh")("今天[MASK]气很好")[0]
    ```
    """  # noqa: E501 (a table)
    classes = answering_classes()
    if path is None and task not in {*classes, *ALIASES}:
        # The only argument is a path.
        task, path = None, task
    if path is None:
        path = DEFAULTS.get(task or "")
    if path is None:
        raise AlbertError("The model is missing. Pass its path: pipeline(task, path).")
    name = ALIASES.get(task or "", task)
    if name is not None and name not in classes:
        known = ", ".join([*classes, *ALIASES])
        raise AlbertError(f"Unknown task {task!r}. Expected one of {known}.")
    cls = classes.get(name or "")
    checkpoint = choose_trained_head(open_checkpoint(path, head=head), cls)
    source = None if isinstance(path, keras.Model) else str(checkpoint.path)
    if cls is ZeroShotClassifier:
        model = _load_task(checkpoint, ZeroShotClassifier.wrapped_cls)
        return TaskPipeline(ZeroShotClassifier(model), model, source, **options)
    model = _load_task(checkpoint, cls)
    return TaskPipeline(model, model, source, **options)


def answering_classes() -> dict[str, Any]:
    """Return the classes that answer, by the name of their task."""
    return {**TASKS, ZeroShotClassifier.name_of_task: ZeroShotClassifier}


def _load_task(checkpoint: Checkpoint, cls: Any) -> Any:
    """Load the model of a task class, or with `None` that of the checkpoint."""
    # Presets, `.keras` files and model objects are complete.
    model: Any = checkpoint.model
    if not isinstance(model, cls or AlbertTask):
        stored = task_class(checkpoint)
        if cls is None:
            model = build_model(checkpoint) if stored else None
        elif stored is not None and issubclass(stored, cls):
            # A multi-label model is a text classifier, too.
            model = stored.from_checkpoint(checkpoint)
        elif cls.has_heads_in(checkpoint):
            model = cls.from_checkpoint(checkpoint)
        else:
            heads = [*checkpoint.heads, *checkpoint.named_heads]
            raise AlbertError(
                f"{checkpoint.path} is not trained for {cls.name_of_task}: it has no "
                f"{' and '.join(cls.heads)}. Its heads: {heads}. Fine-tune "
                f"it, by {cls.__name__} or albert-tf finetune --task "
                f"{cls.name_of_task}."
            )
    if getattr(model, "name_of_task", None) is None:
        kind = "a pretrained model" if model is None else type(model).__name__
        raise AlbertError(
            f"{checkpoint.path} is {kind}, without a fine-tuned head. Name the task: "
            f"one of {', '.join(answering_classes())}."
        )
    if model.preprocessor is None:
        raise AlbertError(
            f"{checkpoint.path} has no vocabulary. Pass a model with one, such as "
            "AlbertTextClassifier.from_checkpoint(path, vocabulary=...)."
        )
    return model
