"""Make the records of a corpus and pretrain on them.

Three rooms, each of which imports only from those above it: `records` (text to arrays
on disk), `training` (batches to weights) and `labelled` (the stage with heads).
"""

from albert_tf.pretraining.labelled.head_files import build_heads, read_heads
from albert_tf.pretraining.labelled.labelled_records import LabelledRecords
from albert_tf.pretraining.labelled.labelled_set import LabelledSet
from albert_tf.pretraining.labelled.make_labelled_data import make_labelled_data
from albert_tf.pretraining.labelled.pretrain_labelled import (
    LabelledRun,
    pretrain_labelled,
)
from albert_tf.pretraining.records.make_pretraining_data import make_pretraining_data
from albert_tf.pretraining.records.pretraining_records import PretrainingRecords
from albert_tf.pretraining.records.shard_maker import PretrainingData
from albert_tf.pretraining.records.write_records import write_records
from albert_tf.pretraining.training.network import (
    build_network,
    read_weights,
    write_weights,
)
from albert_tf.pretraining.training.pretrain import evaluate_pretraining, pretrain
from albert_tf.pretraining.training.run import Run

__all__ = [
    "LabelledRecords",
    "LabelledRun",
    "LabelledSet",
    "PretrainingData",
    "PretrainingRecords",
    "Run",
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
