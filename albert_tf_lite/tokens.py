"""Tokens of a text, and what all tokenizers have in common."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol


class Tokens(NamedTuple):
    """The ids of the tokens of a text, and their characters in it."""

    ids: list[int]
    starts: list[int]
    ends: list[int]


class Tokenizer(Protocol):
    """A tokenizer of `albert_tf_lite` or of `albert_tf`."""

    @property
    def unk_token(self) -> str: ...

    @property
    def unk_token_id(self) -> int: ...

    def vocabulary_size(self) -> int: ...

    def rows_with_offsets(self, texts: Sequence[str]) -> Iterator[tuple]: ...
