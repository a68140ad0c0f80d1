"""The scores that each field uses, computed by kept libraries."""

from albert_tf.evaluation.classification import (
    classification_report,
    classification_scores,
    level_scores,
)

__all__ = ["classification_report", "classification_scores", "level_scores"]
