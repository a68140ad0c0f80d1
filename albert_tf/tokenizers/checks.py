"""Compare vocabularies with models."""

import os
import pathlib
import warnings
from typing import Any

from albert_tf_lite.errors import AlbertError


def check_bytes(vocabulary: Any, expected: int) -> None:
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


def check_vocabulary(tokenizer: Any, expected: int, name: Any) -> None:
    """Raise unless a model has a row for each token and few more.

    Tables are often padded to a multiple of a power of two.
    """
    found = tokenizer.vocabulary_size()
    more = expected - found
    # 8 to 1,024.
    if more == 0 or any(-found % 2**x == more for x in range(3, 11)):
        return
    message = (
        f"The vocabulary of {name} has {found} tokens, the model {expected}. The "
        "file is truncated or belongs to another model"
    )
    if more < 0 or more > expected / 10:
        raise AlbertError(f"{message}.")
    warnings.warn(f"{message}, unless the table was padded.", stacklevel=6)
