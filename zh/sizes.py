"""The sizes of the Chinese releases, as arguments of `AlbertBackbone`."""

from albert_tf.models.sizes import albert_size

# BERT-Base, Chinese: the vocabulary of every Chinese ALBERT.
VOCABULARY_SIZE = 21128


def _brightmart(*size, **other):
    return albert_size(*size, vocabulary_size=VOCABULARY_SIZE, **other)


def _google(*size, **other):
    return _brightmart(*size, embedding_projection="after_layer_norm", **other)


# Layers, hidden width, heads: the `albert_config*.json` of each release.
SIZES = {
    "albert_tiny_zh": _brightmart(4, 312, 12),
    "albert_base_zh": _brightmart(12, 768, 12),
    "albert_large_zh": _brightmart(24, 1024, 16),
    "albert_xlarge_zh": _brightmart(24, 2048, 32),
    "albert_xxlarge_zh": _brightmart(12, 4096, 64, norm_first=True),
    "albert_tiny_zh_google": _google(4, 312, 12),
    "albert_small_zh_google": _google(6, 384, 12),
    "albert_base_zh_google": _google(12, 768, 12, activation="relu"),
}
