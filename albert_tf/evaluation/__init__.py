"""Scores of each task and error reports.

The scores come from scikit-learn, SciPy and rouge-score. Only the answers of SQuAD and
CMRC 2018 are scored here, because no maintained library has both.
"""

from albert_tf.evaluation.report import (
    ErrorList,
    character_features,
    coloured_runs,
    suspicious_labels,
    worst_entity_mistakes,
    worst_mistakes,
    worst_multi_label_mistakes,
    write_error_report,
)
from albert_tf.evaluation.scores import (
    answer_scores,
    best_null_threshold,
    best_thresholds,
    classification_report,
    classification_scores,
    cmrc_scores,
    entity_scores,
    kind_of_answers,
    level_scores,
    multi_label_scores,
    oracle_labels,
    regression_scores,
    rouge_scores,
    score_answers,
    spelling_scores,
    squad_scores,
)

__all__ = [
    "ErrorList",
    "answer_scores",
    "best_null_threshold",
    "best_thresholds",
    "character_features",
    "classification_report",
    "classification_scores",
    "cmrc_scores",
    "coloured_runs",
    "entity_scores",
    "kind_of_answers",
    "level_scores",
    "multi_label_scores",
    "oracle_labels",
    "regression_scores",
    "rouge_scores",
    "score_answers",
    "spelling_scores",
    "squad_scores",
    "suspicious_labels",
    "worst_entity_mistakes",
    "worst_mistakes",
    "worst_multi_label_mistakes",
    "write_error_report",
]
