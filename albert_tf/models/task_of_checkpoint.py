"""The task that a checkpoint is trained for."""

from typing import Any

from albert_tf.checkpoints.checkpoint import Checkpoint
from albert_tf.models.albert_pretrainer import AlbertPretrainer
from albert_tf.models.task import TASKS, AlbertTask
from albert_tf.trainers.head_choice import only_fitting_head


def task_class(checkpoint: Checkpoint) -> Any:
    """Return the class in `TASKS` of a fine-tuned head; `None` without such a head."""
    fine_tuned = set(checkpoint.parts) - set(AlbertPretrainer.heads)
    for cls in TASKS.values():
        if fine_tuned.intersection(cls.heads) and cls.has_heads_in(checkpoint):
            return cls
    return None


def choose_trained_head(
    checkpoint: Checkpoint, cls: type[AlbertTask] | None
) -> Checkpoint:
    """Return a checkpoint with its only named head for a task, or for any with `None`.

    A head without a name that is trained for the task is preferred.

    Raises:
        AlbertError: if several named heads are trained for the task.
    """

    def is_trained(view: Checkpoint) -> bool:
        trained = task_class(view)
        if cls is None:
            return trained is not None
        is_own = trained is not None and issubclass(trained, cls)
        return is_own or cls.has_heads_in(view)

    return only_fitting_head(checkpoint, is_trained)


def build_model(checkpoint: Checkpoint) -> Any:
    """Build the task of a fine-tuned head, else a pretrainer, else a backbone."""
    cls = task_class(checkpoint)
    if cls is not None:
        return cls.from_opened(checkpoint, checkpoint.tokenizer())
    if "masked_lm_head" in checkpoint.parts:
        return AlbertPretrainer.from_opened(checkpoint)
    if "sop_head" in checkpoint.parts:
        return TASKS["sentence-order"].from_opened(checkpoint, checkpoint.tokenizer())
    backbone = checkpoint.build_backbone(pooler=checkpoint.has_pooler)
    checkpoint.load_into(backbone)
    return backbone
