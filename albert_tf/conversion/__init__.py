"""Between models and files: saving, converting, verifying, `from_preset`."""

from albert_tf.backbone.presets import register_checkpoints
from albert_tf.conversion.convert import convert_checkpoint, verify_conversion
from albert_tf.conversion.presets import from_checkpoint, is_checkpoint
from albert_tf.conversion.pruning import keep_tokens, needed_tokens, prune_vocabulary
from albert_tf.conversion.saving import save_checkpoint, to_keras_hub

__all__ = [
    "convert_checkpoint",
    "keep_tokens",
    "needed_tokens",
    "prune_vocabulary",
    "save_checkpoint",
    "to_keras_hub",
    "verify_conversion",
]

register_checkpoints(is_checkpoint, from_checkpoint, save_checkpoint)
