"""jieba itself, with a user dictionary, which rjieba does not have."""

import functools
import io
import logging
import os
import pathlib

import jieba
import numpy as np

from albert_tf_lite.errors import AlbertError
from zh.fast_jieba import code_points, positions


class PlainBoundaries:
    """Where words begin, by jieba alone, with the bytes of a user dictionary."""

    def __init__(self, dictionary, hmm):
        self.hmm = hmm
        if dictionary is None:
            self.tokenizer = _shared_tokenizer()
        else:
            self.tokenizer = _new_tokenizer()
            self.tokenizer.load_userdict(io.BytesIO(dictionary))

    def __call__(self, text):
        starts = positions(map(len, self.tokenizer.cut(text, HMM=self.hmm)))
        if "\r\n" in text:
            newlines = np.flatnonzero(code_points(text) == ord("\n"))
            starts = np.union1d(starts, newlines)
        return starts


def _new_tokenizer():
    """A tokenizer with jieba's dictionary, some 100 MB, loaded without a word of it."""
    tokenizer = jieba.Tokenizer()
    level = jieba.default_logger.level
    jieba.setLogLevel(logging.WARNING)
    try:
        tokenizer.initialize()
    finally:
        jieba.setLogLevel(level)
    return tokenizer


# Not `jieba.dt`, to which a program may have added words.
_shared_tokenizer = functools.cache(_new_tokenizer)


def read_dictionary(dictionary):
    """The bytes of a user dictionary, a file or a list of lines, for jieba."""
    if isinstance(dictionary, str | os.PathLike):
        name, path = f"The user dictionary {dictionary}", pathlib.Path(dictionary)
        if not path.is_file():
            raise FileNotFoundError(
                f"There is no user dictionary {dictionary}. Expected a file with a "
                "word a line, or a list of words."
            )
        data = path.read_bytes()
    else:
        name, data = "The user dictionary", "\n".join(dictionary).encode()
    try:
        lines = data.decode().split("\n")
    except UnicodeDecodeError as error:
        raise AlbertError(
            f"{name} is not UTF-8: {error}. If it is GBK or GB18030, convert it: iconv "
            "-f GB18030 -t UTF-8."
        ) from error
    for number, line in enumerate(lines, start=1):
        # jieba would take the whole line for the word, and never find it.
        if "\t" in line.strip():
            raise AlbertError(
                f"{name} has a tab in line {number}: {line.strip()!r}. Expected "
                "'word [frequency] [tag]', separated by one space each."
            )
    return data
