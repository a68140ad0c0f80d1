"""Optimizers and schedules ALBERT is trained with."""

from albert_tf.training.lamb import Lamb
from albert_tf.training.optimizers import adamw, fine_tuning_learning_rate
from albert_tf.training.schedules import WarmupLinearDecay

__all__ = ["Lamb", "WarmupLinearDecay", "adamw", "fine_tuning_learning_rate"]
