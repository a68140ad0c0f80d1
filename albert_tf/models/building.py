"""The task that a checkpoint was trained for."""

from __future__ import annotations

from typing import Any

from albert_tf.checkpoints.checkpoint import Checkpoint
from albert_tf.models.albert_pretrainer import AlbertPretrainer
from albert_tf.models.albert_sentence_order import AlbertSentenceOrder
from albert_tf.models.task import TASKS, AlbertTask


def task_class(checkpoint: Checkpoint) -> type | None:
    """Return the class in `TASKS` of a fine-tuned head; `None` without such a head."""
    parts = checkpoint.parts
    for cls in TASKS.values():
        is_task = issubclass(cls, AlbertTask) and cls.heads
        if not is_task or cls.heads[0] in AlbertPretrainer.heads:
            continue
        if cls.heads[0] in parts:
            multi_label = checkpoint.head_config(cls.heads[0]).get("multi_label", False)
            if getattr(cls, "multi_label", False) == multi_label:
                return cls
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
