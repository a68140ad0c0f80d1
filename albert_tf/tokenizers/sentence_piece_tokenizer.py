import os
from typing import Any

import keras
import sentencepiece
import tensorflow as tf
from sentencepiece import sentencepiece_model_pb2

from albert_tf.files import complete_file
from albert_tf.tokenizers.python_engine import PythonEngine
from albert_tf.tokenizers.sentence_piece_graph import SentencePieceGraph, tf_text
from albert_tf.tokenizers.text_tokenizer import TextTokenizer
from albert_tf_lite import sentence_piece as lite
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.pointers import read_bytes


@keras.saving.register_keras_serializable(package="albert_tf")
class SentencePieceTokenizer(TextTokenizer):
    """Google's tokenizer of the English ALBERT models as TensorFlow ops.

    The ids are those of the original Python (`preprocess_text` and `encode_ids` of
    google-research/albert): white space is collapsed, text decomposed (NFKD), accents
    dropped, letters lower-cased, and after SentencePiece a number is separated from the
    comma that follows it. Tokenizers without this clean-up return ids that the models
    were not trained on, for English text, too.

    Text is UTF-8; invalid bytes are skipped. By default names of special tokens in the
    text are ordinary text.

    Without tensorflow-text, as on Windows, the ops call Python. A graph with them
    cannot be saved.

    A piece that begins with `▁` is the start of a word. Its offsets are those of the
    word, without the space. `▁` alone has an empty span at the next text.

    Args:
        proto: path of a SentencePiece model, such as `30k-clean.model`, or its content
            as bytes. It must contain `<pad>`, `<unk>`, `[CLS]` and `[SEP]`; `[MASK]` is
            optional. `None` if a preset or `set_proto()` sets it later.
        lowercase: bool. Lower-case text. Accents are dropped in any case, as in
            the original.
        dtype: `"int32"` or `"int64"` for ids, `"string"` for pieces.
        special_tokens_in_strings: bool. Map names of special tokens in the text to
            their ids.

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
    source_hint = (
        "Use the .model file that came with the checkpoint, or train one with "
        "pad_id=0, unk_id=1, control_symbols='[CLS],[SEP],[MASK]'."
    )

    def __init__(
        self,
        proto: str | os.PathLike | bytes | None = None,
        lowercase: bool = True,
        dtype: str = "int32",
        special_tokens_in_strings: bool = False,
        **kwargs: Any,
    ):
        super().__init__(proto, lowercase, dtype, special_tokens_in_strings, **kwargs)

    def set_proto(self, proto: str | os.PathLike | bytes | None) -> None:
        """Set the vocabulary: the path of a SentencePiece model, or its content."""
        self.set_source(proto)

    @property
    def proto(self) -> bytes | None:
        """Return the serialized model as bytes, or `None`."""
        return self._vocabulary.proto if self._vocabulary else None

    source = proto

    @property
    def fingerprint(self) -> tuple[Any, ...]:
        # Models with equal tokens may have different scores.
        return *super().fingerprint, self.proto

    def _read(self, source):
        name = "The SentencePiece model given as bytes"
        if not isinstance(source, bytes):
            name = f"SentencePiece model '{os.fspath(source)}'"
            source = read_bytes(source)
        return SentencePieceModel(source, name), name

    def _write(self, path):
        with complete_file(path) as temporary:
            temporary.write_bytes(self._required_vocabulary().proto)

    def _engine(self, vocabulary):
        if tf_text is None:
            return PythonEngine(
                lite.SentencePieceTokenizer(vocabulary.proto, self.lowercase)
            )
        return SentencePieceGraph(vocabulary.proto, self.lowercase)

    def _join(self, pieces):
        text = tf.strings.reduce_join(pieces, axis=-1)
        return tf.strings.strip(tf.strings.regex_replace(text, lite.SPACE_PIECE, " "))


class SentencePieceModel:
    """Tokens by id, ids by token, and the content of a SentencePiece model."""

    def __init__(self, proto: bytes, source: str):
        self.proto = proto
        processor = sentencepiece.SentencePieceProcessor()
        try:
            processor.LoadFromSerializedProto(proto)
        except RuntimeError as error:
            raise AlbertError(
                f"{source} is text, empty or damaged. Expected a SentencePiece model, "
                "the binary .model file of a release; for a vocab.txt of WordPiece "
                f"tokens use WordPieceTokenizer. ({error})"
            ) from error
        # SentencePiece loads a file that ends after a piece as a smaller model.
        model = sentencepiece_model_pb2.ModelProto()  # type: ignore[attr-defined]
        model.ParseFromString(proto)
        if not model.HasField("normalizer_spec"):
            raise AlbertError(
                f"{source}, {len(proto)} bytes, is cut short: it lacks the rules to "
                "normalize text. Copy the .model file of the release again."
            )
        self.tokens = [processor.id_to_piece(i) for i in range(len(processor))]
        self.ids = {token: i for i, token in enumerate(self.tokens)}
