"""The model of a task, whatever it is kept in."""

from __future__ import annotations

from typing import Any

from albert_tf.checkpoints import open_checkpoint
from albert_tf.models.building import build_model
from albert_tf.models.task import AlbertTask
from albert_tf.pipelines.table import PIPELINES, PipelineTask, task_of
from albert_tf_lite.errors import AlbertError


def load_task(path: Any, row: PipelineTask | None) -> tuple[PipelineTask, AlbertTask]:
    """The row of a model, and the model.

    Args:
        path: what `albert_tf.load_checkpoint` takes.
        row: the task that is asked for; `None` for the one of the model.
    """
    checkpoint = open_checkpoint(path)
    # Presets, `.keras` files and models at hand are whole.
    model = getattr(checkpoint.source, "model", None)
    if row is None and not isinstance(model, AlbertTask):
        model = _fine_tuned(checkpoint)
    elif row and not isinstance(model, row.model):
        _check_trained(checkpoint, row)
        model = row.model.from_checkpoint(checkpoint)
    found = _row_of(model)
    if found is None or (row and not found.fixed.items() >= row.fixed.items()):
        what = f"a model for {found.name}" if found else f"an {type(model).__name__}"
        wanted = f"it is not for {row.name}" if row else "no task by itself"
        raise AlbertError(
            f"{checkpoint.path} is {what}: {wanted}. Say another task of "
            f"{', '.join(PIPELINES)}."
        )
    if model.preprocessor is None:
        raise AlbertError(
            f"{checkpoint.path} takes ids, for it has no vocabulary. Give a model with "
            "one, such as AlbertTextClassifier.from_checkpoint(path, vocabulary=...)."
        )
    return row if row and row.by_name else found, model


def _fine_tuned(checkpoint):
    if set(checkpoint.heads) <= {"masked_lm_head", "sop_head"}:
        raise AlbertError(
            f"{checkpoint.path} does not say what it is for: it has no head but of the "
            f"pretraining. Say which task: {', '.join(PIPELINES)}."
        )
    return build_model(checkpoint)


def _row_of(model):
    fixed = {name for row in PIPELINES.values() for name in row.fixed}
    config = {name: getattr(model, name, None) for name in fixed}
    return task_of(type(model).__name__, config)


def _check_trained(checkpoint, row):
    """Heads of random weights would answer, too."""
    heads = row.model.heads
    names = checkpoint.layout.names(heads)
    missing = heads
    if names and checkpoint.shapes.keys() >= set(names):
        _, missing = row.model.read_heads(checkpoint, {})
    if missing:
        raise AlbertError(
            f"{checkpoint.path} is not trained for {row.name}: it has no "
            f"{' and '.join(missing)}. Its heads: {checkpoint.heads}. Fine-tune it, "
            f"with {row.model.__name__} or albert-tf finetune --task {row.name}."
        )
