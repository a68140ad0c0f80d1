import json
import os

import keras
import keras_hub
import tensorflow as tf

from albert_tf.models.albert_backbone import AlbertBackbone
from albert_tf.preprocessing.normalization import normalize, original_offsets
from albert_tf.preprocessing.vocabulary import REQUIRED_TOKENS, Vocabulary

VOCABULARY_FILE = "vocabulary.txt"

# What is written without spaces: ideographs, kana, full-width forms and the
# punctuation between them.
UNSPACED = (
    r"\x{2014}\x{2018}-\x{201d}\x{2026}\x{2e80}-\x{312f}\x{3190}-\x{9fff}"
    r"\x{f900}-\x{faff}\x{fe30}-\x{fe4f}\x{ff00}-\x{ff9f}\x{20000}-\x{3ffff}"
)


@keras.saving.register_keras_serializable(package="albert_tf")
class WordPieceTokenizer(keras_hub.tokenizers.Tokenizer):
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

    backbone_cls = AlbertBackbone

    cls_token = "[CLS]"
    sep_token = "[SEP]"
    pad_token = "[PAD]"
    unk_token = "[UNK]"
    mask_token = "[MASK]"

    def __init__(self, vocabulary=None, lowercase=True, dtype="int32", **kwargs):
        super().__init__(dtype=dtype, **kwargs)
        if self.compute_dtype not in ("int32", "int64", "string"):
            raise ValueError(
                "`dtype` must be 'int32' or 'int64' for ids or 'string' for "
                f"pieces. Received: dtype={dtype}"
            )
        self.lowercase = lowercase
        self.file_assets = [VOCABULARY_FILE]
        self.set_vocabulary(vocabulary)

    def set_vocabulary(self, vocabulary):
        """Sets the vocabulary from a file path or a list of tokens."""
        self._vocabulary = None if vocabulary is None else Vocabulary(vocabulary)
        ids = self._vocabulary.ids if self._vocabulary else {}
        for name in ("pad", "unk", "cls", "sep", "mask"):
            setattr(self, f"{name}_token_id", ids.get(getattr(self, f"{name}_token")))

    def get_vocabulary(self):
        return list(self._required_vocabulary().tokens)

    def vocabulary_size(self):
        return len(self._required_vocabulary().tokens)

    def id_to_token(self, id):
        tokens = self._required_vocabulary().tokens
        if not 0 <= id < len(tokens):
            raise ValueError(
                f"`id` must be in [0, {len(tokens) - 1}]. Received: id={id}"
            )
        return tokens[id]

    def token_to_id(self, token):
        ids = self._required_vocabulary().ids
        if token not in ids:
            raise ValueError(f"Token {token!r} is not in the vocabulary.")
        return ids[token]

    @property
    def special_tokens(self):
        ids = self._required_vocabulary().ids
        return [t for t in (*REQUIRED_TOKENS, self.mask_token) if t in ids]

    @property
    def special_token_ids(self):
        return [self.token_to_id(token) for token in self.special_tokens]

    def _required_vocabulary(self):
        if self._vocabulary is None:
            raise ValueError(
                f"Tokenizer {self.name!r} has no vocabulary yet. Pass "
                "`vocabulary`, call `set_vocabulary()`, or load the tokenizer "
                "with `from_preset()`."
            )
        return self._vocabulary

    def call(self, inputs, training=None):
        return self.tokenize(inputs)

    def compute_output_spec(self, inputs, training=None):
        return keras.KerasTensor((*inputs.shape, None), dtype=self.compute_dtype)

    def tokenize(self, inputs):
        """Returns the ids (or pieces) of each string."""
        return apply_to_batch(self._tokenize_batch, inputs)

    def tokenize_with_offsets(self, inputs):
        """Returns `(ids, starts, ends)`, all of the shape of `tokenize()`.

        `text[start:end]` is what a piece was made of. Offsets count characters
        (Unicode code points) of the original string, invalid bytes left out.
        Accents that were stripped belong to the character before them.
        """
        return apply_to_batch(self._tokenize_batch_with_offsets, inputs)

    def detokenize(self, inputs):
        """Joins the ids of each sequence to a string.

        `[PAD]`, `[CLS]`, `[SEP]` and `[MASK]` are left out; `[UNK]` stays,
        for it stands where there was text.
        """
        vocabulary = self._required_vocabulary()
        if isinstance(inputs, (list, tuple)):
            inputs = tf.ragged.constant(inputs, dtype=tf.int32)
        dropped = {self.pad_token, self.cls_token, self.sep_token, self.mask_token}
        pieces = ["" if t in dropped else t for t in vocabulary.tokens]
        with tf.device("cpu"):
            return join_pieces(tf.gather(tf.constant(pieces), inputs))

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

    def get_config(self):
        # The vocabulary travels as an asset, as in KerasHub: a path would
        # point at this machine.
        return {**super().get_config(), "vocabulary": None, "lowercase": self.lowercase}

    def save_assets(self, dir_path):
        path = os.path.join(dir_path, VOCABULARY_FILE)
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{token}\n" for token in self.get_vocabulary())

    def load_assets(self, dir_path):
        self.set_vocabulary(os.path.join(dir_path, VOCABULARY_FILE))

    @classmethod
    def from_preset(cls, preset, config_file="tokenizer.json", **kwargs):
        """Loads the tokenizer of a preset.

        KerasHub reads only presets that hold a model; a local directory
        written by `tokenizer.save_to_preset()` alone is read here too.
        """
        preset = os.fspath(preset)
        path = os.path.join(preset, config_file)
        if not os.path.isfile(path):
            return super().from_preset(preset, config_file, **kwargs)
        with open(path, encoding="utf-8") as file:
            config = json.load(file)
        config["config"].update(kwargs)
        tokenizer = keras.saving.deserialize_keras_object(config)
        if not isinstance(tokenizer, cls):
            raise ValueError(
                f"Preset '{preset}' holds a {type(tokenizer).__name__}, not a "
                f"{cls.__name__}. Call {type(tokenizer).__name__}.from_preset()."
            )
        tokenizer.load_preset_assets(preset)
        return tokenizer


def apply_to_batch(function, inputs):
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


def as_strings(inputs):
    if not isinstance(inputs, (tf.Tensor, tf.RaggedTensor)):
        inputs = tf.convert_to_tensor(inputs)
    if inputs.dtype == tf.string:
        return inputs
    if 0 in inputs.shape:
        # An empty Python list or NumPy array comes as float.
        return tf.zeros(inputs.shape, tf.string)
    raise ValueError(
        "The tokenizer expects strings: a str, a list of them, or a string "
        f"tensor. Received: dtype={inputs.dtype.name}, shape={inputs.shape}"
    )


def join_pieces(pieces):
    text = tf.strings.reduce_join(pieces, axis=-1, separator=" ")
    text = tf.strings.regex_replace(text, "(^| +)##", "")
    text = tf.strings.strip(tf.strings.regex_replace(text, " +", " "))
    # Twice, for matches do not overlap.
    for _ in range(2):
        text = tf.strings.regex_replace(text, f"([{UNSPACED}]) ([{UNSPACED}])", r"\1\2")
    return text
