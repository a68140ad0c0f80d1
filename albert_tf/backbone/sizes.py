"""The sizes ALBERT was released in, as arguments of `AlbertBackbone`."""


def albert_size(
    num_layers,
    hidden_dim,
    num_heads,
    vocabulary_size,
    intermediate_dim=None,
    embedding_dim=128,
    **other,
):
    """The arguments of `AlbertBackbone`; `intermediate_dim` is `4 * hidden_dim`."""
    return {
        "vocabulary_size": vocabulary_size,
        "num_layers": num_layers,
        "num_heads": num_heads,
        "embedding_dim": embedding_dim,
        "hidden_dim": hidden_dim,
        "intermediate_dim": intermediate_dim or 4 * hidden_dim,
        **other,
    }


def _english(*size):
    return albert_size(
        *size, vocabulary_size=30000, embedding_projection="after_layer_norm"
    )


# The paper's Table 2.
SIZES = {
    "albert_base_en": _english(12, 768, 12),
    "albert_large_en": _english(24, 1024, 16),
    "albert_xlarge_en": _english(24, 2048, 16),
    "albert_xxlarge_en": _english(12, 4096, 64),
}
