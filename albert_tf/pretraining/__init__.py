"""Make the records of a corpus and pretrain on them."""

from albert_tf.pretraining.dataset import PretrainingRecords




__all__ = [
    "PretrainingData",
    "PretrainingRecords",
    "make_pretraining_data",
    "pretrain",
]
