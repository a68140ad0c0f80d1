"""Base class of the WordPiece and the SentencePiece tokenizer."""

import codecs
import os
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import keras_hub
import numpy as np
import tensorflow as tf

from albert_tf.backbone.albert_backbone import AlbertBackbone
from albert_tf.files import complete_directory
from albert_tf.layers.arguments import check_arguments
from albert_tf_lite.errors import AlbertError, first_line
from albert_tf_lite.inputs import as_list

# A string, strings of any shape as lists or NumPy arrays, or a string tensor.
Strings: TypeAlias = Any
# A vocabulary: the path of its file, its tokens, or the content of a model.
Source: TypeAlias = str | os.PathLike | bytes | Sequence[str]
Tensor: TypeAlias = tf.Tensor | tf.RaggedTensor

SPECIAL_NAMES = ("pad", "unk", "cls", "sep", "mask")


class TextTokenizer(keras_hub.tokenizers.Tokenizer):
    """Base class of tokenizers, with lookups, saving and presets.

    Subclasses set the attributes below and define the methods

    - `source`: the vocabulary as the argument of the class;
    - `_read(source)`: return `(vocabulary, name)`, the vocabulary with `tokens`;
    - `_write(path)`: write a file for `_read`;
    - `_engine(vocabulary)`: return an object with `encode(text)`, which returns the
      ragged ids of strings [batch], and `encode_with_offsets(text)`, which returns
      these, their starts and their ends;
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
    source: Any
    source_argument: str  # The argument for the vocabulary.
    source_hint: str  # What to do if it lacks a token.
    # The arguments that determine the ids beside the vocabulary.
    settings: tuple[str, ...] = ("lowercase", "special_tokens_in_strings")
    # Tokens of the vocabulary that are found in a text before it is cleaned, and True
    # for those that are found in any case if the tokenizer lower-cases.
    added_tokens: dict[str, bool] = {}

    def __init__(
        self,
        source: Source | None,
        lowercase: bool,
        dtype: str,
        special_tokens_in_strings: bool,
        **kwargs: Any,
    ):
        check_arguments(type(self), kwargs)
        super().__init__(dtype=dtype, **kwargs)
        if self.compute_dtype not in ("int32", "int64", "string"):
            raise AlbertError(
                "`dtype` must be 'int32' or 'int64' for ids or 'string' for "
                f"pieces. Received: dtype={dtype}"
            )
        self.lowercase = lowercase
        self.special_tokens_in_strings = special_tokens_in_strings
        self.file_assets = [self.asset_file_name]
        # There is nothing to build, but Keras warns of inner layers that are not built.
        self.built = True
        self.set_source(source)

    @property
    def fingerprint(self) -> tuple[Any, ...]:
        """Return the settings that determine the ids, to compare tokenizers."""
        return type(self), str(self.get_settings()), self.get_vocabulary()

    def set_source(self, source: Source | None) -> None:
        """Set the vocabulary, in a form that the class takes."""
        if source is None:
            self._use(None)
            return
        vocabulary, name = self._read(source)
        tokens = vocabulary.tokens
        required = (self.pad_token, self.unk_token, self.cls_token, self.sep_token)
        if missing := [token for token in required if token not in vocabulary.ids]:
            raise AlbertError(
                f"{name} lacks {' '.join(missing)}; its {len(tokens)} tokens begin "
                f"with {tokens[:5]}. {self.source_hint}"
            )
        if repeats := len(tokens) - len(vocabulary.ids):
            first = next(
                token for i, token in enumerate(tokens) if vocabulary.ids[token] != i
            )
            warnings.warn(
                f"{repeats} tokens of {name} occur again later, such as {first!r}. The "
                "last row counts, as in the original code. Check that the file is not "
                "damaged.",
                stacklevel=3,
            )
        try:
            self._use(vocabulary)
        # TensorFlow Text raises it for tokens that are too long or all empty.
        except RuntimeError as error:
            raise AlbertError(
                f"{name} cannot be used: {first_line(error)} {self.source_hint}"
            ) from error

    def _use(self, vocabulary):
        self._vocabulary = vocabulary
        self._encoder = self._engine(vocabulary) if vocabulary else None
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

    def tokenize(self, inputs: Strings) -> Tensor:
        """Return the ids (or pieces) of each string."""
        self._required_vocabulary()
        with tf.device("cpu"):
            return self._as_output(self._apply(self._encoder.encode, inputs))

    def tokenize_with_offsets(self, inputs: Strings) -> tuple[Tensor, Tensor, Tensor]:
        """Return `(ids, starts, ends)`, all with the shape of `tokenize()`.

        `text[start:end]` is the text of a piece. Offsets count characters (Unicode code
        points) of the original string without invalid bytes. Stripped accents belong to
        the character before them.
        """
        self._required_vocabulary()
        with tf.device("cpu"):
            ids, starts, ends = self._apply(self._encoder.encode_with_offsets, inputs)
            return self._as_output(ids), starts, ends

    def rows_with_offsets(self, texts: Strings) -> Iterator[tuple]:
        """Yield ids, starts and ends of each string [batch], as lists."""
        ids, starts, ends = self.tokenize_with_offsets(texts)
        return zip(ids.to_list(), starts.to_list(), ends.to_list(), strict=True)

    def _apply(self, function, inputs):
        tokens = list(self.added_tokens)
        if self.special_tokens_in_strings:
            tokens = self.special_tokens + tokens
        inputs = self._with_case_of_added_tokens(inputs)
        return apply_to_batch(
            lambda text: self._between(tokens, function, text), inputs
        )

    def _with_case_of_added_tokens(self, inputs):
        tokens = [token for token, any_case in self.added_tokens.items() if any_case]
        if self.lowercase and tokens:
            inputs = as_strings(inputs)
            for token in tokens:
                pattern = f"(?i){re.escape(token)}"
                rewrite = token.replace("\\", r"\\")
                inputs = tf.strings.regex_replace(inputs, pattern, rewrite)
        return inputs

    def _between(self, tokens, function, text):
        """Call a function of strings [batch] on the text between special tokens."""
        if not tokens:
            return function(text)
        token, others = tokens[0], tokens[1:]
        # [batch, (runs)], the text between two occurrences of the token.
        runs = tf.strings.split(text, token)
        inside = self._between(others, function, runs.values)
        number = self.token_to_id(token)
        if isinstance(inside, tf.RaggedTensor):
            return join_parts(runs.with_values(inside), number)
        ids, starts, ends = inside
        valid = tf.strings.unicode_transcode(runs.values, "UTF-8", "UTF-8", "ignore")
        sizes = tf.strings.length(valid, "UTF8_CHAR")
        # The characters of the text before each run.
        before = tf.cumsum(sizes + len(token), exclusive=True)
        before -= tf.gather(before, tf.gather(runs.row_starts(), runs.value_rowids()))
        starts = starts + before[:, tf.newaxis]
        ends = ends + before[:, tf.newaxis]
        token_starts = before + sizes
        return (
            join_parts(runs.with_values(ids), number),
            join_parts(runs.with_values(starts), token_starts),
            join_parts(runs.with_values(ends), token_starts + len(token)),
        )

    def _as_output(self, ids):
        if self.compute_dtype == "string":
            return tf.gather(tf.constant(self._vocabulary.tokens), ids)
        return tf.cast(ids, self.compute_dtype)

    def detokenize(self, inputs: Sequence | np.ndarray | Tensor) -> tf.Tensor:
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
        return {
            **super().get_config(),
            self.source_argument: None,
            **self.get_settings(),
        }

    def get_settings(self) -> dict[str, Any]:
        """Return the arguments that determine the ids beside the vocabulary."""
        settings = {name: getattr(self, name) for name in self.settings}
        if "added_tokens" in settings:
            # Keras wraps dicts.
            settings["added_tokens"] = dict(self.added_tokens)
        return settings

    def with_settings(self, **changes: Any) -> "TextTokenizer":
        """Return a tokenizer with the same vocabulary and other `settings`."""
        source = {self.source_argument: self.source}
        return type(self).from_config({**self.get_config(), **source, **changes})

    def save_original(self, directory: str | os.PathLike) -> str:
        """Write the vocabulary file of a release into a directory; return its path."""
        path = os.path.join(directory, self.original_file_name)
        self._write(path)
        return path

    def save_to_preset(self, preset_dir: str | os.PathLike) -> None:
        """Write the tokenizer into a preset, completely or not at all."""
        with complete_directory(preset_dir) as folder:
            super().save_to_preset(str(folder))

    def save_assets(self, dir_path: str) -> None:
        self._write(os.path.join(dir_path, self.asset_file_name))

    def load_assets(self, dir_path: str) -> None:
        self.set_source(os.path.join(dir_path, self.asset_file_name))


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


def join_parts(
    parts: tf.RaggedTensor, between: int | None | tf.Tensor
) -> tf.RaggedTensor:
    """Join [batch, (parts), (tokens)] to [batch, (tokens)], with a value in between.

    `between` is a value, or one per part of which the last is left out.
    """
    between = tf.expand_dims(tf.cast(between, parts.dtype), -1)
    column = tf.broadcast_to(between, [parts.values.nrows(), 1])
    closed = tf.concat([parts.values, column], axis=1)
    splits = tf.gather(closed.row_splits, parts.row_splits)
    return tf.RaggedTensor.from_row_splits(closed.values, splits)[:, :-1]


def as_strings(texts: Strings, name: str = "inputs") -> Tensor:
    """Return strings of any shape and kind as a tensor.

    `name` and the position of a value that is not a string are in the error.
    """
    if not tf.is_tensor(texts):
        if not isinstance(texts, (str, bytes, np.ndarray)):
            texts = as_list(texts, name)
        values = np.asarray(texts, dtype=object)
        encoded = []
        for position, value in enumerate(values.ravel()):
            if isinstance(value, str):
                value = value.encode("utf-8", "albert_tf")
            if not isinstance(value, bytes):
                raise TypeError(
                    f"`{name}` should hold strings. Element {position} is "
                    f"{value!r} of type {type(value).__name__}."
                )
            encoded.append(value)
        texts = tf.reshape(tf.constant(encoded, tf.string), values.shape)
    if texts.dtype != tf.string:
        raise TypeError(f"`{name}` should hold strings, not {texts.dtype.name}.")
    return texts


def _stand_in(error: UnicodeError) -> tuple[str, int]:
    """Return what is encoded in place of characters, and where to continue."""
    assert isinstance(error, UnicodeEncodeError)
    # UTF-8 has no halves of surrogate pairs. The tokenizers drop this control character
    # in their place, which offsets count.
    return "\x7f" * (error.end - error.start), error.end


codecs.register_error("albert_tf", _stand_in)


def map_rows(
    function: Callable[[tf.Tensor], tf.Tensor], text: tf.Tensor, rows: tf.Tensor
) -> tf.Tensor:
    """Apply a function to the strings where `rows` is true."""
    indices = tf.where(rows)
    return tf.tensor_scatter_nd_update(
        text, indices, function(tf.gather_nd(text, indices))
    )
