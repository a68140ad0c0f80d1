"""Optimizers and schedules ALBERT is trained with, and pretraining."""

from albert_tf.training.lamb import Lamb
from albert_tf.training.optimizers import adamw, fine_tuning_learning_rate
from albert_tf.training.pretraining import pretrain, pretraining_optimizer
from albert_tf.training.records import PretrainingRecords
from albert_tf.training.schedules import WarmupLinearDecay

__all__ = [
    "Lamb",
    "PretrainingRecords",
    "WarmupLinearDecay",
    "adamw",
    "fine_tuning_learning_rate",
    "pretrain",
    "pretraining_optimizer",
]
