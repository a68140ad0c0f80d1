"""The scores that each field uses, computed by kept libraries."""

from albert_tf.evaluation.classification import (
    classification_report,
    classification_scores,
    level_scores,
)
from albert_tf.evaluation.multi_label import (
    best_thresholds,
    multi_label_report,
    multi_label_scores,
)
from albert_tf.evaluation.regression import regression_scores
from albert_tf.evaluation.spelling import spelling_scores

__all__ = [
    "best_thresholds",
    "classification_report",
    "classification_scores",
    "level_scores",
    "multi_label_report",
    "multi_label_scores",
    "regression_scores",
    "spelling_scores",
]
