"""The tasks of `albert_tf.pipeline`, a row each."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from albert_tf import models
from albert_tf.pipelines import answers


@dataclasses.dataclass(frozen=True)
class PipelineTask:
    """A task: which model it takes, what goes in, what comes out.

    Attributes:
        name: as `albert-tf finetune --task` has it.
        model: the class of the model.
        answers: function of a model, x as its `predict` takes it, a batch size and the
            options of the task; gives a value for each example.
        fields: the names of the parts of an example, in the order of a tuple.
        optional: those of them that may be left out, the last ones.
        fixed: attributes of a model that is of this task. Of several rows with its
            class a model is of the one that fixes most.
        by_name: bool, for models of another task, where it is asked for by its name.
    """

    name: str
    model: type
    answers: Callable[..., list]
    fields: tuple[str, ...] = ("text",)
    optional: tuple[str, ...] = ()
    fixed: dict[str, Any] = dataclasses.field(default_factory=dict)
    by_name: bool = False

    def is_of(self, class_name: str, config: dict[str, Any]) -> bool:
        """Whether a model of a class and config is one of this task."""
        fixed = {name: config.get(name) for name in self.fixed}
        is_class = self.model.__name__ == class_name and not self.by_name
        return is_class and fixed == self.fixed


_ONE_OR_TWO = {"fields": ("text", "text_pair"), "optional": ("text_pair",)}

_ROWS = (
    PipelineTask(
        "text-classification",
        models.AlbertTextClassifier,
        answers.classify,
        **_ONE_OR_TWO,
    ),
    PipelineTask(
        "multi-label",
        models.AlbertTextClassifier,
        answers.classify_multi_label,
        **_ONE_OR_TWO,
        fixed={"multi_label": True},
    ),
    PipelineTask(
        "regression", models.AlbertTextRegressor, answers.regress, **_ONE_OR_TWO
    ),
    PipelineTask(
        "token-classification", models.AlbertTokenClassifier, answers.find_entities
    ),
    PipelineTask(
        "question-answering",
        models.AlbertQuestionAnswering,
        answers.answer_questions,
        fields=("question", "context"),
    ),
    PipelineTask(
        "multiple-choice",
        models.AlbertMultipleChoice,
        answers.choose,
        fields=("context", "question", "choices"),
    ),
    PipelineTask(
        "text-embedding", models.AlbertTextEmbedder, answers.embed, **_ONE_OR_TWO
    ),
    PipelineTask(
        "spelling-correction", models.AlbertSpellingCorrector, answers.correct
    ),
    PipelineTask("summarization", models.AlbertSummarizer, answers.summarize),
    PipelineTask("fill-mask", models.AlbertMaskedLM, answers.fill),
    PipelineTask(
        "sentence-order",
        models.AlbertSentenceOrder,
        answers.tell_order,
        fields=("text", "text_pair"),
    ),
    PipelineTask(
        "zero-shot-classification",
        models.AlbertTextClassifier,
        answers.classify_zero_shot,
        by_name=True,
    ),
)
PIPELINES = {row.name: row for row in _ROWS}

# As transformers calls them.
ALIASES = {
    "feature-extraction": "text-embedding",
    "ner": "token-classification",
    "sentiment-analysis": "text-classification",
}


def task_of(class_name: str, config: dict[str, Any]) -> PipelineTask | None:
    """The row of a model of a class and config; `None` if it is of no task here."""
    found = [row for row in _ROWS if row.is_of(class_name, config)]
    return max(found, key=lambda row: len(row.fixed), default=None)
