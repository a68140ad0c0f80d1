"""Google ALBERT's clean-up of text as TensorFlow ops, and original offsets."""

import functools
import unicodedata
from collections.abc import Callable

import tensorflow as tf
import tensorflow_text as tf_text

from albert_tf.tokenizers.normalization import map_rows, next_base

# White space of Python's `str.split`, which differs from RE2's `\s`.
ODD_SPACE = (
    r"\t-\r\x1c-\x1f\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}"
    r"\x{205f}\x{3000}"
)
WHITE_SPACE = f" {ODD_SPACE}"
# Leaves out single spaces, which `[{WHITE_SPACE}]+` finds, too, at a third of the
# speed.
TOO_MUCH_SPACE = f"[{WHITE_SPACE}]*[{ODD_SPACE}][{WHITE_SPACE}]*|  +"

# Most English text, typographic dashes and quotes included, contains no other
# characters. It needs ASCII lower-casing only and, if it has several lines, joining.
PLAIN_CHARACTERS = r"!-~\x{2013}\x{2014}\x{2018}-\x{201e}"
PLAIN_TEXT = rf"[ \t-\r\x1c-\x1f{PLAIN_CHARACTERS}]*"
PLAIN_LINE = f"(?:[{PLAIN_CHARACTERS}]+ )*[{PLAIN_CHARACTERS}]+"

# No character beyond the first two planes of Unicode has a combining class.
MARK_PLANES = range(0x20000)

# A noncharacter, which is not meant for text.
NUL_MARK = "\ufdd0"


@functools.cache
def combining_marks() -> str:
    """Return an RE2 class of the characters that clean-up drops.

    RE2 has general categories such as Mn, but not the canonical combining class. As in
    the original, the class comes from the Unicode data of the running Python.
    """
    marks = {code for code in MARK_PLANES if unicodedata.combining(chr(code))}
    starts = sorted(code for code in marks if code - 1 not in marks)
    ends = sorted(code for code in marks if code + 1 not in marks)
    ranges = (f"\\x{{{a:x}}}-\\x{{{b:x}}}" for a, b in zip(starts, ends, strict=True))
    return f"[{''.join(ranges)}]"


def clean_up(text: tf.Tensor, lowercase: bool) -> tf.Tensor:
    """Clean strings [batch] like google-research/albert's `preprocess_text`."""
    is_plain = tf.strings.regex_full_match(text, PLAIN_TEXT)
    is_line = tf.strings.regex_full_match(text, PLAIN_LINE)
    text = map_rows(join_words, text, is_plain & ~is_line)
    text = map_rows(lambda rows: clean_any(rows, lowercase), text, ~is_plain)
    return tf.strings.lower(text) if lowercase else text


def clean_any(text: tf.Tensor, lowercase: bool) -> tf.Tensor:
    text = tf.strings.unicode_transcode(text, "UTF-8", "UTF-8", errors="ignore")
    return decompose(join_words(text), lowercase)


def join_words(text: tf.Tensor) -> tf.Tensor:
    text = tf.strings.regex_replace(text, TOO_MUCH_SPACE, " ")
    # `strip` removes ASCII white space, of which only spaces are left.
    return tf.strings.strip(text)


def decompose(text: tf.Tensor, lowercase: bool) -> tf.Tensor:
    text = tf_text.normalize_utf8(text, "NFKD")
    text = tf.strings.regex_replace(text, f"{combining_marks()}+", "")
    if not lowercase:
        return text
    # Lower-casing beyond ASCII truncates the string at NUL. ASCII goes first, because
    # the other form depends on the locale of the process, as in `normalization.clean`.
    text = tf.strings.regex_replace(tf.strings.lower(text), r"\x00", NUL_MARK)
    text = tf.strings.lower(text, encoding="utf-8")
    return tf.strings.regex_replace(text, NUL_MARK, "\0")


class Alignment:
    """Map from the bytes of a cleaned batch to the characters they come from.

    It counts the bytes that pieces contain. White space, and characters that the
    model's own normalisation removes, are blank: spans do not begin or end with blanks,
    and a span has the bytes of its piece.

    Args:
        text: string tensor [batch], before `clean_up`.
        lowercase: bool.
        is_blank: function of cleaned characters, strings [characters], to bools.
    """

    def __init__(
        self,
        text: tf.Tensor,
        lowercase: bool,
        is_blank: Callable[[tf.Tensor], tf.Tensor],
    ):
        characters = tf.strings.unicode_decode(text, "UTF-8", errors="ignore")
        self.row_starts = tf.cast(characters.row_starts(), tf.int32)
        self.row_limits = tf.cast(characters.row_limits(), tf.int32)

        unique, index = tf.unique(characters.flat_values)
        unique = tf.strings.unicode_encode(unique[:, tf.newaxis], "UTF-8")
        cleaned = decompose(unique, lowercase)
        is_space = tf.strings.regex_full_match(unique, f"[{WHITE_SPACE}]")
        # Clean-up acts on single characters, except for white space, the order of
        # dropped marks, and the form of a final sigma, which changes no size.
        sizes = tf.where(is_space, 1, tf.strings.length(cleaned))
        blank = tf.gather(is_space | is_blank(cleaned), index)

        self.is_accent = tf.gather(sizes == 0, index)
        is_joined = self._is_joined(tf.gather(is_space, index))
        sizes = tf.where(is_joined, 0, tf.gather(sizes, index))
        # [characters + 1] bytes of the cleaned batch before each character. Rows that
        # end in white space have one byte too many, which is in no piece.
        self.bytes_before = tf.concat([[0], tf.cumsum(sizes)], axis=0)
        is_text = tf.repeat(tf.cast(~blank, tf.int32), sizes)
        # [bytes + 1] bytes of text before each byte of the cleaned batch.
        self.text_before = tf.concat([[0], tf.cumsum(is_text)], axis=0)
        # [bytes of text] the character that each byte comes from.
        self.origin = tf.repeat(tf.range(tf.size(sizes)), tf.where(blank, 0, sizes))

    def _is_joined(self, is_space):
        """Return which characters are white space at a row start or after another."""
        after_space = tf.tensor_scatter_nd_update(
            tf.concat([[True], is_space], axis=0),
            self.row_starts[:, tf.newaxis],
            tf.fill(tf.shape(self.row_starts), True),
        )
        return is_space & after_space[:-1]

    def text_positions(self, offsets: tf.RaggedTensor) -> tf.RaggedTensor:
        """Convert byte offsets in cleaned rows to positions in text of the batch."""
        row_starts = tf.gather(self.bytes_before, self.row_starts)
        row_start = tf.gather(row_starts, offsets.value_rowids())
        positions = row_start + tf.cast(offsets.values, tf.int32)
        return offsets.with_values(tf.gather(self.text_before, positions))

    def spans(
        self, starts: tf.RaggedTensor, ends: tf.RaggedTensor
    ) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
        """Convert spans of text positions to spans of characters of their row.

        A span without text is empty and lies where the next text begins.
        """
        row = starts.value_rowids()
        row_start = tf.gather(self.row_starts, row)
        row_limit = tf.gather(self.row_limits, row)
        # One more for a span after the last text.
        origin = tf.concat([self.origin, [tf.size(self.is_accent)]], axis=0)
        first = tf.minimum(tf.gather(origin, starts.values), row_limit)
        last = tf.gather(origin, tf.maximum(ends.values - 1, 0))
        after = next_base(tf.concat([self.is_accent, [False]], axis=0))
        limit = tf.minimum(tf.gather(after, last), row_limit)
        limit = tf.where(starts.values < ends.values, limit, first)
        return starts.with_values(first - row_start), ends.with_values(
            limit - row_start
        )
