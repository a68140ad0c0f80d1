"""Google ALBERT's clean-up of text as TensorFlow ops, and offsets back through it."""

import functools
import unicodedata

import tensorflow as tf
import tensorflow_text as tf_text

from albert_tf.tokenizers.normalization import map_rows, next_base

# What Python's `str.split` takes for white space, which is not RE2's `\s`.
ODD_SPACE = (
    r"\t-\r\x1c-\x1f\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}"
    r"\x{205f}\x{3000}"
)
WHITE_SPACE = f" {ODD_SPACE}"
# Without the single spaces that `[{WHITE_SPACE}]+` would find too, at a third of
# the speed.
TOO_MUCH_SPACE = f"[{WHITE_SPACE}]*[{ODD_SPACE}][{WHITE_SPACE}]*|  +"

# Most English text holds no others, with the dashes and quotes of typesetters: it
# needs no more than ASCII lower-casing and, if it is more than a line, joining.
PLAIN_CHARACTERS = r"!-~\x{2013}\x{2014}\x{2018}-\x{201e}"
PLAIN_TEXT = rf"[ \t-\r\x1c-\x1f{PLAIN_CHARACTERS}]*"
PLAIN_LINE = f"(?:[{PLAIN_CHARACTERS}]+ )*[{PLAIN_CHARACTERS}]+"

# No character beyond the first two planes of Unicode has a combining class.
MARK_PLANES = range(0x20000)

# A noncharacter, which no text is meant to hold.
NUL_MARK = "\ufdd0"


@functools.cache
def combining_marks():
    """A RE2 class of the characters that clean-up drops.

    RE2 knows general categories such as Mn, not the canonical combining class.
    As for the original, that of the running Python counts.
    """
    marks = {code for code in MARK_PLANES if unicodedata.combining(chr(code))}
    starts = sorted(code for code in marks if code - 1 not in marks)
    ends = sorted(code for code in marks if code + 1 not in marks)
    ranges = (f"\\x{{{a:x}}}-\\x{{{b:x}}}" for a, b in zip(starts, ends, strict=True))
    return f"[{''.join(ranges)}]"


def clean_up(text, lowercase):
    """Cleans strings [batch] as google-research/albert's `preprocess_text` does."""
    is_plain = tf.strings.regex_full_match(text, PLAIN_TEXT)
    is_line = tf.strings.regex_full_match(text, PLAIN_LINE)
    text = map_rows(join_words, text, is_plain & ~is_line)
    text = map_rows(lambda rows: clean_any(rows, lowercase), text, ~is_plain)
    return tf.strings.lower(text) if lowercase else text


def clean_any(text, lowercase):
    text = tf.strings.unicode_transcode(text, "UTF-8", "UTF-8", errors="ignore")
    return decompose(join_words(text), lowercase)


def join_words(text):
    text = tf.strings.regex_replace(text, TOO_MUCH_SPACE, " ")
    # Knows only ASCII white space, of which only spaces are left.
    return tf.strings.strip(text)


def decompose(text, lowercase):
    text = tf_text.normalize_utf8(text, "NFKD")
    text = tf.strings.regex_replace(text, f"{combining_marks()}+", "")
    if not lowercase:
        return text
    # Lower-casing other than ASCII cuts the string at NUL and obeys the locale of
    # the process: in Turkish "I" has no dot, so ASCII goes first.
    text = tf.strings.regex_replace(tf.strings.lower(text), r"\x00", NUL_MARK)
    text = tf.strings.lower(text, encoding="utf-8")
    return tf.strings.regex_replace(text, NUL_MARK, "\0")


class Alignment:
    """Which characters of a batch the bytes of its cleaned form come from.

    It counts only bytes that end up in pieces. What the pieces do not show,
    white space and characters that the model's own normalisation removes, is
    blank: a span that begins or ends with blanks is so without them, and the
    bytes of a piece are as many as its span is long.

    Args:
        text: string tensor [batch], before `clean_up`.
        lowercase: bool.
        is_blank: function of cleaned characters, strings [characters].
    """

    def __init__(self, text, lowercase, is_blank):
        characters = tf.strings.unicode_decode(text, "UTF-8", errors="ignore")
        self.row_starts = tf.cast(characters.row_starts(), tf.int32)
        self.row_limits = tf.cast(characters.row_limits(), tf.int32)

        unique, index = tf.unique(characters.flat_values)
        unique = tf.strings.unicode_encode(unique[:, tf.newaxis], "UTF-8")
        cleaned = decompose(unique, lowercase)
        is_space = tf.strings.regex_full_match(unique, f"[{WHITE_SPACE}]")
        # Cleaning acts on one character at a time but for white space, the order
        # of what it drops, and the form of a final sigma, which changes no size.
        sizes = tf.where(is_space, 1, tf.strings.length(cleaned))
        blank = tf.gather(is_space | is_blank(cleaned), index)

        self.is_accent = tf.gather(sizes == 0, index)
        is_joined = self._is_joined(tf.gather(is_space, index))
        sizes = tf.where(is_joined, 0, tf.gather(sizes, index))
        # [characters + 1] bytes of the cleaned batch before each character. Rows
        # that end in white space have one too many, which no piece is made of.
        self.bytes_before = tf.concat([[0], tf.cumsum(sizes)], axis=0)
        is_text = tf.repeat(tf.cast(~blank, tf.int32), sizes)
        # [bytes + 1] bytes of text before each byte of the cleaned batch.
        self.text_before = tf.concat([[0], tf.cumsum(is_text)], axis=0)
        # [bytes of text] the character that each was made from.
        self.origin = tf.repeat(tf.range(tf.size(sizes)), tf.where(blank, 0, sizes))

    def _is_joined(self, is_space):
        """White space at the start of a row, or after other white space."""
        after_space = tf.tensor_scatter_nd_update(
            tf.concat([[True], is_space], axis=0),
            self.row_starts[:, tf.newaxis],
            tf.fill(tf.shape(self.row_starts), True),
        )
        return is_space & after_space[:-1]

    def text_positions(self, offsets):
        """Byte offsets in cleaned rows as positions in all text of the batch."""
        row_starts = tf.gather(self.bytes_before, self.row_starts)
        row_start = tf.gather(row_starts, offsets.value_rowids())
        positions = row_start + tf.cast(offsets.values, tf.int32)
        return offsets.with_values(tf.gather(self.text_before, positions))

    def spans(self, starts, ends):
        """Spans of text positions as spans of characters of their row.

        A span without text is empty, where the next text begins.
        """
        row = starts.value_rowids()
        row_start = tf.gather(self.row_starts, row)
        row_limit = tf.gather(self.row_limits, row)
        # One more, for a span after the last text.
        origin = tf.concat([self.origin, [tf.size(self.is_accent)]], axis=0)
        first = tf.minimum(tf.gather(origin, starts.values), row_limit)
        last = tf.gather(origin, tf.maximum(ends.values - 1, 0))
        after = next_base(tf.concat([self.is_accent, [False]], axis=0))
        limit = tf.minimum(tf.gather(after, last), row_limit)
        limit = tf.where(starts.values < ends.values, limit, first)
        return starts.with_values(first - row_start), ends.with_values(
            limit - row_start
        )
