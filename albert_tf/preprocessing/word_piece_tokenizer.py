import json
import os
import unicodedata

import keras
import keras_hub
import tensorflow as tf
import tensorflow_text as tf_text

from albert_tf.models.albert_backbone import AlbertBackbone

VOCABULARY_FILE = "vocabulary.txt"
REQUIRED_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
MAX_CHARACTERS_PER_WORD = 100
BLANKS = " \t\r\n"

# Ranges of the original's `_is_chinese_char` that need no normalisation, and
# punctuation common in Chinese text: all of these stand alone as a token.
SEPARATORS = (
    r"\t\n\r -/:-@\[-`{-~\x{2010}-\x{2027}\x{3000}-\x{3003}\x{3008}-\x{3011}"
    r"\x{3400}-\x{4dbf}\x{4e00}-\x{9fff}\x{ff01}-\x{ff03}\x{ff05}-\x{ff0a}"
    r"\x{ff0c}-\x{ff0f}\x{ff1a}\x{ff1b}\x{ff1f}\x{ff20}"
)
PLAIN_WORD = r"[0-9A-Za-z\x{ff10}-\x{ff19}]{0,100}"
# Most lines of Chinese text match and need nothing but ASCII lower-casing.
PLAIN_TEXT = f"(?:{PLAIN_WORD}[{SEPARATORS}])*{PLAIN_WORD}"
CONTROL = r"[\x00-\x08\x{0b}\x{0c}\x{0e}-\x1f\x7f-\x{9f}\p{Cf}\x{fffd}]+"
ACCENT = r"\p{Mn}"
CJK = (
    r"\x{3400}-\x{4dbf}\x{4e00}-\x{9fff}\x{f900}-\x{faff}\x{20000}-\x{2a6df}"
    r"\x{2a700}-\x{2ceaf}\x{2f800}-\x{2fa1f}"
)
STANDALONE = rf"([!-/:-@\[-`{{-~\p{{P}}{CJK}])"
# RE2 runs out of memory on `{101}` of an exact class of word characters, so
# this cheap superset finds the few candidates and the exact rule follows.
MAYBE_LONG_WORD = rf"(?s).*[^{SEPARATORS}]{{101}}.*"
LONG_WORD = r"([^\t\n\x0b\r \p{Z}]{101})"

# Cleaned text holds no control characters: they are free to serve as marks.
UNKNOWN_MARK = "\x01"
SPACE_MARK = "\x0b"
UNREACHABLE_MARK = "\x02"

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


class Vocabulary:
    """Tokens by id, ids by token, and the WordPiece engine over them.

    Args:
        vocabulary: path of a file or list of tokens.
    """

    def __init__(self, vocabulary):
        if isinstance(vocabulary, (str, os.PathLike)):
            source = f"Vocabulary file '{os.fspath(vocabulary)}'"
            self.tokens = read_tokens(vocabulary, source)
        else:
            source = "The list of tokens"
            self.tokens = check_tokens(vocabulary)
        # Of a repeated token the original keeps the last row.
        self.ids = {token: i for i, token in enumerate(self.tokens)}
        missing = [token for token in REQUIRED_TOKENS if token not in self.ids]
        if missing:
            raise ValueError(
                f"{source} lacks {' '.join(missing)}; its {len(self.tokens)} "
                f"tokens begin with {self.tokens[:4]}. Expected a BERT "
                f"vocabulary with {' '.join(REQUIRED_TOKENS)}, one token a "
                "line. Use the vocab.txt that came with the checkpoint."
            )
        self.engine = build_engine(self.tokens, self.ids)


def read_tokens(path, source):
    if not os.path.isfile(path):
        raise FileNotFoundError(
            f"{source} does not exist or is no file. Expected the path of a "
            "text file with one token a line, such as the vocab.txt of a "
            "release. Check the path, or pass the tokens as a list."
        )
    with open(path, "rb") as file:
        content = file.read()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{source} is not UTF-8: byte {error.object[error.start]:#04x} in "
            f"line {line}. Expected a text file with one token a line. Save it "
            "as UTF-8, or name the vocabulary rather than a model file."
        ) from error
    # Not splitlines(): U+2028 is a token of the released vocabularies.
    rows = [row.strip(BLANKS).replace("\t", " ") for row in text.split("\n")]
    tokens = [row.split(" ", 1)[0] for row in rows]
    while tokens and not tokens[-1]:
        tokens.pop()
    if not tokens:
        raise ValueError(
            f"{source} is empty. Expected one token a line. Copy the vocab.txt "
            "of the release again."
        )
    return tokens


def check_tokens(tokens):
    tokens = [t.strip(BLANKS) if isinstance(t, str) else t for t in tokens]
    for i, token in enumerate(tokens):
        if not isinstance(token, str) or any(blank in token for blank in BLANKS):
            raise ValueError(
                f"Token {i} of the list is {token!r}. Expected a string without "
                "spaces, tabs and line ends: text is split there, and "
                f"{VOCABULARY_FILE} cannot hold them. Pass one token an element."
            )
    if not tokens or not tokens[-1]:
        raise ValueError(
            "The list of tokens is empty or ends with an empty token. Expected "
            "one token an element. Remove what follows the last token."
        )
    return tokens


def build_engine(tokens, ids):
    # FastWordpiece refuses repeated tokens and, unlike the original, finds
    # tokens with white space in them; rows the original never returns get a
    # name that cleaned text cannot hold.
    rows = [
        token if ids[token] == i and is_reachable(token) else f"{UNREACHABLE_MARK}{i}"
        for i, token in enumerate(tokens)
    ]
    with tf.init_scope(), tf.device("cpu"):
        return tf_text.FastWordpieceTokenizer(
            rows,
            # A limit in bytes: this one never cuts a word of 100 characters.
            max_bytes_per_word=4 * MAX_CHARACTERS_PER_WORD,
            token_out_type=tf.int32,
        )


def is_reachable(token):
    length = len(token.removeprefix("##"))
    return 0 < length <= MAX_CHARACTERS_PER_WORD and not any(
        unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp", "Zs") for c in token
    )


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


def map_rows(function, text, rows):
    """Replaces the strings where `rows` is true with `function` of them."""
    indices = tf.where(rows)
    return tf.tensor_scatter_nd_update(
        text, indices, function(tf.gather_nd(text, indices))
    )


def normalize(text, lowercase):
    """Makes text in which FastWordpiece finds the words of the original."""
    plain = tf.strings.regex_full_match(text, PLAIN_TEXT)
    cleaned = map_rows(
        lambda rows: mark_long_words(clean(rows, lowercase)), text, ~plain
    )
    return tf.strings.lower(cleaned) if lowercase else cleaned


def clean(text, lowercase):
    text = tf.strings.unicode_transcode(text, "UTF-8", "UTF-8", errors="ignore")
    text = tf.strings.regex_replace(text, CONTROL, "")
    if not lowercase:
        return text
    # ASCII first: the other obeys the locale of the process, and in Turkish
    # "I" has no dot.
    text = tf.strings.lower(tf.strings.lower(text), encoding="utf-8")
    text = tf_text.normalize_utf8(text, "NFD")
    return tf.strings.regex_replace(text, f"{ACCENT}+", "")


def mark_long_words(text):
    """Makes words over 100 characters unknown, whatever the vocabulary."""

    def mark(rows):
        spaced = f"{SPACE_MARK}\\1{SPACE_MARK}"
        rows = tf.strings.regex_replace(rows, STANDALONE, spaced)
        return tf.strings.regex_replace(rows, LONG_WORD, f"{UNKNOWN_MARK}\\1")

    return map_rows(mark, text, tf.strings.regex_full_match(text, MAYBE_LONG_WORD))


def original_offsets(text, normalized, starts, ends, lowercase):
    """Maps byte offsets in normalised text to characters of the original."""
    characters = tf.strings.unicode_decode(text, "UTF-8", errors="ignore")
    sizes, is_accent = cleaned_sizes(characters.flat_values, lowercase)
    # [bytes] the character that each byte of the cleaned batch was made from.
    origin = tf.repeat(tf.range(tf.size(sizes)), sizes)
    row = starts.value_rowids()
    offsets = tf.stack([starts.values, ends.values - 1])
    first, last = tf.unstack(
        tf.gather(origin, cleaned_position(normalized, offsets, row))
    )
    row_start = tf.cast(tf.gather(characters.row_starts(), row), tf.int32)
    row_limit = tf.cast(tf.gather(characters.row_limits(), row), tf.int32)
    end = tf.minimum(tf.gather(next_base(is_accent), last), row_limit)
    return (
        starts.with_values(first - row_start),
        starts.with_values(end - row_start),
    )


def cleaned_sizes(characters, lowercase):
    """Bytes each character becomes, and whether it is a stripped accent.

    Cleaning acts on one character at a time but for the order of marks and
    the form of a final sigma, and neither changes a size.
    """
    unique, index = tf.unique(characters)
    unique = tf.strings.unicode_encode(unique[:, tf.newaxis], "UTF-8")
    sizes = tf.strings.length(clean(unique, lowercase))
    is_accent = tf.strings.regex_full_match(unique, ACCENT) & (sizes == 0)
    return tf.gather(sizes, index), tf.gather(is_accent, index)


def cleaned_position(normalized, offsets, row):
    """Position in all cleaned bytes of the batch: offsets without the marks."""
    data = tf.io.decode_raw(tf.strings.reduce_join(normalized), tf.uint8)
    is_mark = (data == ord(UNKNOWN_MARK)) | (data == ord(SPACE_MARK))
    marks_before = tf.cumsum(tf.cast(is_mark, tf.int32), exclusive=True)
    row_start = tf.cumsum(tf.strings.length(normalized), exclusive=True)
    position = tf.gather(row_start, row) + tf.cast(offsets, tf.int32)
    return position - tf.gather(marks_before, position)


def next_base(is_accent):
    """Index of the first character after each that is no stripped accent."""
    is_base = tf.logical_not(is_accent)
    bases = tf.cast(tf.where(is_base)[:, 0], tf.int32)
    bases = tf.concat([bases, [tf.size(is_accent)]], axis=0)
    return tf.gather(bases, tf.cumsum(tf.cast(is_base, tf.int32)))


def join_pieces(pieces):
    text = tf.strings.reduce_join(pieces, axis=-1, separator=" ")
    text = tf.strings.regex_replace(text, "(^| +)##", "")
    text = tf.strings.strip(tf.strings.regex_replace(text, " +", " "))
    # Twice, for matches do not overlap.
    for _ in range(2):
        text = tf.strings.regex_replace(text, f"([{UNSPACED}]) ([{UNSPACED}])", r"\1\2")
    return text
