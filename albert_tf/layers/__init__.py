"""Layers of ALBERT, each usable in your own models."""

from albert_tf.layers.attention_block import AttentionBlock
from albert_tf.layers.encoder_block import EncoderBlock
from albert_tf.layers.factorized_embedding import FactorizedEmbedding
from albert_tf.layers.feed_forward_block import FeedForwardBlock
from albert_tf.layers.masked_lm_head import MaskedLMHead
from albert_tf.layers.token_embedding import TokenEmbedding

__all__ = [
    "AttentionBlock",
    "EncoderBlock",
    "FactorizedEmbedding",
    "FeedForwardBlock",
    "MaskedLMHead",
    "TokenEmbedding",
]
