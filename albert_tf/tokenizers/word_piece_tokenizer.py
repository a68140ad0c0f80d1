import os
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from albert_tf.files import decode_utf8, write_text
from albert_tf.tokenizers.python_engine import PythonEngine
from albert_tf.tokenizers.text_tokenizer import SPECIAL_NAMES, TextTokenizer
from albert_tf.tokenizers.word_piece_graph import Cleaning, WordPieceGraph, tf_text
from albert_tf_lite import word_piece as lite
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.lines import BLANKS, vocabulary_tokens
from albert_tf_lite.pointers import read_bytes

# Characters that are written without spaces: ideographs, kana, full-width forms and
# their punctuation.
UNSPACED = (
    r"\x{2014}\x{2018}-\x{201d}\x{2026}\x{2e80}-\x{312f}\x{3190}-\x{9fff}"
    r"\x{f900}-\x{faff}\x{fe30}-\x{fe4f}\x{ff00}-\x{ff9f}\x{20000}-\x{3ffff}"
)

# RE2 repeats no more than 1,000 times.
LONGEST = 999


@keras.saving.register_keras_serializable(package="albert_tf")
class WordPieceTokenizer(TextTokenizer):
    """BERT's WordPiece tokenizer as TensorFlow ops.

    The ids are those of the original Python tokenizer (`BasicTokenizer` and
    `WordpieceTokenizer` of google-research/bert, which albert_zh uses) for Chinese and
    any other text. Other tokenizers in the graph fold full-width letters and
    punctuation, which changes Chinese text.

    Text is UTF-8; invalid bytes are skipped. By default names of special tokens in the
    text are ordinary text, as in the original: `"[MASK]"` becomes `[`, `mask`, `]`.

    Without tensorflow-text, as on Windows, the ops call Python. A graph with them
    cannot be saved.

    Args:
        vocabulary: path of a `vocab.txt` (one token per line, a second column is
            ignored) or a list of tokens; the line number is the id. It must contain
            `[PAD]`, `[UNK]`, `[CLS]` and `[SEP]`; `[MASK]` is optional. `None` if a
            preset or `set_vocabulary()` sets it later.
        lowercase: bool. Lower-case text. `False` for cased vocabularies.
        dtype: `"int32"` or `"int64"` for ids, `"string"` for pieces.
        special_tokens_in_strings: bool. Map names of special tokens in the text to
            their ids.
        strip_accents: optional bool. Strip accents. By default if `lowercase`.
        tokenize_chinese_chars: bool. Make each ideograph a word.
        max_input_chars_per_word: int. Longer words are `[UNK]`: 200 characters in the
            original, 100 in transformers.
        added_tokens: optional dict of tokens of the vocabulary that are found in a text
            as they are, before it is cleaned, like those of transformers; to True for
            tokens that are found in any case if `lowercase`.

    Call arguments:
        inputs: strings of any shape.

    Returns:
        A tensor `[tokens]` for a string, a `tf.RaggedTensor` `[batch, (tokens)]` for a
        batch `[batch]`.

    Raises:
        FileNotFoundError: if the file does not exist.
        AlbertError: if the file is damaged or lacks a required token, or
            `max_input_chars_per_word` is not an integer from 1 to 999.

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
    source_hint = "Use the vocab.txt that came with the checkpoint."
    settings = (
        *TextTokenizer.settings,
        "strip_accents",
        "tokenize_chinese_chars",
        "max_input_chars_per_word",
        "added_tokens",
    )

    def __init__(
        self,
        vocabulary: str | os.PathLike | Sequence[str] | None = None,
        lowercase: bool = True,
        dtype: str = "int32",
        special_tokens_in_strings: bool = False,
        strip_accents: bool | None = None,
        tokenize_chinese_chars: bool = True,
        max_input_chars_per_word: int = lite.MAX_INPUT_CHARS_PER_WORD,
        added_tokens: dict[str, bool] | None = None,
        **kwargs: Any,
    ):
        longest = max_input_chars_per_word
        if type(longest) is not int or not 0 < longest <= LONGEST:
            raise AlbertError(
                "`max_input_chars_per_word` must be an integer from 1 to "
                f"{LONGEST}. Received: {longest!r}"
            )
        self.strip_accents = strip_accents
        self.tokenize_chinese_chars = tokenize_chinese_chars
        self.max_input_chars_per_word = longest
        self.added_tokens = dict(added_tokens or {})
        super().__init__(
            vocabulary, lowercase, dtype, special_tokens_in_strings, **kwargs
        )

    def set_vocabulary(
        self, vocabulary: str | os.PathLike | Sequence[str] | None
    ) -> None:
        """Set the vocabulary: the path of a `vocab.txt`, or a list of tokens."""
        self.set_source(vocabulary)

    @property
    def source(self) -> list[str]:
        return self.get_vocabulary()

    def _read(self, source):
        if isinstance(source, (str, os.PathLike)):
            name = f"Vocabulary file '{os.fspath(source)}'"
            tokens = read_tokens(source, name)
        else:
            name = "The list of tokens"
            tokens = [token.strip(BLANKS) for token in source]
        special = {getattr(self, f"{x}_token") for x in SPECIAL_NAMES}
        if not {*tokens} - {"", *special}:
            raise AlbertError(
                f"{name} is empty or cut short: it has no other tokens than special "
                f"ones. {self.source_hint}"
            )
        if missing := sorted({*self.added_tokens} - {*tokens}):
            raise AlbertError(
                f"{name} lacks {missing[:5]} of `added_tokens`. Append them to it."
            )
        return Vocabulary(tokens), name

    def _write(self, path):
        text = "".join(f"{token}\n" for token in self.get_vocabulary())
        write_text(path, text)

    def _engine(self, vocabulary):
        if tf_text is None:
            return PythonEngine(
                lite.WordPieceTokenizer(
                    vocabulary.tokens,
                    self.lowercase,
                    self.strip_accents,
                    self.tokenize_chinese_chars,
                    self.max_input_chars_per_word,
                )
            )
        cleaning = Cleaning(
            self.lowercase,
            lite.strips_accents(self.lowercase, self.strip_accents),
            self.tokenize_chinese_chars,
            self.max_input_chars_per_word,
        )
        return WordPieceGraph(vocabulary.tokens, cleaning)

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
    """Tokens by id and ids by token."""

    def __init__(self, tokens: list[str]):
        self.tokens = tokens
        # The original keeps the last row of a repeated token.
        self.ids = {token: i for i, token in enumerate(tokens)}


def read_tokens(path: str | os.PathLike, source: str) -> list[str]:
    hint = "Save it as UTF-8; the name of a SentencePiece model must end in .model."
    return vocabulary_tokens(decode_utf8(read_bytes(path), source, hint))
