"""Scores of each task, and mistakes and calibration of classifiers.

The scores come from scikit-learn, SciPy and rouge-score. Only the answers of SQuAD and
CMRC 2018 are scored here, because no maintained library has both.
"""

from albert_tf.evaluation.answer_scores import cmrc_scores, squad_scores
from albert_tf.evaluation.calibration import (
    calibration_scores,
    coverage,
    reliability_bins,
)
from albert_tf.evaluation.scores import (
    classification_report,
    classification_scores,
    entity_scores,
    multi_label_scores,
    regression_scores,
    worst_mistakes,
)
from albert_tf.evaluation.text_scores import (
    oracle_labels,
    rouge_scores,
    spelling_scores,
)

__all__ = [
    "calibration_scores",
    "classification_report",
    "classification_scores",
    "cmrc_scores",
    "coverage",
    "entity_scores",
    "multi_label_scores",
    "oracle_labels",
    "regression_scores",
    "reliability_bins",
    "rouge_scores",
    "spelling_scores",
    "squad_scores",
    "worst_mistakes",
]
