"""Functions and classes that use finished tasks, which the tasks do not know."""

from albert_tf.tools.adaptation import Adaptation, adapt
from albert_tf.tools.albert_distiller import AlbertDistiller
from albert_tf.tools.albert_early_exit_classifier import AlbertEarlyExitClassifier
from albert_tf.tools.attributions import Attributions, IntegratedGradients
from albert_tf.tools.classes import (
    class_weights,
    tune_temperature,
    tune_thresholds,
)
from albert_tf.tools.long_texts import predict_windows
from albert_tf.tools.zero_shot_classifier import ZeroShotClassifier

__all__ = [
    "Adaptation",
    "AlbertDistiller",
    "AlbertEarlyExitClassifier",
    "Attributions",
    "IntegratedGradients",
    "ZeroShotClassifier",
    "adapt",
    "class_weights",
    "predict_windows",
    "tune_temperature",
    "tune_thresholds",
]
