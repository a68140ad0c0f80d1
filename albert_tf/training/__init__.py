"""Optimizers and schedules that ALBERT is trained with, and resumable state."""

from albert_tf.training.lamb import Lamb
from albert_tf.training.optimizers import adamw, fine_tuning_learning_rate
from albert_tf.training.pair_loss import PairLoss
from albert_tf.training.schedules import WarmupLinearDecay
from albert_tf.training.sentence_loss import SentenceLoss

__all__ = [
    "Lamb",
    "PairLoss",
    "SentenceLoss",
    "WarmupLinearDecay",
    "adamw",
    "fine_tuning_learning_rate",
]
