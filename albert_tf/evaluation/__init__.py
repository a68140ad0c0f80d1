"""The scores of each field."""

from albert_tf.evaluation.answers import (
    best_null_threshold,
    cmrc_scores,
    score_answers,
    squad_scores,
)

__all__ = ["best_null_threshold", "cmrc_scores", "score_answers", "squad_scores"]
