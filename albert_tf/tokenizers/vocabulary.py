"""A WordPiece vocabulary: reading it, and the engine that finds its pieces."""

import os
import unicodedata

import tensorflow as tf
import tensorflow_text as tf_text

from albert_tf.files import decode_utf8
from albert_tf.tokenizers.normalization import (
    MAX_CHARACTERS_PER_WORD,
    UNREACHABLE_MARK,
)
from albert_tf_lite.errors import AlbertError

REQUIRED_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
BLANKS = " \t\r\n"


class Vocabulary:
    """Tokens by id, ids by token, and the WordPiece engine over them."""

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
            begin = f"its {len(self.tokens)} tokens begin with {self.tokens[:4]}"
            raise AlbertError(
                f"{source} lacks {' '.join(missing)}; "
                f"{begin if self.tokens else 'it is empty'}. "
                "Use the vocab.txt that came with the checkpoint."
            )
        try:
            self.engine = build_engine(self.tokens, self.ids)
        except RuntimeError as error:
            raise AlbertError(
                f"{source} holds no token but special ones; is it cut short? Use the "
                "vocab.txt that came with the checkpoint."
            ) from error


def read_tokens(path, source):
    if not os.path.isfile(path):
        raise FileNotFoundError(
            f"{source} does not exist or is no file. Expected the path of a text file "
            "with one token a line, such as the vocab.txt of a release."
        )
    with open(path, "rb") as file:
        content = file.read()
    hint = "Save it as UTF-8; the name of a SentencePiece model must end in .model."
    text = decode_utf8(content, source, hint)
    # Not splitlines(): U+2028 is a token of the released vocabularies.
    rows = [row.strip(BLANKS).replace("\t", " ") for row in text.split("\n")]
    tokens = [row.split(" ", 1)[0] for row in rows]
    while tokens and not tokens[-1]:
        tokens.pop()
    return tokens


def check_tokens(tokens):
    tokens = [t.strip(BLANKS) if isinstance(t, str) else t for t in tokens]
    for i, token in enumerate(tokens):
        if not isinstance(token, str) or any(blank in token for blank in BLANKS):
            raise AlbertError(
                f"Token {i} of the list is {token!r}. Expected a string without "
                "spaces, tabs and line ends, where text is split."
            )
    if tokens and not tokens[-1]:
        # A vocabulary file cannot hold it.
        raise AlbertError("The list of tokens ends with an empty token. Remove it.")
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
