import os
import pathlib
import unicodedata
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf
import tensorflow_text as tf_text

from albert_tf.files import decode_utf8
from albert_tf.tokenizers.alignment import CONTROL, Alignment
from albert_tf.tokenizers.text_tokenizer import TextTokenizer, map_rows
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.word_piece import IDEOGRAPHS, MAX_INPUT_CHARS_PER_WORD

BLANKS = " \t\r\n"
# Characters that are written without spaces: ideographs, kana, full-width forms and
# their punctuation.
UNSPACED = (
    r"\x{2014}\x{2018}-\x{201d}\x{2026}\x{2e80}-\x{312f}\x{3190}-\x{9fff}"
    r"\x{f900}-\x{faff}\x{fe30}-\x{fe4f}\x{ff00}-\x{ff9f}\x{20000}-\x{3ffff}"
)

# White space and common punctuation of Chinese text, none of which is part of a word.
SEPARATORS = (
    r"\t\n\r -/:-@\[-`{-~\x{2010}-\x{2027}\x{3000}-\x{3003}\x{3008}-\x{3011}"
    r"\x{ff01}-\x{ff03}\x{ff05}-\x{ff0a}\x{ff0c}-\x{ff0f}\x{ff1a}\x{ff1b}\x{ff1f}"
    r"\x{ff20}"
)
# Ranges of the original's `_is_chinese_char` that need no normalisation.
PLAIN_IDEOGRAPHS = r"\x{3400}-\x{4dbf}\x{4e00}-\x{9fff}"
CJK = "".join(f"\\x{{{x[0]:x}}}-\\x{{{x[-1]:x}}}" for x in IDEOGRAPHS)
WHITE_SPACE = r"\t\n\x0b\r \p{Z}"
PUNCTUATION = r"!-/:-@\[-`{-~\p{P}"
# RE2 repeats no more than 1,000 times.
LONGEST = 999
# It runs out of memory on more repetitions of a class in a whole line.
LONG_RUN = 200

# Marks are control characters, which cleaned text does not contain.
UNKNOWN_MARK = "\x01"
SPACE_MARK = "\x0b"
UNREACHABLE_MARK = "\x02"


@keras.saving.register_keras_serializable(package="albert_tf")
class WordPieceTokenizer(TextTokenizer):
    """BERT's WordPiece tokenizer as TensorFlow ops.

    The ids are those of the original Python tokenizer (`BasicTokenizer` and
    `WordpieceTokenizer` of google-research/bert, which albert_zh uses) for Chinese and
    any other text. Other tokenizers in the graph fold full-width letters and
    punctuation, which changes Chinese text.

    Text is UTF-8; invalid bytes are skipped. By default names of special tokens in the
    text are ordinary text, as in the original: `"[MASK]"` becomes `[`, `mask`, `]`.

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
        *("strip_accents", "tokenize_chinese_chars", "max_input_chars_per_word"),
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
        max_input_chars_per_word: int = MAX_INPUT_CHARS_PER_WORD,
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
        strips = lowercase if strip_accents is None else strip_accents
        self._cleaning = Cleaning(lowercase, strips, tokenize_chinese_chars, longest)
        settings = lowercase, dtype, special_tokens_in_strings
        super().__init__(vocabulary, *settings, **kwargs)

    set_vocabulary = TextTokenizer.set_source

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
        if missing := sorted({*self.added_tokens} - {*tokens}):
            raise AlbertError(
                f"{name} lacks {missing[:5]} of `added_tokens`. Append them to it."
            )
        return Vocabulary(tokens, name, self._cleaning), name

    def _write(self, path):
        text = "".join(f"{token}\n" for token in self.get_vocabulary())
        pathlib.Path(path).write_text(text, "utf-8", newline="\n")

    def _tokenize_batch(self, text):
        return self._vocabulary.engine.tokenize(self._cleaning.normalize(text))

    def _tokenize_batch_with_offsets(self, text):
        normalized = self._cleaning.normalize(text)
        ids, *offsets = self._vocabulary.engine.tokenize_with_offsets(normalized)
        alignment = Alignment(text, self._cleaning.clean)
        starts, ends = (cleaned_positions(normalized, x) for x in offsets)
        return ids, *alignment.spans(alignment.sizes, starts, ends)

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

    def __init__(self, tokens: list[str], source: str, cleaning: "Cleaning"):
        self.tokens = tokens
        # The original keeps the last row of a repeated token.
        self.ids = {token: i for i, token in enumerate(tokens)}
        # FastWordpiece refuses repeated tokens and, unlike the original, finds tokens
        # that contain white space. Rows that the original never returns get a name that
        # cleaned text cannot contain.
        rows = [
            token
            if self.ids[token] == i and is_reachable(token)
            else f"{UNREACHABLE_MARK}{i}"
            for i, token in enumerate(tokens)
        ]
        try:
            with tf.init_scope(), tf.device("cpu"):
                splits = cleaning.splits_ideographs
                engine = tf_text.FastWordpieceTokenizer(
                    rows,
                    # A character has at most four bytes.
                    max_bytes_per_word=4 * cleaning.longest_word,
                    token_out_type=tf.int32,
                    no_pretokenization=not splits,
                )
                self.engine = engine if splits else WordEngine(engine)
        except RuntimeError as error:
            raise AlbertError(
                f"{source} is empty or cut short: it has no [UNK], or no other tokens "
                f"than special ones. {WordPieceTokenizer.source_hint}"
            ) from error


def read_tokens(path: str | os.PathLike, source: str) -> list[str]:
    hint = "Save it as UTF-8; the name of a SentencePiece model must end in .model."
    text = decode_utf8(pathlib.Path(path).read_bytes(), source, hint)
    # Not splitlines(): U+2028 is a token of the released vocabularies.
    lines = text.split("\n" if "\n" in text else "\r")
    rows = [line.strip(BLANKS).replace("\t", " ") for line in lines]
    tokens = [row.split(" ", 1)[0] for row in rows]
    while tokens and not tokens[-1]:
        tokens.pop()
    return tokens


class WordEngine:
    """Split cleaned text at white space and punctuation alone, then into pieces."""

    def __init__(self, engine: tf_text.FastWordpieceTokenizer):
        self._engine = engine

    def tokenize(self, text: tf.Tensor) -> tf.RaggedTensor:
        return self.tokenize_with_offsets(text)[0]

    def tokenize_with_offsets(self, text: tf.Tensor) -> list[tf.RaggedTensor]:
        words, begins, _ = tf_text.regex_split_with_offsets(
            text, f"[{WHITE_SPACE}{PUNCTUATION}]", f"[{PUNCTUATION}]"
        )
        ids, *offsets = self._engine.tokenize_with_offsets(words)
        offsets = [x + begins[..., tf.newaxis] for x in offsets]
        return [x.merge_dims(1, 2) for x in (ids, *offsets)]


def is_reachable(token: str) -> bool:
    return token not in ("", "##") and not any(
        unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp", "Zs") for c in token
    )


# === Clean-up ===


class Cleaning:
    """Clean text so that FastWordpiece finds the words of the original tokenizer."""

    def __init__(
        self,
        lowercase: bool,
        strips_accents: bool,
        splits_ideographs: bool,
        longest_word: int,
    ):
        self.lowercase = lowercase
        self.strips_accents = strips_accents
        self.splits_ideographs = splits_ideographs
        self.longest_word = longest_word
        separators = SEPARATORS + PLAIN_IDEOGRAPHS * splits_ideographs
        run = min(longest_word, LONG_RUN)
        word = rf"[0-9A-Za-z\x{{ff10}}-\x{{ff19}}]{{0,{run}}}"
        # Most lines of Chinese text match and need ASCII lower-casing only.
        self._plain_text = f"(?:{word}[{separators}])*{word}"
        # This cheap superset finds the few candidates for long words.
        self._long_run = rf"(?s).*[^{separators}]{{{run + 1}}}.*"
        self._long_word = f"([^{WHITE_SPACE}]{{{longest_word + 1}}})"
        self._standalone = f"([{PUNCTUATION}{CJK * splits_ideographs}])"

    def normalize(self, text: tf.Tensor) -> tf.Tensor:
        plain = tf.strings.regex_full_match(text, self._plain_text)
        cleaned = map_rows(lambda x: self._mark_long_words(self.clean(x)), text, ~plain)
        return tf.strings.lower(cleaned) if self.lowercase else cleaned

    def clean(self, text: tf.Tensor) -> tf.Tensor:
        text = tf.strings.unicode_transcode(text, "UTF-8", "UTF-8", errors="ignore")
        text = tf.strings.regex_replace(text, CONTROL, "")
        if self.lowercase:
            # ASCII first, because the other form depends on the locale of the process:
            # in Turkish the small letter of "I" has no dot.
            text = tf.strings.lower(tf.strings.lower(text), encoding="utf-8")
        if self.strips_accents:
            text = tf_text.normalize_utf8(text, "NFD")
            text = tf.strings.regex_replace(text, r"\p{Mn}+", "")
        return text

    def _mark_long_words(self, text: tf.Tensor) -> tf.Tensor:
        """Mark words of too many characters, which are unknown in every vocabulary."""

        def mark(rows):
            spaced = f"{SPACE_MARK}\\1{SPACE_MARK}"
            rows = tf.strings.regex_replace(rows, self._standalone, spaced)
            return tf.strings.regex_replace(rows, self._long_word, f"{UNKNOWN_MARK}\\1")

        return map_rows(mark, text, tf.strings.regex_full_match(text, self._long_run))


def cleaned_positions(
    normalized: tf.Tensor, offsets: tf.RaggedTensor
) -> tf.RaggedTensor:
    """Return positions in all cleaned bytes of the batch, without the marks."""
    data = tf.io.decode_raw(tf.strings.reduce_join(normalized), tf.uint8)
    is_mark = (data == ord(UNKNOWN_MARK)) | (data == ord(SPACE_MARK))
    marks_before = tf.concat([[0], tf.cumsum(tf.cast(is_mark, tf.int32))], axis=0)
    row_start = tf.cumsum(tf.strings.length(normalized), exclusive=True)
    position = tf.gather(row_start, offsets.value_rowids())
    position += tf.cast(offsets.values, tf.int32)
    return offsets.with_values(position - tf.gather(marks_before, position))
