"""Make the records of a corpus and pretrain on them."""

from albert_tf.pretraining.dataset import PretrainingRecords
from albert_tf.pretraining.training import pretrain

__all__ = [
    "PretrainingRecords",
    "pretrain",
]
