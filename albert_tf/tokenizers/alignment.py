"""Positions of cleaned text in the text that it came from."""

from collections.abc import Callable

import tensorflow as tf

# BERT's clean-up drops these characters.
CONTROL = r"[\x00-\x08\x{0b}\x{0c}\x0e-\x1f\x7f-\x{9f}\p{Cf}\x{fffd}]+"


class Alignment:
    """Map from the bytes of a cleaned batch to the characters of `text` [batch].

    `clean` acts on single characters, except for white space, the order of marks and
    the form of a final sigma, which change no size.
    """

    def __init__(self, text: tf.Tensor, clean: Callable[[tf.Tensor], tf.Tensor]):
        characters = tf.strings.unicode_decode(text, "UTF-8", errors="ignore")
        self.row_starts = tf.cast(characters.row_starts(), tf.int32)
        self.row_limits = tf.cast(characters.row_limits(), tf.int32)
        unique, self.index = tf.unique(characters.flat_values)
        self.unique = tf.strings.unicode_encode(unique[:, tf.newaxis], "UTF-8")
        self.cleaned = clean(self.unique)
        sizes = tf.strings.length(self.cleaned)
        is_control = tf.strings.regex_full_match(self.unique, CONTROL)
        self.is_accent = tf.gather((sizes == 0) & ~is_control, self.index)
        self.sizes = tf.gather(sizes, self.index)

    def spans(
        self, sizes: tf.Tensor, starts: tf.RaggedTensor, ends: tf.RaggedTensor
    ) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
        """Convert spans of bytes of the batch to spans of characters of their row.

        `sizes` are the bytes of each character. An empty span lies where the next
        character begins. Stripped accents belong to the character before them.
        """
        count = tf.size(sizes)
        # One more for a span after the last character.
        origin = tf.concat([tf.repeat(tf.range(count), sizes), [count]], axis=0)
        bases = tf.cast(tf.where(~self.is_accent)[:, 0], tf.int32)
        bases = tf.concat([bases, [count, count + 1]], axis=0)
        row = starts.value_rowids()
        row_start = tf.gather(self.row_starts, row)
        row_limit = tf.gather(self.row_limits, row)
        first = tf.minimum(tf.gather(origin, starts.values), row_limit)
        last = tf.gather(origin, tf.maximum(ends.values - 1, 0))
        limit = tf.gather(bases, tf.searchsorted(bases, last, side="right"))
        limit = tf.minimum(limit, row_limit)
        limit = tf.where(starts.values < ends.values, limit, first)
        starts = starts.with_values(first - row_start)
        return starts, ends.with_values(limit - row_start)
