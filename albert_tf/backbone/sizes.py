"""Sizes of the releases of ALBERT, as arguments of `AlbertBackbone`."""

from typing import Any


def albert_size(
    num_layers: int,
    hidden_dim: int,
    num_heads: int,
    vocabulary_size: int,
    intermediate_dim: int | None = None,
    embedding_dim: int = 128,
    **other: Any,
) -> dict[str, Any]:
    """Return the arguments of `AlbertBackbone`; `intermediate_dim` is `4 * hidden_dim`.

    Example:
    ```python
    AlbertBackbone(**albert_size(4, 312, 12, vocabulary_size=21128))
    ```
    """
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


# Table 2 of the paper.
SIZES = {
    "albert_base_en": _english(12, 768, 12),
    "albert_large_en": _english(24, 1024, 16),
    "albert_xlarge_en": _english(24, 2048, 16),
    "albert_xxlarge_en": _english(12, 4096, 64),
}
