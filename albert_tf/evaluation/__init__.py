"""Scores of each task and error reports.

The scores come from scikit-learn, SciPy, seqeval and rouge-score. Only the answers of
SQuAD and CMRC 2018 are scored here, because no maintained library has both.
"""

from albert_tf.evaluation.answers import (
    answer_scores,
    best_null_threshold,
    cmrc_scores,
    kind_of_answers,
    score_answers,
    squad_scores,
)
from albert_tf.evaluation.report import (
    ErrorList,
    character_features,
    check_report_directory,
    coloured_runs,
    suspicious_labels,
    worst_entity_mistakes,
    worst_mistakes,
    worst_multi_label_mistakes,
    write_error_report,
)
from albert_tf.evaluation.scores import (
    best_thresholds,
    centroid_scores,
    classification_report,
    classification_scores,
    entity_scores,
    level_scores,
    multi_label_report,
    multi_label_scores,
    oracle_labels,
    regression_scores,
    rouge_scores,
    spelling_scores,
)

__all__ = [
    "ErrorList",
    "answer_scores",
    "best_null_threshold",
    "best_thresholds",
    "centroid_scores",
    "character_features",
    "check_report_directory",
    "classification_report",
    "classification_scores",
    "cmrc_scores",
    "coloured_runs",
    "entity_scores",
    "kind_of_answers",
    "level_scores",
    "multi_label_report",
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
