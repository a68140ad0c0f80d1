"""Optimizers and schedules that ALBERT is trained with, and resumable state."""

from albert_tf.training.lamb import Lamb
from albert_tf.training.optimizers import adamw, fine_tuning_learning_rate
from albert_tf.training.pair_loss import PairLoss
from albert_tf.training.schedules import WarmupLinearDecay

__all__ = [
    "Lamb",
    "PairLoss",
    "WarmupLinearDecay",
    "adamw",
    "fine_tuning_learning_rate",
]
