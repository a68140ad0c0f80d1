import os
from collections.abc import Sequence

from albert_tf.tokenizers.sentence_piece_tokenizer import SentencePieceTokenizer
from albert_tf.tokenizers.word_piece_tokenizer import WordPieceTokenizer

MODEL_ENDINGS = (".model", ".spm")


def load_tokenizer(
    vocabulary: str | os.PathLike | bytes | Sequence[str], lowercase: bool = True
) -> WordPieceTokenizer | SentencePieceTokenizer:
    """The tokenizer that a vocabulary is for.

    Args:
        vocabulary: path of a `vocab.txt` or list of tokens, for a
            `WordPieceTokenizer`; or path of a SentencePiece model, which ends in
            `.model` or `.spm`, or its content as bytes, for a
            `SentencePieceTokenizer`.
        lowercase: bool. Whether to lower-case text.

    Returns:
        A `WordPieceTokenizer` or a `SentencePieceTokenizer`.

    Raises:
        FileNotFoundError: if there is no such file.
        AlbertError: if it is damaged, or lacks tokens that every model needs.
    """
    is_path = isinstance(vocabulary, (str, os.PathLike))
    if isinstance(vocabulary, bytes) or (
        is_path and os.fspath(vocabulary).endswith(MODEL_ENDINGS)
    ):
        return SentencePieceTokenizer(vocabulary, lowercase=lowercase)
    return WordPieceTokenizer(vocabulary, lowercase=lowercase)
