import os
from typing import Any

import keras
import tensorflow as tf

from albert_tf.tokenizers.sentence_piece_clean_up import Alignment, clean_up
from albert_tf.tokenizers.sentence_piece_model import (
    SPACE_PIECE,
    SentencePieceModel,
)
from albert_tf.tokenizers.text_tokenizer import TextTokenizer


@keras.saving.register_keras_serializable(package="albert_tf")
class SentencePieceTokenizer(TextTokenizer):
    """Google's tokenizer of the English ALBERT models as TensorFlow ops.

    The ids are those of the original Python (`preprocess_text` and `encode_ids` of
    google-research/albert): white space is collapsed, text decomposed (NFKD), accents
    dropped, letters lower-cased, and after SentencePiece a number is separated from the
    comma that follows it. Tokenizers without this clean-up return ids that the models
    were not trained on, for English text, too.

    Text is UTF-8; invalid bytes are skipped. Names of special tokens in the text are
    ordinary text.

    A piece that begins with `▁` is the start of a word. Its offsets are those of the
    word, without the space. `▁` alone has an empty span at the next text.

    Args:
        proto: path of a SentencePiece model, such as `30k-clean.model`, or its content
            as bytes. It must contain `<pad>`, `<unk>`, `[CLS]` and `[SEP]`; `[MASK]` is
            optional. `None` if a preset or `set_proto()` sets it later.
        lowercase: bool. Whether to lower-case. Accents are dropped in any case, as in
            the original.
        dtype: `"int32"` or `"int64"` for ids, `"string"` for pieces. The piece of an
            unknown token is its text.

    Call arguments:
        inputs: strings of any shape.

    Returns:
        A tensor `[tokens]` for a string, a `tf.RaggedTensor` `[batch, (tokens)]` for a
        batch `[batch]`.

    Raises:
        FileNotFoundError: if the file does not exist.
        AlbertError: if the file is damaged or lacks a required token.

    Example:

    >>> tokenizer = SentencePieceTokenizer("30k-clean.model")
    >>> tokenizer(["A café in 2018, maybe"])
    <tf.RaggedTensor [[21, 6241, 19, 1110, 15, 913]]>
    >>> tokenizer.detokenize([21, 6241, 19, 1110, 15, 913]).numpy().decode()
    'a cafe in 2018, maybe'

    Reference:
        - [Lan et al., 2019](https://arxiv.org/abs/1909.11942)
        - [Kudo and Richardson, 2018](https://arxiv.org/abs/1808.06226)
    """

    pad_token = "<pad>"
    unk_token = "<unk>"

    asset_file_name = "vocabulary.spm"
    original_file_name = "spiece.model"
    source_argument = "proto"

    def __init__(
        self,
        proto: str | os.PathLike | bytes | None = None,
        lowercase: bool = True,
        dtype: str = "int32",
        **kwargs: Any,
    ):
        super().__init__(lowercase=lowercase, dtype=dtype, **kwargs)
        self.set_proto(proto)

    def set_proto(self, proto: str | os.PathLike | bytes | None) -> None:
        """Set the model from a file path or its content as bytes."""
        self._set_source(proto)

    @property
    def proto(self) -> bytes | None:
        """Return the serialized model as bytes, or `None`."""
        return self._vocabulary.proto if self._vocabulary else None

    @property
    def fingerprint(self) -> tuple[Any, ...]:
        # Models with equal tokens may have different scores.
        return *super().fingerprint, self.proto

    def _read(self, source):
        return SentencePieceModel(source, as_pieces=self.compute_dtype == "string")

    def _write(self, path):
        proto = self._required_vocabulary().proto
        with open(path, "wb") as file:
            file.write(proto)

    def _tokenize_batch(self, text):
        model = self._required_vocabulary()
        return self._as_output(model.encode(clean_up(text, self.lowercase)))

    def _tokenize_batch_with_offsets(self, text):
        model = self._required_vocabulary()
        alignment = Alignment(text, self.lowercase, model.is_blank)
        cleaned = clean_up(text, self.lowercase)
        tokens, starts, ends = model.encode_with_offsets(cleaned, alignment)
        return self._as_output(tokens), starts, ends

    def _as_output(self, tokens):
        return tf.cast(tokens, self.compute_dtype)

    def _join(self, pieces):
        text = tf.strings.reduce_join(pieces, axis=-1)
        return tf.strings.strip(tf.strings.regex_replace(text, SPACE_PIECE, " "))
