import os
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from albert_tf.tokenizers.normalization import normalize, original_offsets
from albert_tf.tokenizers.text_tokenizer import Strings, TextTokenizer, as_strings
from albert_tf.tokenizers.vocabulary import Vocabulary

# What is written without spaces: ideographs, kana, full-width forms and the
# punctuation between them.
UNSPACED = (
    r"\x{2014}\x{2018}-\x{201d}\x{2026}\x{2e80}-\x{312f}\x{3190}-\x{9fff}"
    r"\x{f900}-\x{faff}\x{fe30}-\x{fe4f}\x{ff00}-\x{ff9f}\x{20000}-\x{3ffff}"
)


@keras.saving.register_keras_serializable(package="albert_tf")
class WordPieceTokenizer(TextTokenizer):
    """BERT's WordPiece tokenizer as TensorFlow ops.

    The ids equal those of the original Python tokenizer (`BasicTokenizer` and
    `WordpieceTokenizer` of google-research/bert, which albert_zh uses) for
    Chinese and any other text. Other tokenizers in the graph fold full-width
    letters and punctuation and so change Chinese text.

    Text is bytes in UTF-8; invalid bytes are dropped. Names of special tokens
    in the text are ordinary text, as in the original: `"[MASK]"` becomes
    `[`, `mask`, `]`.

    Args:
        vocabulary: path of a `vocab.txt` (one token a line, a second column
            is ignored) or a list of tokens; the line number is the id. It
            must hold `[PAD]`, `[UNK]`, `[CLS]` and `[SEP]`; `[MASK]` is
            optional. `None` if a preset or `set_vocabulary()` gives it later.
        lowercase: bool. Whether to lower-case and strip accents. `False` for
            cased vocabularies.
        dtype: `"int32"` or `"int64"` for ids, `"string"` for pieces.

    Call arguments:
        inputs: strings of any shape. A string gives a tensor `[tokens]`, a
            batch `[batch]` a `tf.RaggedTensor` `[batch, (tokens)]`.

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
        """Sets the vocabulary from a file path or a list of tokens."""
        self._set_source(vocabulary)

    def unknown_words(self, texts: Strings) -> list[str]:
        """The words of strings [batch] that are `[UNK]`, normalized, in their order."""
        with tf.device("cpu"):
            text = normalize(as_strings(texts), self.lowercase)
            engine = self._required_vocabulary().engine
            ids, starts, ends = engine.tokenize_with_offsets(text)
        unknown = np.flatnonzero(ids.values == self.unk_token_id)
        rows = ids.value_rowids().numpy()
        text, starts, ends = (x.numpy() for x in (text, starts.values, ends.values))
        words = (text[rows[i]][starts[i] : ends[i]] for i in unknown)
        return [word.decode("utf-8") for word in words]

    def _read(self, source):
        return Vocabulary(source)

    def _write(self, path):
        tokens = self.get_vocabulary()
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{token}\n" for token in tokens)

    def _tokenize_batch(self, text):
        engine = self._required_vocabulary().engine
        return self._as_output(engine.tokenize(normalize(text, self.lowercase)))

    def _tokenize_batch_with_offsets(self, text):
        engine = self._required_vocabulary().engine
        normalized = normalize(text, self.lowercase)
        ids, starts, ends = engine.tokenize_with_offsets(normalized)
        starts, ends = original_offsets(
            text, normalized, starts, ends, lowercase=self.lowercase
        )
        return self._as_output(ids), starts, ends

    def _as_output(self, ids):
        if self.compute_dtype == "string":
            return tf.gather(tf.constant(self._vocabulary.tokens), ids)
        return tf.cast(ids, self.compute_dtype)

    def _join(self, pieces):
        text = tf.strings.reduce_join(pieces, axis=-1, separator=" ")
        text = tf.strings.regex_replace(text, "(^| +)##", "")
        text = tf.strings.strip(tf.strings.regex_replace(text, " +", " "))
        # Twice, for matches do not overlap.
        for _ in range(2):
            text = tf.strings.regex_replace(
                text, f"([{UNSPACED}]) ([{UNSPACED}])", r"\1\2"
            )
        return text
