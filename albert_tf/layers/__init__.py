"""Layers of ALBERT, each usable in your own models."""

from albert_tf.layers.attention_block import AttentionBlock
from albert_tf.layers.encoder_block import EncoderBlock
from albert_tf.layers.factorized_embedding import FactorizedEmbedding, TokenEmbedding
from albert_tf.layers.feed_forward_block import FeedForwardBlock
from albert_tf.layers.masked_lm_head import MaskedLMHead
from albert_tf.layers.whole_word_mask_generator import WholeWordMaskGenerator

__all__ = [
    "AttentionBlock",
    "EncoderBlock",
    "FactorizedEmbedding",
    "FeedForwardBlock",
    "MaskedLMHead",
    "TokenEmbedding",
    "WholeWordMaskGenerator",
]
