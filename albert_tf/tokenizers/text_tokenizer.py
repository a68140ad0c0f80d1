"""Base class of the WordPiece and the SentencePiece tokenizer."""

import os
from collections.abc import Callable
from typing import Any, TypeAlias

import keras
import keras_hub
import tensorflow as tf

from albert_tf.backbone.albert_backbone import AlbertBackbone
from albert_tf_lite.errors import AlbertError

# A string, strings of any shape as lists or NumPy arrays, or a string tensor.
Strings: TypeAlias = Any
Tensor: TypeAlias = tf.Tensor | tf.RaggedTensor

SPECIAL_NAMES = ("pad", "unk", "cls", "sep", "mask")


class TextTokenizer(keras_hub.tokenizers.Tokenizer):
    """Base class of tokenizers, with lookups, saving and presets.

    Subclasses set the attributes below and define the methods

    - `_read(source)`: return the vocabulary, with `tokens` and `ids` (by token);
    - `_write(path)`: write a file for `_read`;
    - `_tokenize_batch(text)`: return the ragged ids of strings [batch];
    - `_tokenize_batch_with_offsets(text)`: return these, their starts and their ends;
    - `_join(pieces)`: return the text of pieces [..., (tokens)].
    """

    backbone_cls = AlbertBackbone

    cls_token = "[CLS]"
    sep_token = "[SEP]"
    mask_token = "[MASK]"

    # Set by subclasses.
    pad_token: str
    unk_token: str
    asset_file_name: str  # In a preset, as in KerasHub.
    original_file_name: str  # In a release.
    source_argument: str  # The argument for the vocabulary.

    def __init__(self, lowercase: bool, dtype: str, **kwargs: Any):
        super().__init__(dtype=dtype, **kwargs)
        if self.compute_dtype not in ("int32", "int64", "string"):
            raise AlbertError(
                "`dtype` must be 'int32' or 'int64' for ids or 'string' for "
                f"pieces. Received: dtype={dtype}"
            )
        self.lowercase = lowercase
        self.file_assets = [self.asset_file_name]
        # There is nothing to build, but Keras warns of inner layers that are not built.
        self.built = True

    @property
    def fingerprint(self) -> tuple[Any, ...]:
        """Return the settings that determine the ids, to compare tokenizers."""
        return type(self), self.lowercase, self.get_vocabulary()

    def _set_source(self, source):
        self._use(None if source is None else self._read(source))

    def _use(self, vocabulary):
        self._vocabulary = vocabulary
        ids = vocabulary.ids if vocabulary else {}
        for name in SPECIAL_NAMES:
            setattr(self, f"{name}_token_id", ids.get(getattr(self, f"{name}_token")))

    def _required_vocabulary(self):
        if self._vocabulary is None:
            name = self.source_argument
            raise AlbertError(
                f"Tokenizer {self.name!r} has no vocabulary yet. Pass `{name}`, or "
                f"call `set_{name}()`."
            )
        return self._vocabulary

    def get_vocabulary(self) -> list[str]:
        return list(self._required_vocabulary().tokens)

    def vocabulary_size(self) -> int:
        return len(self._required_vocabulary().tokens)

    def id_to_token(self, id: int) -> str:
        tokens = self._required_vocabulary().tokens
        if not 0 <= id < len(tokens):
            raise AlbertError(
                f"`id` must be in [0, {len(tokens) - 1}]. Received: id={id}"
            )
        return tokens[id]

    def token_to_id(self, token: str) -> int:
        ids = self._required_vocabulary().ids
        if token not in ids:
            raise AlbertError(f"Token {token!r} is not in the vocabulary.")
        return ids[token]

    @property
    def special_tokens(self) -> list[str]:
        ids = self._required_vocabulary().ids
        tokens = [getattr(self, f"{name}_token") for name in SPECIAL_NAMES]
        return [token for token in tokens if token in ids]

    @property
    def special_token_ids(self) -> list[int]:
        return [self.token_to_id(token) for token in self.special_tokens]

    def call(self, inputs: Strings, training: bool | None = None) -> Tensor:
        return self.tokenize(inputs)

    def compute_output_spec(
        self, inputs: keras.KerasTensor, training: bool | None = None
    ) -> keras.KerasTensor:
        return keras.KerasTensor((*inputs.shape, None), dtype=self.compute_dtype)

    def tokenize(self, inputs: Strings) -> Tensor:
        """Return the ids (or pieces) of each string."""
        self._required_vocabulary()
        with tf.device("cpu"):
            return self._as_output(apply_to_batch(self._tokenize_batch, inputs))

    def tokenize_with_offsets(self, inputs: Strings) -> tuple[Tensor, Tensor, Tensor]:
        """Return `(ids, starts, ends)`, all with the shape of `tokenize()`.

        `text[start:end]` is the text of a piece. Offsets count characters (Unicode code
        points) of the original string without invalid bytes. Stripped accents belong to
        the character before them.
        """
        self._required_vocabulary()
        with tf.device("cpu"):
            ids, *offsets = apply_to_batch(self._tokenize_batch_with_offsets, inputs)
            return self._as_output(ids), *offsets

    def _as_output(self, ids):
        if self.compute_dtype == "string":
            return tf.gather(tf.constant(self._vocabulary.tokens), ids)
        return tf.cast(ids, self.compute_dtype)

    def detokenize(self, inputs: Any) -> tf.Tensor:
        """Join the ids of each sequence to a string.

        Padding, `[CLS]`, `[SEP]` and `[MASK]` are left out. The unknown token remains,
        because it represents text.
        """
        tokens = self._required_vocabulary().tokens
        if isinstance(inputs, (list, tuple)):
            inputs = tf.ragged.constant(inputs, dtype=tf.int32)
        dropped = {self.pad_token, self.cls_token, self.sep_token, self.mask_token}
        pieces = ["" if token in dropped else token for token in tokens]
        with tf.device("cpu"):
            return self._join(tf.gather(tf.constant(pieces), inputs))

    def get_config(self) -> dict[str, Any]:
        # The vocabulary is saved as an asset, as in KerasHub, because a path is valid
        # on one machine only.
        config = {self.source_argument: None, "lowercase": self.lowercase}
        return {**super().get_config(), **config}

    def with_lowercase(self, lowercase: bool) -> "TextTokenizer":
        """Return a tokenizer with the same vocabulary that lower-cases or not."""
        config = {**self.get_config(), "lowercase": lowercase}
        tokenizer = type(self).from_config(config)
        tokenizer._use(self._vocabulary)
        return tokenizer

    def save_original(self, directory: str | os.PathLike) -> str:
        """Write the vocabulary file of a release into a directory; return its path."""
        path = os.path.join(directory, self.original_file_name)
        self._write(path)
        return path

    def save_assets(self, dir_path: str) -> None:
        self._write(os.path.join(dir_path, self.asset_file_name))

    def load_assets(self, dir_path: str) -> None:
        self._set_source(os.path.join(dir_path, self.asset_file_name))


def apply_to_batch(function: Callable[..., Any], inputs: Strings) -> Any:
    """Call a function of strings [batch] to ragged tensors on inputs of any rank."""
    text = as_strings(inputs)
    if isinstance(text, tf.RaggedTensor):
        outputs = function(text.flat_values)
        return tf.nest.map_structure(text.with_flat_values, outputs)
    if text.shape.rank == 0:
        outputs = function(text[tf.newaxis])
        return tf.nest.map_structure(lambda ragged: ragged[0], outputs)
    if text.shape.rank == 1:
        return function(text)
    ragged = tf.RaggedTensor.from_tensor(text, ragged_rank=text.shape.rank - 1)
    return apply_to_batch(function, ragged)


def as_strings(inputs: Strings) -> Tensor:
    if not isinstance(inputs, (tf.Tensor, tf.RaggedTensor)):
        inputs = tf.convert_to_tensor(inputs)
    if inputs.dtype == tf.string:
        return inputs
    if 0 in inputs.shape:
        # Empty Python lists and NumPy arrays are float.
        return tf.zeros(inputs.shape, tf.string)
    raise AlbertError(
        "The tokenizer expects strings: a str, a list of them, or a string "
        f"tensor. Received: dtype={inputs.dtype.name}, shape={inputs.shape}"
    )
