"""BERT's clean-up of text as TensorFlow ops, and offsets in the original text."""

from collections.abc import Callable

import tensorflow as tf
import tensorflow_text as tf_text

MAX_CHARACTERS_PER_WORD = 100

# Ranges of the original's `_is_chinese_char` that need no normalisation, and common
# punctuation of Chinese text. Each of these characters is a token.
SEPARATORS = (
    r"\t\n\r -/:-@\[-`{-~\x{2010}-\x{2027}\x{3000}-\x{3003}\x{3008}-\x{3011}"
    r"\x{3400}-\x{4dbf}\x{4e00}-\x{9fff}\x{ff01}-\x{ff03}\x{ff05}-\x{ff0a}"
    r"\x{ff0c}-\x{ff0f}\x{ff1a}\x{ff1b}\x{ff1f}\x{ff20}"
)
PLAIN_WORD = r"[0-9A-Za-z\x{ff10}-\x{ff19}]{0,100}"
# Most lines of Chinese text match and need ASCII lower-casing only.
PLAIN_TEXT = f"(?:{PLAIN_WORD}[{SEPARATORS}])*{PLAIN_WORD}"
CONTROL = r"[\x00-\x08\x{0b}\x{0c}\x{0e}-\x1f\x7f-\x{9f}\p{Cf}\x{fffd}]+"
ACCENT = r"\p{Mn}"
CJK = (
    r"\x{3400}-\x{4dbf}\x{4e00}-\x{9fff}\x{f900}-\x{faff}\x{20000}-\x{2a6df}"
    r"\x{2a700}-\x{2ceaf}\x{2f800}-\x{2fa1f}"
)
STANDALONE = rf"([!-/:-@\[-`{{-~\p{{P}}{CJK}])"
# This cheap superset finds the few candidates for the exact rule, because RE2 runs out
# of memory on `{101}` of the exact class of word characters.
MAYBE_LONG_WORD = rf"(?s).*[^{SEPARATORS}]{{101}}.*"
LONG_WORD = r"([^\t\n\x0b\r \p{Z}]{101})"

# Marks are control characters, which cleaned text does not contain.
UNKNOWN_MARK = "\x01"
SPACE_MARK = "\x0b"
UNREACHABLE_MARK = "\x02"


def map_rows(
    function: Callable[[tf.Tensor], tf.Tensor], text: tf.Tensor, rows: tf.Tensor
) -> tf.Tensor:
    """Apply a function to the strings where `rows` is true."""
    indices = tf.where(rows)
    return tf.tensor_scatter_nd_update(
        text, indices, function(tf.gather_nd(text, indices))
    )


def normalize(text: tf.Tensor, lowercase: bool) -> tf.Tensor:
    """Clean text so that FastWordpiece finds the words of the original tokenizer."""
    plain = tf.strings.regex_full_match(text, PLAIN_TEXT)
    cleaned = map_rows(
        lambda rows: mark_long_words(clean(rows, lowercase)), text, ~plain
    )
    return tf.strings.lower(cleaned) if lowercase else cleaned


def clean(text: tf.Tensor, lowercase: bool) -> tf.Tensor:
    text = tf.strings.unicode_transcode(text, "UTF-8", "UTF-8", errors="ignore")
    text = tf.strings.regex_replace(text, CONTROL, "")
    if not lowercase:
        return text
    # ASCII first, because the other form depends on the locale of the process: in
    # Turkish the small letter of "I" has no dot.
    text = tf.strings.lower(tf.strings.lower(text), encoding="utf-8")
    text = tf_text.normalize_utf8(text, "NFD")
    return tf.strings.regex_replace(text, f"{ACCENT}+", "")


def mark_long_words(text: tf.Tensor) -> tf.Tensor:
    """Mark words over 100 characters, which are unknown in every vocabulary."""

    def mark(rows):
        spaced = f"{SPACE_MARK}\\1{SPACE_MARK}"
        rows = tf.strings.regex_replace(rows, STANDALONE, spaced)
        return tf.strings.regex_replace(rows, LONG_WORD, f"{UNKNOWN_MARK}\\1")

    return map_rows(mark, text, tf.strings.regex_full_match(text, MAYBE_LONG_WORD))


def original_offsets(
    text: tf.Tensor,
    normalized: tf.Tensor,
    starts: tf.RaggedTensor,
    ends: tf.RaggedTensor,
    lowercase: bool,
) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
    """Map byte offsets in normalised text to characters of the original."""
    characters = tf.strings.unicode_decode(text, "UTF-8", errors="ignore")
    sizes, is_accent = cleaned_sizes(characters.flat_values, lowercase)
    # [bytes] the character that each byte of the cleaned batch comes from.
    origin = tf.repeat(tf.range(tf.size(sizes)), sizes)
    row = starts.value_rowids()
    offsets = tf.stack([starts.values, ends.values - 1])
    first, last = tf.unstack(
        tf.gather(origin, cleaned_position(normalized, offsets, row))
    )
    row_start = tf.cast(tf.gather(characters.row_starts(), row), tf.int32)
    row_limit = tf.cast(tf.gather(characters.row_limits(), row), tf.int32)
    end = tf.minimum(tf.gather(next_base(is_accent), last), row_limit)
    return (
        starts.with_values(first - row_start),
        starts.with_values(end - row_start),
    )


def cleaned_sizes(
    characters: tf.Tensor, lowercase: bool
) -> tuple[tf.Tensor, tf.Tensor]:
    """Return the cleaned bytes of each character, and whether it is a stripped accent.

    Clean-up acts on single characters, except for the order of marks and the form of a
    final sigma, which change no size.
    """
    unique, index = tf.unique(characters)
    unique = tf.strings.unicode_encode(unique[:, tf.newaxis], "UTF-8")
    sizes = tf.strings.length(clean(unique, lowercase))
    is_accent = tf.strings.regex_full_match(unique, ACCENT) & (sizes == 0)
    return tf.gather(sizes, index), tf.gather(is_accent, index)


def cleaned_position(
    normalized: tf.Tensor, offsets: tf.Tensor, row: tf.Tensor
) -> tf.Tensor:
    """Return positions in all cleaned bytes of the batch, without the marks."""
    data = tf.io.decode_raw(tf.strings.reduce_join(normalized), tf.uint8)
    is_mark = (data == ord(UNKNOWN_MARK)) | (data == ord(SPACE_MARK))
    marks_before = tf.cumsum(tf.cast(is_mark, tf.int32), exclusive=True)
    row_start = tf.cumsum(tf.strings.length(normalized), exclusive=True)
    position = tf.gather(row_start, row) + tf.cast(offsets, tf.int32)
    return position - tf.gather(marks_before, position)


def next_base(is_accent: tf.Tensor) -> tf.Tensor:
    """Return the index of the first character after each that is not an accent."""
    is_base = tf.logical_not(is_accent)
    bases = tf.cast(tf.where(is_base)[:, 0], tf.int32)
    bases = tf.concat([bases, [tf.size(is_accent)]], axis=0)
    return tf.gather(bases, tf.cumsum(tf.cast(is_base, tf.int32)))
