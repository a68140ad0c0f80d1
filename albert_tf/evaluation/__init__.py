"""The scores of each field."""

from albert_tf.evaluation.answers import cmrc_scores, squad_scores

__all__ = ["cmrc_scores", "squad_scores"]
