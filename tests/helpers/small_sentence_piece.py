"""A small English classifier with a small SentencePiece model."""

import numpy as np
from sentence_piece_reference import train_model

from albert_tf.models import AlbertBackbone, AlbertTextClassifier
from albert_tf.preprocessing import AlbertTextClassifierPreprocessor
from albert_tf.tokenizers import SentencePieceTokenizer


def english_classifier(proto=None):
    """Return a classifier whose answers to different texts differ clearly."""
    tokenizer = SentencePieceTokenizer(proto or train_model())
    backbone = AlbertBackbone(
        tokenizer.vocabulary_size(),
        num_layers=2,
        num_heads=2,
        embedding_dim=8,
        hidden_dim=12,
        intermediate_dim=20,
        max_sequence_length=27,
        embedding_projection="after_layer_norm",
    )
    preprocessor = AlbertTextClassifierPreprocessor(tokenizer, sequence_length=27)
    classifier = AlbertTextClassifier(
        backbone, 3, preprocessor=preprocessor, labels=["bad", "fair", "good"]
    )
    rng = np.random.default_rng(0)
    for weight in classifier.trainable_variables:
        around = 1.0 if weight.name == "gamma" else 0.0
        weight.assign(rng.normal(around, 0.3, weight.shape))
    return classifier
