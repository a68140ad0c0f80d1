from __future__ import annotations

import inspect
import os
from typing import Any

from albert_tf.models.task import AlbertTask
from albert_tf.pipelines.inputs import as_x, read_inputs
from albert_tf.pipelines.loading import load_task
from albert_tf.pipelines.table import ALIASES, PIPELINES, PipelineTask
from albert_tf_lite.errors import AlbertError


class Pipeline:
    """Texts in, dicts of plain Python out. Made by `albert_tf.pipeline`.

    Attributes:
        task: string, the name of the task.
        model: the model, such as an `AlbertTextClassifier`.
        options: dict, the options of calls that give none.
    """

    def __init__(self, row: PipelineTask, model: AlbertTask, **options: Any):
        self._row = row
        self.model = model
        self.options = self._checked(options)

    @property
    def task(self) -> str:
        return self._row.name

    def __call__(self, x: Any = None, **options: Any) -> Any:
        """The answers.

        Args:
            x: an example or a list of examples. An example is a string, or a tuple or
                dict of the parts of the task: `text` and `text_pair`; `question` and
                `context`; `context`, `question` and `choices`.
            **options: instead of `x` the parts by name; and options of the task, as
                `albert_tf.pipeline` takes them, for this call.

        Returns:
            For one example its answer, for a list a list of them.

        Raises:
            TypeError: if there is no such option, or an example is of another form.
            AlbertError: if an example lacks a part.
        """
        row = self._row
        parts = {name: options.pop(name) for name in row.fields if name in options}
        if (x is None) != bool(parts):
            raise TypeError(
                f"Call it with examples, or with {', '.join(row.fields)} by name."
            )
        options = {**self.options, **self._checked(options)}
        examples, is_one = read_inputs(
            parts if x is None else x, row.fields, row.optional
        )
        if not examples:
            return []
        if row.optional and len(self.model.text_inputs) > len(examples[0]):
            raise AlbertError(
                "This model takes pairs of texts: tuples, or dicts of "
                f"{' and '.join(row.fields)}. Received: {examples[0][0][:80]!r}"
            )
        answers = row.answers(self.model, as_x(examples), **options)
        return answers[0] if is_one else answers

    def __repr__(self) -> str:
        options = "".join(f", {name}={x!r}" for name, x in self.options.items())
        return f"<pipeline {self.task} of {type(self.model).__name__}{options}>"

    def _checked(self, options):
        known = list(inspect.signature(self._row.answers).parameters)[2:]
        unknown = sorted(set(options) - set(known))
        if unknown:
            raise TypeError(
                f"The pipeline for {self.task} has no option {', '.join(unknown)}. Its "
                f"options: {', '.join(known)}. What a model is built with, such as "
                "`vocabulary`, goes to from_checkpoint of its class; give that model."
            )
        return options


def pipeline(
    task: str | None = None,
    path: str | os.PathLike | AlbertTask | None = None,
    **options: Any,
) -> Pipeline:
    """A callable that takes texts and gives dicts with the keys of transformers.

    | task | an example | its answer |
    |---|---|---|
    | `text-classification`, `sentiment-analysis` | `text`, or with `text_pair` | `label`, `score`; with `top_k` a list of them |
    | `multi-label` | the same | a list of `label`, `score`: those it has, or the `top_k` likeliest |
    | `regression` | the same | `score` |
    | `token-classification`, `ner` | `text` | a list of `entity_group`, `word`, `start`, `end`, `score` |
    | `question-answering` | `question`, `context` | `answer`, `start`, `end`, `score`; with `top_k` a list of them |
    | `multiple-choice` | `context`, `question`, `choices` | `label`, `label_id`, `score`; with `top_k` a list of them |
    | `text-embedding`, `feature-extraction` | `text`, or with `text_pair` | `embedding`, a list of floats; of two texts `score`, their cosine |
    | `spelling-correction` | `text` | `source`, `target`, `errors` |
    | `fill-mask` | `text` | a list of `token_str`, `token`, `sequence`, `score`, `start`, `end`; of several masks a list of such lists |
    | `zero-shot-classification` | `text`, with the option `candidate_labels` | `sequence`, `labels`, `scores`, the likeliest first |
    | `sentence-order` | `text`, `text_pair` | `label` (`in_order`, `swapped`), `score` |

    Args:
        task: string, as above. May be left out where the path says it: a preset, a
            `.keras` file, a checkpoint with one fine-tuned head.
        path: what `albert_tf.load_checkpoint` takes (a directory, a file, the name of a
            release, `"hf://user/name"`), or a task model.
        **options: of all calls: `batch_size`, as for `predict`; `top_k`, where the table
            has it, `None` for all; `engine` (`"onnx"`, `"litert"`) of classifiers,
            regressors and embedders; `targets` of `fill-mask`; `null_threshold` and
            `max_answer_length` of `question-answering`; `candidate_labels` (a list),
            `hypothesis_template` and `multi_label` of `zero-shot-classification`.

    Returns:
        A `Pipeline`.

    Raises:
        FileNotFoundError, albert_tf.checkpoints.CheckpointError: as
            `albert_tf.load_checkpoint`.
        AlbertError: if the task is unknown, or the model is not trained for it.

    Example:
    ```python
    classify = albert_tf.pipeline("text-classification", "my_model")
    classify("很好")  # {"label": "好评", "score": 0.98}
    classify(["很好", "太差了"], top_k=2)  # A list of lists.
    albert_tf.pipeline("fill-mask", "albert_tiny_zh")("今天[MASK]气很好")[0]
    ```
    """  # noqa: E501 (a table)
    name = ALIASES.get(task, task)
    if path is None and name not in PIPELINES:
        task, path, name = None, task, None
    if path is None:
        raise AlbertError("Which model? Give its `path`, as pipeline(task, path).")
    if task is not None and name not in PIPELINES:
        raise AlbertError(
            f"There is no task {task!r}. Expected one of {', '.join(PIPELINES)}; or "
            f"{', '.join(ALIASES)}."
        )
    return Pipeline(*load_task(path, PIPELINES.get(name)), **options)
