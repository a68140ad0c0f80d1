"""jieba itself, with a user dictionary, which rjieba does not have."""

import io
import logging
import os
import pathlib

import jieba
import numpy as np
from jieba import finalseg

from zh.fast_jieba import code_points, positions


class PlainBoundaries:
    """Where words begin, by jieba alone, with the bytes of a user dictionary."""

    def __init__(self, dictionary, hmm):
        self.hmm = hmm
        self.tokenizer = jieba.Tokenizer()
        level = jieba.default_logger.level
        jieba.setLogLevel(logging.WARNING)
        try:
            self.tokenizer.initialize()
        finally:
            jieba.setLogLevel(level)
        # jieba keeps the words of frequency 0, which its HMM shall not build, for
        # all tokenizers together. Here they are this one's.
        others = set(finalseg.Force_Split_Words)
        if dictionary is not None:
            self.tokenizer.load_userdict(io.BytesIO(dictionary))
        new = finalseg.Force_Split_Words - others
        finalseg.Force_Split_Words -= new
        # It looks them up among the words of Chinese characters only.
        self.forbidden = {word for word in new if finalseg.re_han.fullmatch(word)}

    def __call__(self, text):
        starts = positions(map(len, self._words(text)))
        if "\r\n" in text:
            newlines = np.flatnonzero(code_points(text) == ord("\n"))
            starts = np.union1d(starts, newlines)
        return starts

    def _words(self, text):
        for word in self.tokenizer.cut(text, HMM=self.hmm):
            if word in self.forbidden:
                yield from word
            else:
                yield word


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
        name, lines = "The user dictionary", list(dictionary)
        for line in lines:
            if not isinstance(line, str) or not line.strip() or "\n" in line:
                raise ValueError(f"{name} has {line!r} where a word should be.")
        data = "\n".join(lines).encode()
    try:
        lines = data.decode().split("\n")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ValueError(
            f"{name} is not UTF-8: byte 0x{data[error.start]:02x} in line {line}. "
            "If it is GBK or GB18030, convert it: iconv -f GB18030 -t UTF-8."
        ) from error
    for number, line in enumerate(lines, start=1):
        # jieba would take the whole line for the word, and never find it.
        if "\t" in line.strip():
            raise ValueError(
                f"{name} has a tab in line {number}: {line.strip()!r}. Expected "
                "'word [frequency] [tag]', separated by one space each."
            )
    return data
