"""The sizes of the Chinese releases, as arguments of `AlbertBackbone`."""

from albert_tf.backbone.sizes import albert_size
from albert_tf.checkpoints import RELEASES

# BERT-Base, Chinese: the vocabulary of every Chinese ALBERT.
VOCABULARY_SIZE = 21128

_RELEASE_OF = {"albert_xlarge_zh": "albert_xlarge_zh_183k"}
_NAMES = (
    "albert_tiny_zh",
    "albert_base_zh",
    "albert_large_zh",
    "albert_xlarge_zh",
    "albert_tiny_zh_google",
    "albert_small_zh_google",
    "albert_base_zh_google",
)

SIZES = {
    **{name: RELEASES[_RELEASE_OF.get(name, name)].arguments for name in _NAMES},
    # Ours, of 1.5 M parameters: `examples/albert_micro_zh`.
    "albert_micro_zh": albert_size(
        3,
        256,
        4,
        vocabulary_size=4607,
        embedding_dim=128,
        max_sequence_length=128,
        normalize_first=True,
        # A quarter less time a step than GELU on a CPU, and learns as fast.
        activation="relu",
    ),
    # Configured by its authors, never released.
    "albert_xxlarge_zh": albert_size(
        12, 4096, 64, vocabulary_size=VOCABULARY_SIZE, normalize_first=True
    ),
}
