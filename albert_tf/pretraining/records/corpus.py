"""Read text files as blocks of documents, with bounded memory."""

import codecs
import collections
import io
import itertools
import os
import pathlib
import re
import zlib
from collections.abc import Iterable, Iterator

from albert_tf.data.files.compression import endings
from albert_tf.data.files.json_values import JSON_ENDINGS, is_json
from albert_tf.data.files.text_lines import DOCUMENT_TAG, open_text
from albert_tf.pretraining.records.corpus_files import find_files, printable
from albert_tf.pretraining.records.corpus_lines import (
    Piece,
    joined_lines,
    json_text,
    read_pieces,
    short_lines,
)
from albert_tf_lite.changes import change_check
from albert_tf_lite.errors import AlbertError

# Advice for the user by kind of skipped lines.
_ADVICE = {
    "not_utf8": "are not in its encoding. Name that with `encoding=`, or convert them",
    "not_json": (
        'are not JSON objects with a string "{0.text_field}". If the text is in '
        "another field, name it with `text_field=`"
    ),
}
# The name of `_as_surrogates`.
_ERRORS = "albert_tf_corpus"
# NULs, and bytes that are not of the encoding.
_UNDECODED = re.compile("[\0\udc80-\udcff]")
# Ends a document, among the lines of a file.
_END = ""


def _as_surrogates(error: UnicodeError) -> tuple[str, int]:
    """Return a surrogate for bytes that cannot be decoded, and where to continue.

    Unlike with `surrogateescape`, these may be of any encoding.
    """
    assert isinstance(error, UnicodeDecodeError)
    return "\udc80", error.end


codecs.register_error(_ERRORS, _as_surrogates)


class Corpus:
    """Text files read as blocks of documents.

    A line is a sentence or a paragraph. An empty line, the end of a file or a tag
    <doc> of WikiExtractor ends a document, with `document_per_line` each line without
    such tags. Each line of a file of JSON is an object: one document, the string in its
    `text_field`. Files may be compressed by gzip or zstd. The first megabyte of each
    determines its encoding, if none is given. A line of more than 65,536 characters is
    read in pieces, which end with a sentence and count as lines.

    Lines that cannot be decoded are skipped and counted in `counts`; the document
    continues after them. A block ends with the document that reaches `block_bytes`; a
    longer one is divided at a line end. Patterns leave out the paths in `excluded`.

    Attributes:
        files: list of `pathlib.Path`.
        counts: dict, the numbers of `documents`, `lines`, `bytes` and skipped lines
            that were read so far.
    """

    def __init__(
        self,
        files: str | os.PathLike | Iterable[str | os.PathLike],
        block_bytes: int = 4_000_000,
        text_field: str = "text",
        excluded: Iterable[pathlib.Path] = (),
        encoding: str | None = None,
        document_per_line: bool = False,
    ):
        self.document_per_line = document_per_line
        self.files = find_files(files, {path.resolve() for path in excluded})
        self.block_bytes = block_bytes
        self.text_field = text_field
        self.encoding = encoding
        self.total_bytes = sum(path.stat().st_size for path in self.files)
        self._reset()

    def _reset(self) -> None:
        """Forget what was counted and what the warnings are about."""
        self.counts = dict.fromkeys(("documents", "lines", "bytes", *_ADVICE), 0)
        self._damaged: list[str] = []
        # The files with skipped lines, by kind.
        self._skipped_in: dict[str, list[pathlib.Path]] = collections.defaultdict(list)
        # The files without an end of a document, and the number of their lines.
        self._undivided: list[tuple[pathlib.Path, int]] = []

    def blocks(self) -> Iterator[tuple[int, list[list[str]]]]:
        """Read the files from the start, resetting `counts` and `warnings`.

        Yields the bytes on disk that were read so far and documents, lists of lines.
        These depend on the files and the arguments only.
        """
        self._reset()
        block = _Block()
        for position, line in self._read():
            if line == _END:
                block.end_document()
                continue
            # Close a block before the next line rather than after the last: no block
            # consists of skipped lines only.
            if block.is_full(self.block_bytes):
                yield position, block.documents
                block = _Block()
            if not block.is_in_document:
                self.counts["documents"] += 1
            length = len(line.encode())
            self.counts["lines"] += 1
            self.counts["bytes"] += length
            block.add(line, length)
        if block.documents:
            yield self.total_bytes, block.documents

    # === Warnings ===

    @property
    def warnings(self) -> list[str]:
        """Messages about skipped lines, damaged files and single documents."""
        messages = [
            self._skipped_warning(kind, files)
            for kind, files in self._skipped_in.items()
        ]
        messages += self._damaged
        if self._undivided:
            messages.append(self._undivided_warning())
        return messages

    def _skipped_warning(self, kind: str, files: list[pathlib.Path]) -> str:
        more = f" and {len(files) - 1:,} more files" if len(files) > 1 else ""
        advice = _ADVICE[kind].format(self)
        return (
            f"{self.counts[kind]:,} lines were skipped, in {printable(files[0])}{more}"
            f": they {advice}."
        )

    def _undivided_warning(self) -> str:
        path, lines = max(self._undivided, key=lambda both: both[1])
        count = f"{len(self._undivided):,} of {len(self.files):,} files have"
        each = f"each is one document, {printable(path)} of {lines:,} lines"
        if len(self.files) == 1:
            count = f"{printable(path)} has"
            each = f"it is one document of {lines:,} lines"
        return (
            f"{count} no empty line between documents: {each}. If each line is a "
            "document of its own, use --document-per-line (`document_per_line=True`); "
            "otherwise separate documents by empty lines."
        )

    # === Lines ===

    def _read(self) -> Iterator[tuple[int, str]]:
        """Yield the lines of all files, and `_END` after each document.

        Each comes after the number of bytes that were read so far.
        """
        start = 0
        for path in self.files:
            check_unchanged = change_check(path)
            with path.open("rb") as file:
                try:
                    for line in self._lines(path, file):
                        yield start + file.tell(), line
                except (OSError, EOFError, zlib.error) as error:
                    self._damaged.append(
                        f"{printable(path)} is damaged or truncated ({error}). The "
                        "complete lines before the damage were read."
                    )
                start += file.tell()
            try:
                check_unchanged()
            except AlbertError:
                self._damaged.append(
                    f"{printable(path)} has changed while it was read. Run the command "
                    "again when no other program writes to it."
                )
            yield start, _END

    def _lines(self, path: pathlib.Path, file: io.BufferedReader) -> Iterator[str]:
        """Yield the stripped lines of a file, and count those that are skipped."""
        text = open_text(printable(path), file, self.encoding, _ERRORS, newline=None)
        pieces = read_pieces(text)
        first = next((piece for piece in pieces if piece.text.strip()), None)
        if first is None:
            return
        pieces = itertools.chain([first], pieces)
        if endings(path)[0] in JSON_ENDINGS or is_json(first.stripped):
            yield from self._json_lines(path, pieces)
        else:
            yield from self._text_lines(path, pieces)

    def _text_lines(self, path: pathlib.Path, pieces: Iterable[Piece]) -> Iterator[str]:
        """Yield the lines of text, and `_END` after each document."""
        has_tags = False
        # Between a tag that opens a document and the one that closes it.
        in_tags = False
        # An end was seen after a line.
        has_end = False
        # An end was seen between two lines.
        is_divided = False
        num_lines = 0
        for piece in pieces:
            line = piece.stripped
            if _UNDECODED.search(line):
                self._skip("not_utf8", path)
            elif piece.is_whole and DOCUMENT_TAG.fullmatch(line):
                has_tags = True
                in_tags = not line.startswith("</")
                yield _END
                continue
            elif line:
                if has_end:
                    is_divided = True
                if piece.begins:
                    num_lines += 1
                yield line
            is_empty = piece.is_whole and not line
            ends_line = self.document_per_line and piece.ends
            if not in_tags and (is_empty or ends_line):
                has_end = num_lines > 0
                yield _END
        has_documents = has_tags or is_divided or self.document_per_line
        if num_lines > 1 and not has_documents:
            self._undivided.append((path, num_lines))

    def _json_lines(self, path: pathlib.Path, pieces: Iterable[Piece]) -> Iterator[str]:
        """Yield the lines of the texts of objects, and `_END` after each."""
        for line in joined_lines(pieces):
            if _UNDECODED.search(line):
                self._skip("not_utf8", path)
            elif DOCUMENT_TAG.fullmatch(line):
                yield _END
            elif line:
                text = json_text(line, self.text_field)
                if text is None:
                    self._skip("not_json", path)
                yield from filter(None, short_lines(text or ""))
                yield _END

    def _skip(self, kind: str, path: pathlib.Path) -> None:
        """Count a line that is skipped, and remember its file once."""
        self.counts[kind] += 1
        files = self._skipped_in[kind]
        if not files or files[-1] != path:
            files.append(path)


class _Block:
    """The documents of a block, to which lines are added.

    Attributes:
        documents: list of lists of lines.
        is_in_document: bool. The next line continues the last document.
    """

    def __init__(self) -> None:
        self.documents: list[list[str]] = []
        self.is_in_document = False
        self._bytes = self._document_bytes = 0

    def is_full(self, block_bytes: int) -> bool:
        """Return whether the next line begins another block.

        Within a document, only if this document alone fills a block.
        """
        if self.is_in_document:
            return self._document_bytes >= block_bytes
        return self._bytes >= block_bytes

    def add(self, line: str, length: int) -> None:
        """Add a line, of a number of bytes, to the last document or a new one."""
        if not self.is_in_document:
            self.documents.append([])
            self.is_in_document = True
            self._document_bytes = 0
        self.documents[-1].append(line)
        self._document_bytes += length
        self._bytes += length

    def end_document(self) -> None:
        self.is_in_document = False
