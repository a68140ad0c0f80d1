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
            `WordPieceTokenizer`; or path of a SentencePiece model or its content
            as bytes, for a `SentencePieceTokenizer`. A path that ends in `.model`
            or `.spm` is taken for a SentencePiece model, any other one looked
            into.
        lowercase: bool. Whether to lower-case text.

    Returns:
        A `WordPieceTokenizer` or a `SentencePieceTokenizer`.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is damaged, or lacks tokens that every model needs.
    """
    if isinstance(vocabulary, bytes) or _is_sentence_piece_model(vocabulary):
        return SentencePieceTokenizer(vocabulary, lowercase=lowercase)
    return WordPieceTokenizer(vocabulary, lowercase=lowercase)


def _is_sentence_piece_model(vocabulary):
    if not isinstance(vocabulary, (str, os.PathLike)):
        return False
    if os.fspath(vocabulary).endswith(MODEL_ENDINGS):
        return True
    if not os.path.isfile(vocabulary):
        return False
    with open(vocabulary, "rb") as file:
        head = file.read(1024)
    # The first field of the first piece, and numbers among the text.
    return head.startswith(b"\n") and b"\0" in head
