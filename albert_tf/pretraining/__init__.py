"""Make the records of a corpus and pretrain on them."""

from albert_tf.pretraining.make_records import make_pretraining_data
from albert_tf.pretraining.shards import PretrainingData
from albert_tf.pretraining.tfrecords import convert_records

__all__ = [
    "PretrainingData",
    "convert_records",
    "make_pretraining_data",
]
