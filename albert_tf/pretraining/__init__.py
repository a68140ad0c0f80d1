"""From a corpus to a pretrained model: records, and training on them."""

from albert_tf.pretraining.corpus import Corpus
from albert_tf.pretraining.dataset import PretrainingRecords
from albert_tf.pretraining.make_records import PretrainingData, make_pretraining_data
from albert_tf.pretraining.training import pretrain, pretraining_optimizer

__all__ = [
    "Corpus",
    "PretrainingData",
    "PretrainingRecords",
    "make_pretraining_data",
    "pretrain",
    "pretraining_optimizer",
]
