"""Make the records of a corpus and pretrain on them."""

from albert_tf.pretraining.dataset import PretrainingRecords
from albert_tf.pretraining.make_records import make_pretraining_data
from albert_tf.pretraining.model import build_network, read_weights, write_weights
from albert_tf.pretraining.shards import PretrainingData
from albert_tf.pretraining.tfrecords import convert_records
from albert_tf.pretraining.training import pretrain

__all__ = [
    "PretrainingData",
    "PretrainingRecords",
    "build_network",
    "convert_records",
    "make_pretraining_data",
    "pretrain",
    "read_weights",
    "write_weights",
]
