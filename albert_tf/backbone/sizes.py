"""Sizes of the releases."""

from typing import Any


def _english(num_layers: int, hidden_dim: int, num_heads: int) -> dict[str, Any]:
    """Return the sizes of an English release; all share the other ones."""
    return {
        "vocabulary_size": 30000,
        "num_layers": num_layers,
        "num_heads": num_heads,
        "embedding_dim": 128,
        "hidden_dim": hidden_dim,
        "intermediate_dim": 4 * hidden_dim,
        "embedding_projection": "after_layer_norm",
    }


# The English releases, as arguments of `AlbertBackbone`: table 2 of the paper.
SIZES = {
    "albert_base_en": _english(12, 768, 12),
    "albert_large_en": _english(24, 1024, 16),
    "albert_xlarge_en": _english(24, 2048, 16),
    "albert_xxlarge_en": _english(12, 4096, 64),
}
