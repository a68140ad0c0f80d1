"""Make the records of a corpus and pretrain on them."""

from albert_tf.pretraining.array_records import write_records
from albert_tf.pretraining.dataset import PretrainingRecords
from albert_tf.pretraining.labelled import (
    build_heads,
    pretrain_labelled,
    read_heads,
)
from albert_tf.pretraining.labelled_data import LabelledSet, make_labelled_data
from albert_tf.pretraining.labelled_records import LabelledRecords
from albert_tf.pretraining.make_records import make_pretraining_data
from albert_tf.pretraining.network import build_network, read_weights, write_weights
from albert_tf.pretraining.shards import PretrainingData
from albert_tf.pretraining.training import evaluate_pretraining, pretrain

__all__ = [
    "LabelledRecords",
    "LabelledSet",
    "PretrainingData",
    "PretrainingRecords",
    "build_heads",
    "build_network",
    "evaluate_pretraining",
    "make_labelled_data",
    "make_pretraining_data",
    "pretrain",
    "pretrain_labelled",
    "read_heads",
    "read_weights",
    "write_records",
    "write_weights",
]
