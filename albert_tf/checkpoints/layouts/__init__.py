"""One table a layout: where each weight stands in the files of a family."""

from albert_tf.checkpoints.layouts.albert_zh import ALBERT_ZH
from albert_tf.checkpoints.layouts.google import GOOGLE
from albert_tf.checkpoints.layouts.huggingface import HUGGINGFACE
from albert_tf.checkpoints.layouts.kerashub import KERASHUB
from albert_tf.checkpoints.layouts.own import original_layout, own_layout

__all__ = [
    "ALBERT_ZH",
    "GOOGLE",
    "HUGGINGFACE",
    "KERASHUB",
    "original_layout",
    "own_layout",
]
