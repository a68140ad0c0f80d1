"""What the WordPiece and the SentencePiece tokenizer have in common."""

import json
import os
import pathlib
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
    """Strings in, ragged ids out, with lookups, saving and presets.

    A subclass names its special tokens, its files and the argument that its
    vocabulary comes from, and has the methods

    - `_read(source)`: what holds the vocabulary, with `tokens`, and `ids` by token;
    - `_write(path)`: writes a file that `_read` takes;
    - `_tokenize_batch(text)`: ragged ids (or pieces) of strings [batch];
    - `_tokenize_batch_with_offsets(text)`: these, their starts and their ends;
    - `_join(pieces)`: the text of pieces [..., (tokens)].

    Args:
        lowercase: bool. Whether to lower-case.
        dtype: `"int32"` or `"int64"` for ids, `"string"` for pieces.
    """

    backbone_cls = AlbertBackbone

    cls_token = "[CLS]"
    sep_token = "[SEP]"
    mask_token = "[MASK]"

    # Set by a subclass, as are `pad_token` and `unk_token`.
    asset_file_name = None  # In a preset, the name that KerasHub gives it.
    original_file_name = None  # Beside a released checkpoint.
    source_argument = None  # What the vocabulary comes from.

    def __init__(self, lowercase: bool, dtype: str, **kwargs: Any):
        super().__init__(dtype=dtype, **kwargs)
        if self.compute_dtype not in ("int32", "int64", "string"):
            raise AlbertError(
                "`dtype` must be 'int32' or 'int64' for ids or 'string' for "
                f"pieces. Received: dtype={dtype}"
            )
        self.lowercase = lowercase
        self.file_assets = [self.asset_file_name]
        # It has nothing to build, and Keras warns of layers in layers that are not.
        self.built = True

    @property
    def fingerprint(self) -> tuple[Any, ...]:
        """What the ids depend on: tokenizers with equal ones give equal ids."""
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

    def compute_output_spec(self, inputs, training=None):
        return keras.KerasTensor((*inputs.shape, None), dtype=self.compute_dtype)

    def tokenize(self, inputs: Strings) -> Tensor:
        """Returns the ids (or pieces) of each string."""
        return apply_to_batch(self._tokenize_batch, inputs)

    def tokenize_with_offsets(self, inputs: Strings) -> tuple[Tensor, Tensor, Tensor]:
        """Returns `(ids, starts, ends)`, all of the shape of `tokenize()`.

        `text[start:end]` is what a piece was made of. Offsets count characters
        (Unicode code points) of the original string, invalid bytes left out.
        Accents that were stripped belong to the character before them.
        """
        return apply_to_batch(self._tokenize_batch_with_offsets, inputs)

    def detokenize(self, inputs: Any) -> tf.Tensor:
        """Joins the ids of each sequence to a string.

        Padding, `[CLS]`, `[SEP]` and `[MASK]` are left out; the unknown token
        stays, for it stands where there was text.
        """
        tokens = self._required_vocabulary().tokens
        if isinstance(inputs, (list, tuple)):
            inputs = tf.ragged.constant(inputs, dtype=tf.int32)
        dropped = {self.pad_token, self.cls_token, self.sep_token, self.mask_token}
        pieces = ["" if token in dropped else token for token in tokens]
        with tf.device("cpu"):
            return self._join(tf.gather(tf.constant(pieces), inputs))

    def get_config(self) -> dict[str, Any]:
        # The vocabulary travels as an asset, as in KerasHub: a path would
        # point at this machine.
        config = {self.source_argument: None, "lowercase": self.lowercase}
        return {**super().get_config(), **config}

    def with_lowercase(self, lowercase: bool) -> "TextTokenizer":
        """Returns a tokenizer of the same vocabulary that lower-cases or not."""
        config = {**self.get_config(), "lowercase": lowercase}
        tokenizer = type(self).from_config(config)
        tokenizer._use(self._vocabulary)
        return tokenizer

    def save_original(self, directory: str | os.PathLike) -> str:
        """Writes the file that releases have into a directory; returns its path."""
        path = os.path.join(directory, self.original_file_name)
        self._write(path)
        return path

    def save_assets(self, dir_path: str) -> None:
        self._write(os.path.join(dir_path, self.asset_file_name))

    def load_assets(self, dir_path: str) -> None:
        self._set_source(os.path.join(dir_path, self.asset_file_name))

    @classmethod
    def from_preset(
        cls,
        preset: str | os.PathLike,
        config_file: str = "tokenizer.json",
        **kwargs: Any,
    ) -> "TextTokenizer":
        """Loads the tokenizer of a preset.

        KerasHub reads only presets that hold a model; a local directory
        written by `tokenizer.save_to_preset()` alone is read here too.
        """
        preset = os.fspath(preset)
        path = pathlib.Path(preset, config_file)
        if not path.is_file():
            return super().from_preset(preset, config_file, **kwargs)
        config = json.loads(path.read_text(encoding="utf-8"))
        config["config"].update(kwargs)
        tokenizer = keras.saving.deserialize_keras_object(config)
        if not isinstance(tokenizer, cls):
            held = type(tokenizer).__name__
            raise AlbertError(f"'{preset}' holds a {held}. Call {held}.from_preset().")
        tokenizer.load_preset_assets(preset)
        return tokenizer


def apply_to_batch(function: Callable[..., Any], inputs: Strings) -> Any:
    """Calls `function` (batch of strings to ragged) on inputs of any rank."""
    with tf.device("cpu"):
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
        # An empty Python list or NumPy array comes as float.
        return tf.zeros(inputs.shape, tf.string)
    raise AlbertError(
        "The tokenizer expects strings: a str, a list of them, or a string "
        f"tensor. Received: dtype={inputs.dtype.name}, shape={inputs.shape}"
    )
