"""Optimizers, losses and resumable state of trainings."""

from albert_tf.training.losses import PairLoss, SentenceLoss
from albert_tf.training.optimizers import (
    Lamb,
    WarmupLinearDecay,
    adamw,
    fine_tuning_learning_rate,
)

__all__ = [
    "Lamb",
    "PairLoss",
    "SentenceLoss",
    "WarmupLinearDecay",
    "adamw",
    "fine_tuning_learning_rate",
]
