"""Optimizers, losses and resumable state of trainings."""

from albert_tf.training.losses import PairLoss, SentenceLoss
from albert_tf.training.optimizers import (
    Lamb,
    WarmupLinearDecay,
    fine_tuning_batch_size,
    fine_tuning_epochs,
    fine_tuning_learning_rate,
    lower_learning_rate,
    scheduled_optimizer,
)

__all__ = [
    "Lamb",
    "PairLoss",
    "SentenceLoss",
    "WarmupLinearDecay",
    "fine_tuning_batch_size",
    "fine_tuning_epochs",
    "fine_tuning_learning_rate",
    "lower_learning_rate",
    "scheduled_optimizer",
]
