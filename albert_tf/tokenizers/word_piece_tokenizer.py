import os
import unicodedata
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf
import tensorflow_text as tf_text

from albert_tf.files import decode_utf8
from albert_tf.tokenizers.normalization import (
    MAX_CHARACTERS_PER_WORD,
    UNREACHABLE_MARK,
    normalize,
    original_offsets,
)
from albert_tf.tokenizers.text_tokenizer import TextTokenizer
from albert_tf_lite.errors import AlbertError

REQUIRED_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
BLANKS = " \t\r\n"
# Characters that are written without spaces: ideographs, kana, full-width forms and
# their punctuation.
UNSPACED = (
    r"\x{2014}\x{2018}-\x{201d}\x{2026}\x{2e80}-\x{312f}\x{3190}-\x{9fff}"
    r"\x{f900}-\x{faff}\x{fe30}-\x{fe4f}\x{ff00}-\x{ff9f}\x{20000}-\x{3ffff}"
)


@keras.saving.register_keras_serializable(package="albert_tf")
class WordPieceTokenizer(TextTokenizer):
    """BERT's WordPiece tokenizer as TensorFlow ops.

    The ids are those of the original Python tokenizer (`BasicTokenizer` and
    `WordpieceTokenizer` of google-research/bert, which albert_zh uses) for Chinese and
    any other text. Other tokenizers in the graph fold full-width letters and
    punctuation, which changes Chinese text.

    Text is UTF-8; invalid bytes are skipped. Names of special tokens in the text are
    ordinary text, as in the original: `"[MASK]"` becomes `[`, `mask`, `]`.

    Args:
        vocabulary: path of a `vocab.txt` (one token per line, a second column is
            ignored) or a list of tokens; the line number is the id. It must contain
            `[PAD]`, `[UNK]`, `[CLS]` and `[SEP]`; `[MASK]` is optional. `None` if a
            preset or `set_vocabulary()` sets it later.
        lowercase: bool. Lower-case text and strip accents. `False` for cased
            vocabularies.
        dtype: `"int32"` or `"int64"` for ids, `"string"` for pieces.

    Call arguments:
        inputs: strings of any shape.

    Returns:
        A tensor `[tokens]` for a string, a `tf.RaggedTensor` `[batch, (tokens)]` for a
        batch `[batch]`.

    Raises:
        FileNotFoundError: if the file does not exist.
        AlbertError: if the file is damaged or lacks a required token.

    Example:

    >>> tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "你", "好", "he", "##y"]
    >>> tokenizer = WordPieceTokenizer(tokens)
    >>> tokenizer(["Hey，你好", "你 好"])
    <tf.RaggedTensor [[6, 7, 1, 4, 5], [4, 5]]>
    >>> tokenizer.detokenize([6, 7, 4, 5]).numpy().decode()
    'hey 你好'

    Reference:
        - [Devlin et al., 2018](https://arxiv.org/abs/1810.04805)
        - [Song et al., 2020](https://arxiv.org/abs/2012.15524)
    """

    pad_token = "[PAD]"
    unk_token = "[UNK]"

    asset_file_name = "vocabulary.txt"
    original_file_name = "vocab.txt"
    source_argument = "vocabulary"

    def __init__(
        self,
        vocabulary: str | os.PathLike | Sequence[str] | None = None,
        lowercase: bool = True,
        dtype: str = "int32",
        **kwargs: Any,
    ):
        super().__init__(lowercase=lowercase, dtype=dtype, **kwargs)
        self.set_vocabulary(vocabulary)

    def set_vocabulary(
        self, vocabulary: str | os.PathLike | Sequence[str] | None
    ) -> None:
        """Set the vocabulary from a file path or a list of tokens."""
        self._set_source(vocabulary)

    def _read(self, source):
        return Vocabulary(source)

    def _write(self, path):
        tokens = self.get_vocabulary()
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{token}\n" for token in tokens)

    def _tokenize_batch(self, text):
        return self._vocabulary.engine.tokenize(normalize(text, self.lowercase))

    def _tokenize_batch_with_offsets(self, text):
        normalized = normalize(text, self.lowercase)
        ids, *offsets = self._vocabulary.engine.tokenize_with_offsets(normalized)
        return ids, *original_offsets(text, normalized, *offsets, self.lowercase)

    def _join(self, pieces):
        text = tf.strings.reduce_join(pieces, axis=-1, separator=" ")
        text = tf.strings.regex_replace(text, "(^| +)##", "")
        text = tf.strings.strip(tf.strings.regex_replace(text, " +", " "))
        # Twice, because matches do not overlap.
        for _ in range(2):
            text = tf.strings.regex_replace(
                text, f"([{UNSPACED}]) ([{UNSPACED}])", r"\1\2"
            )
        return text


class Vocabulary:
    """Tokens by id, ids by token, and the WordPiece engine."""

    def __init__(self, vocabulary: str | os.PathLike | Sequence[str]):
        if isinstance(vocabulary, (str, os.PathLike)):
            source = f"Vocabulary file '{os.fspath(vocabulary)}'"
            self.tokens = read_tokens(vocabulary, source)
        else:
            source = "The list of tokens"
            self.tokens = check_tokens(vocabulary)
        # The original keeps the last row of a repeated token.
        self.ids = {token: i for i, token in enumerate(self.tokens)}
        missing = [token for token in REQUIRED_TOKENS if token not in self.ids]
        if missing:
            begin = f"its {len(self.tokens)} tokens begin with {self.tokens[:4]}"
            raise AlbertError(
                f"{source} lacks {' '.join(missing)}; "
                f"{begin if self.tokens else 'it is empty'}. "
                "Use the vocab.txt that came with the checkpoint."
            )
        try:
            self.engine = build_engine(self.tokens, self.ids)
        except RuntimeError as error:
            raise AlbertError(
                f"{source} has special tokens only and may be cut short. Use the "
                "vocab.txt that came with the checkpoint."
            ) from error


def read_tokens(path: str | os.PathLike, source: str) -> list[str]:
    if not os.path.isfile(path):
        raise FileNotFoundError(
            f"{source} does not exist or is not a file. Expected a text file with one "
            "token per line, such as the vocab.txt of a release."
        )
    with open(path, "rb") as file:
        content = file.read()
    hint = "Save it as UTF-8; the name of a SentencePiece model must end in .model."
    text = decode_utf8(content, source, hint)
    # Not splitlines(): U+2028 is a token of the released vocabularies.
    rows = [row.strip(BLANKS).replace("\t", " ") for row in text.split("\n")]
    tokens = [row.split(" ", 1)[0] for row in rows]
    while tokens and not tokens[-1]:
        tokens.pop()
    return tokens


def check_tokens(tokens: Sequence[str]) -> list[str]:
    tokens = [t.strip(BLANKS) if isinstance(t, str) else t for t in tokens]
    for i, token in enumerate(tokens):
        if not isinstance(token, str) or any(blank in token for blank in BLANKS):
            raise AlbertError(
                f"Token {i} of the list is {token!r}. Expected a string without "
                "spaces, tabs and line ends."
            )
    return tokens


def build_engine(
    tokens: list[str], ids: dict[str, int]
) -> tf_text.FastWordpieceTokenizer:
    # FastWordpiece refuses repeated tokens and, unlike the original, finds tokens that
    # contain white space. Rows that the original never returns get a name that cleaned
    # text cannot contain.
    rows = [
        token if ids[token] == i and is_reachable(token) else f"{UNREACHABLE_MARK}{i}"
        for i, token in enumerate(tokens)
    ]
    with tf.init_scope(), tf.device("cpu"):
        return tf_text.FastWordpieceTokenizer(
            rows,
            # In bytes. A word of 100 characters has at most 400.
            max_bytes_per_word=4 * MAX_CHARACTERS_PER_WORD,
            token_out_type=tf.int32,
        )


def is_reachable(token: str) -> bool:
    length = len(token.removeprefix("##"))
    return 0 < length <= MAX_CHARACTERS_PER_WORD and not any(
        unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp", "Zs") for c in token
    )
