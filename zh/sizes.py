"""The sizes of the Chinese releases, as arguments of `AlbertBackbone`."""

from albert_tf.files import read_releases

_TABLE = read_releases()

_RELEASED = (
    "albert_tiny_zh",
    "albert_base_zh",
    "albert_large_zh",
    "albert_tiny_zh_google",
    "albert_small_zh_google",
    "albert_base_zh_google",
)

SIZES = {
    **{name: _TABLE[name]["arguments"] for name in _RELEASED},
    "albert_xlarge_zh": _TABLE["albert_xlarge_zh_183k"]["arguments"],
    # Ours: `examples/albert_micro_zh`, 2.6 M parameters.
    "albert_micro_zh": {
        "vocabulary_size": 8000,
        "num_layers": 4,
        "num_heads": 5,
        "embedding_dim": 128,
        "hidden_dim": 320,
        "intermediate_dim": 1280,
        "max_sequence_length": 512,
        "normalize_first": True,
        # A step takes a quarter less time than with GELU on a CPU, and learns as fast.
        "activation": "relu",
    },
    # Configured by its authors, never released.
    "albert_xxlarge_zh": {
        **_TABLE["albert_xlarge_zh_183k"]["arguments"],
        "num_layers": 12,
        "num_heads": 64,
        "hidden_dim": 4096,
        "intermediate_dim": 16384,
        "normalize_first": True,
    },
}
