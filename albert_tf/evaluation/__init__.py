"""The scores that each field uses, computed by kept libraries where there are such."""

from albert_tf.evaluation.answers import (
    answer_scores,
    best_null_threshold,
    cmrc_scores,
    kind_of_answers,
    score_answers,
    squad_scores,
)
from albert_tf.evaluation.classification import (
    classification_report,
    classification_scores,
    level_scores,
)
from albert_tf.evaluation.entities import entity_scores
from albert_tf.evaluation.multi_label import (
    best_thresholds,
    multi_label_report,
    multi_label_scores,
)
from albert_tf.evaluation.regression import regression_scores
from albert_tf.evaluation.spelling import spelling_scores
from albert_tf.evaluation.summaries import (
    centroid_scores,
    oracle_labels,
    rouge_scores,
)

__all__ = [
    "answer_scores",
    "best_null_threshold",
    "best_thresholds",
    "centroid_scores",
    "classification_report",
    "classification_scores",
    "cmrc_scores",
    "entity_scores",
    "kind_of_answers",
    "level_scores",
    "multi_label_report",
    "multi_label_scores",
    "oracle_labels",
    "regression_scores",
    "rouge_scores",
    "score_answers",
    "squad_scores",
    "spelling_scores",
]
