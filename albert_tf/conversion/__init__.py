"""Between models and files: saving, converting, verifying."""

from albert_tf.conversion.convert import convert_checkpoint, verify_conversion
from albert_tf.conversion.saving import save_checkpoint, to_keras_hub

__all__ = [
    "convert_checkpoint",
    "save_checkpoint",
    "to_keras_hub",
    "verify_conversion",
]
