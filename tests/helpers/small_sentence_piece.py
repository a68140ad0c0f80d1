"""A small English classifier, with a model of pieces that it trains itself."""

import io

import numpy as np
import sentencepiece

from albert_tf.models import AlbertBackbone, AlbertTextClassifier
from albert_tf.preprocessing import AlbertTextClassifierPreprocessor
from albert_tf.tokenizers import SentencePieceTokenizer

TRAINING_TEXT = """the river rose in 2018, and the people of the town left by boat
in 2017, and again in 2018, they came back with bread, tea and 12 cups
a good film! a bad film? a very long film (of 3, 4, or 5 hours)"""


def train_model():
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TRAINING_TEXT.splitlines()),
        model_writer=model,
        vocab_size=60,
        hard_vocab_limit=False,
        control_symbols=["[CLS]", "[SEP]", "[MASK]"],
        pad_id=0,
        unk_id=1,
        bos_id=-1,
        eos_id=-1,
        minloglevel=2,
    )
    return model.getvalue()


def english_classifier(proto=None):
    """With weights that make different texts give clearly different answers."""
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
