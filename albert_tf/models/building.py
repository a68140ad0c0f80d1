"""The task that a checkpoint was trained for."""

from typing import Any

from albert_tf.checkpoints.checkpoint import Checkpoint
from albert_tf.models.albert_pretrainer import AlbertPretrainer
from albert_tf.models.albert_sentence_order import AlbertSentenceOrder
from albert_tf.models.albert_text_classifier import AlbertMultiLabelClassifier
from albert_tf.models.task import TASKS


def task_class(checkpoint: Checkpoint) -> Any:
    """Return the class in `TASKS` of a fine-tuned head; `None` without such a head."""
    fine_tuned = set(checkpoint.parts) - set(AlbertPretrainer.heads)
    for cls in TASKS.values():
        if fine_tuned.intersection(getattr(cls, "heads", ())):
            config = checkpoint.head_config(cls.heads[0])
            return AlbertMultiLabelClassifier if config.get("multi_label") else cls
    return None


def build_model(checkpoint: Checkpoint) -> Any:
    """Build the task of a fine-tuned head, else a pretrainer, else a backbone."""
    cls = task_class(checkpoint)
    if cls is not None:
        return cls.from_opened(checkpoint, checkpoint.tokenizer())
    if "masked_lm_head" in checkpoint.parts:
        return AlbertPretrainer.from_opened(checkpoint)
    if "sop_head" in checkpoint.parts:
        return AlbertSentenceOrder.from_opened(checkpoint, checkpoint.tokenizer())
    backbone = checkpoint.build_backbone(pooler=checkpoint.has_pooler)
    checkpoint.load_into(backbone)
    return backbone
