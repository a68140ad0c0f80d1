"""The scores that each field uses, computed by kept libraries where there are such."""

from albert_tf.evaluation.answers import (
    answer_scores,
    best_null_threshold,
    cmrc_scores,
    kind_of_answers,
    score_answers,
    squad_scores,
)
from albert_tf.evaluation.attribution_colours import (
    attribution_html,
    character_colours,
    coloured_runs,
)
from albert_tf.evaluation.classification import (
    classification_report,
    classification_scores,
    level_scores,
)
from albert_tf.evaluation.confusion_picture import draw_confusion, find_font
from albert_tf.evaluation.entities import entity_scores
from albert_tf.evaluation.error_report import (
    check_report_directory,
    write_error_report,
)
from albert_tf.evaluation.label_errors import (
    character_features,
    confident_issues,
    cross_validated,
    suspicious_labels,
)
from albert_tf.evaluation.mistakes import (
    worst_entity_mistakes,
    worst_mistakes,
    worst_multi_label_mistakes,
)
from albert_tf.evaluation.multi_label import (
    best_thresholds,
    multi_label_report,
    multi_label_scores,
)
from albert_tf.evaluation.regression import regression_scores
from albert_tf.evaluation.report_page import ErrorList
from albert_tf.evaluation.spelling import spelling_scores
from albert_tf.evaluation.summaries import (
    centroid_scores,
    oracle_labels,
    rouge_scores,
)

__all__ = [
    "ErrorList",
    "answer_scores",
    "attribution_html",
    "best_null_threshold",
    "best_thresholds",
    "centroid_scores",
    "character_colours",
    "character_features",
    "check_report_directory",
    "classification_report",
    "classification_scores",
    "cmrc_scores",
    "coloured_runs",
    "confident_issues",
    "cross_validated",
    "draw_confusion",
    "entity_scores",
    "find_font",
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
    "suspicious_labels",
    "worst_entity_mistakes",
    "worst_mistakes",
    "worst_multi_label_mistakes",
    "write_error_report",
]
