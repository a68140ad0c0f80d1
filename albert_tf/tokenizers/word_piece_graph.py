"""WordPiece as operations of TensorFlow and TensorFlow Text."""

import functools
import unicodedata
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from albert_tf.quiet_import import import_tensorflow_text
from albert_tf.tokenizers.alignment import CONTROL, Alignment
from albert_tf.tokenizers.text_tokenizer import map_rows
from albert_tf_lite.word_piece import IDEOGRAPHS

tf_text = import_tensorflow_text()

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
# RE2 runs out of memory on more repetitions of a class in a whole line.
LONG_RUN = 200

# Marks are control characters, which cleaned text does not contain.
UNKNOWN_MARK = "\x01"
SPACE_MARK = "\x0b"
UNREACHABLE_MARK = "\x02"


class WordPieceGraph:
    """Engine of WordPiece in the graph.

    Args:
        tokens: the tokens by id; the last row of a repeated token counts.
        cleaning: the `Cleaning`.
    """

    def __init__(self, tokens: Sequence[str], cleaning: "Cleaning"):
        ids = {token: i for i, token in enumerate(tokens)}
        # FastWordpiece refuses repeated tokens and, unlike the original, finds tokens
        # that contain white space. Rows that the original never returns get a name that
        # cleaned text cannot contain.
        rows = tuple(
            token
            if ids[token] == i and is_reachable(token)
            else f"{UNREACHABLE_MARK}{i}"
            for i, token in enumerate(tokens)
        )
        self._cleaning = cleaning
        splits = cleaning.splits_ideographs
        engine = fast_word_piece(rows, cleaning.longest_word, splits)
        self._engine = engine if splits else WordEngine(engine)

    def encode(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Return the ids of strings [batch], ragged."""
        return self._engine.tokenize(self._cleaning.normalize(text))

    def encode_with_offsets(self, text: tf.Tensor) -> tuple[tf.RaggedTensor, ...]:
        """Return ids, starts and ends of strings [batch], all ragged."""
        normalized = self._cleaning.normalize(text)
        ids, *offsets = self._engine.tokenize_with_offsets(normalized)
        alignment = Alignment(text, self._cleaning.clean)
        starts, ends = (cleaned_positions(normalized, x) for x in offsets)
        return ids, *alignment.spans(alignment.sizes, starts, ends)


# A pipeline or a comparison loads tokenizers of the same vocabulary again and again.
@functools.lru_cache(maxsize=4)
def fast_word_piece(rows: tuple[str, ...], longest_word: int, splits: bool) -> Any:
    """Build the engine of TensorFlow Text, which has no state."""
    with tf.init_scope(), tf.device("cpu"):
        return tf_text.FastWordpieceTokenizer(
            list(rows),
            # A character has at most four bytes.
            max_bytes_per_word=4 * longest_word,
            token_out_type=tf.int32,
            no_pretokenization=not splits,
        )


class WordEngine:
    """Split cleaned text at white space and punctuation alone, then into pieces."""

    def __init__(self, engine: Any):
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
        separators, ideographs = SEPARATORS, ""
        if splits_ideographs:
            separators, ideographs = SEPARATORS + PLAIN_IDEOGRAPHS, CJK
        run = min(longest_word, LONG_RUN)
        word = rf"[0-9A-Za-z\x{{ff10}}-\x{{ff19}}]{{0,{run}}}"
        # Most lines of Chinese text match and need ASCII lower-casing only.
        self._plain_text = f"(?:{word}[{separators}])*{word}"
        # This cheap superset finds the few candidates for long words.
        self._long_run = rf"(?s).*[^{separators}]{{{run + 1}}}.*"
        self._long_word = f"([^{WHITE_SPACE}]{{{longest_word + 1}}})"
        self._standalone = f"([{PUNCTUATION}{ideographs}])"

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
