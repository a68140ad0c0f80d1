"""Compare vocabularies with models."""

import os
import pathlib
import warnings

import keras_hub

from albert_tf_lite.errors import AlbertError

# Tables of token vectors are padded to one of these.
_MULTIPLES = (8, 16, 32, 64, 128, 256, 512, 1024)


def check_bytes(vocabulary: object, expected: int) -> None:
    """Raise if a text file of tokens is far too large for the tokens of a model.

    A tokenizer of millions of tokens, or of one of megabytes, takes minutes and
    gigabytes.
    """
    if not isinstance(vocabulary, (str, os.PathLike)):
        return
    path = pathlib.Path(vocabulary)
    size = path.stat().st_size if path.suffix == ".txt" and path.is_file() else 0
    if size > 256 * expected + 1_000_000:
        raise AlbertError(
            f"{path} has {size:,} bytes, the model {expected:,} tokens. The file "
            "belongs to another model."
        )


def check_vocabulary(
    tokenizer: keras_hub.tokenizers.Tokenizer, expected: int, name: str | None
) -> None:
    """Raise unless a model has a row for each token and few more.

    Tables are often padded to a multiple of a power of two.

    Args:
        tokenizer: the tokenizer.
        expected: int, the rows of the model's table.
        name: string for the error, such as the path of the vocabulary.
    """
    size = tokenizer.vocabulary_size()
    more = expected - size
    paddings = [-size % multiple for multiple in _MULTIPLES]
    if more == 0 or more in paddings:
        return
    message = (
        f"The vocabulary of {name} has {size} tokens, the model {expected}. The "
        "file is truncated or belongs to another model"
    )
    if more < 0 or more > expected / 10:
        raise AlbertError(f"{message}.")
    warnings.warn(f"{message}, unless the table was padded.", stacklevel=6)
