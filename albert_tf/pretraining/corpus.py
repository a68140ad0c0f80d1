"""Read text files as blocks of documents, with bounded memory."""

import collections
import contextlib
import functools
import glob
import io
import itertools
import json
import os
import pathlib
import re
import zlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from albert_tf.data.files.compression import (
    COMPRESSED_ENDINGS,
    ZSTD_ENDINGS,
    byte_chunks,
    endings,
)
from albert_tf.data.files.json_values import JSON_ENDINGS, is_json
from albert_tf.data.files.text_lines import DOCUMENT_TAG, check_kind, open_text
from albert_tf.extras import import_extra
from albert_tf.pretraining.records import CHECKSUMS, MANIFEST
from albert_tf_lite.changes import change_check
from albert_tf_lite.errors import AlbertError

ARCHIVES = {".zip", ".tar", ".tgz", ".bz2", ".xz", ".7z", ".rar"}
# Advice for the user by kind of skipped lines.
_ADVICE = {
    "not_utf8": "are not in its encoding. Name that with `encoding=`, or convert them",
    "not_json": (
        'are not JSON objects with a string "{0.text_field}". If the text is in '
        "another field, name it with `text_field=`"
    ),
}
# Bytes that cannot be decoded become characters of their own.
_ERRORS = "surrogateescape"
# NULs, and bytes that are not of the encoding.
_UNDECODED = re.compile("[\0\udc80-\udcff]")


# Characters of a line that are read at a time.
PIECE = 2**16
# Where a long line is divided, by preference.
_ENDS = (("。", "！", "？", "!", "?", "…", ". "), ("；", ";", "，", ",", "、", " "))
_CLOSERS = re.compile("[”’」』）】》\"')\\]]*")


class _Piece(NamedTuple):
    """A line with its end, or a part of a long one."""

    text: str
    begins: bool  # The line begins with it.
    ends: bool  # The line ends with it.


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
        self.files = _find_files(files, {path.resolve() for path in excluded})
        self.block_bytes = block_bytes
        self.text_field = text_field
        self.encoding = encoding
        self.total_bytes = sum(path.stat().st_size for path in self.files)

    def blocks(self) -> Iterator[tuple[int, list[list[str]]]]:
        """Read the files from the start, resetting `counts` and `warnings`.

        Yields the bytes on disk that were read so far and documents, lists of lines.
        These depend on the files and the arguments only.
        """
        self.counts = dict.fromkeys(("documents", "lines", "bytes", *_ADVICE), 0)
        self._damaged: list[str] = []
        # The files with skipped lines, by kind.
        self._skipped_in: dict[str, list[pathlib.Path]] = collections.defaultdict(list)
        # The files without an end of a document, and the number of their lines.
        self._undivided: list[tuple[pathlib.Path, int]] = []
        block_bytes = document_bytes = position = 0
        documents: list[list[str]] = []
        document: list[str] = []
        for position, line in self._read():
            if not line:
                document = []
                continue
            # Close a block before the next line rather than after the last: no block
            # consists of skipped lines only.
            if (document_bytes if document else block_bytes) >= self.block_bytes:
                yield position, documents
                documents, document, block_bytes = [], [], 0
            if not document:
                documents.append(document)
                self.counts["documents"] += 1
                document_bytes = 0
            document.append(line)
            length = len(line.encode())
            document_bytes += length
            block_bytes += length
            self.counts["lines"] += 1
            self.counts["bytes"] += length
        if documents:
            yield self.total_bytes, documents

    @property
    def warnings(self) -> list[str]:
        """Messages about skipped lines, damaged files and single documents."""
        skipped = [
            f"{self.counts[kind]:,} lines were skipped, in {printable(files[0])}"
            + (f" and {len(files) - 1:,} more files" if len(files) > 1 else "")
            + f": they {_ADVICE[kind].format(self)}."
            for kind, files in self._skipped_in.items()
        ]
        return [*skipped, *self._damaged, *self._undivided_warning()]

    def _undivided_warning(self) -> Iterator[str]:
        if not self._undivided:
            return
        path, lines = max(self._undivided, key=lambda both: both[1])
        count = f"{len(self._undivided):,} of {len(self.files):,} files have"
        each = f"each is one document, {printable(path)} of {lines:,} lines"
        if len(self.files) == 1:
            count = f"{printable(path)} has"
            each = f"it is one document of {lines:,} lines"
        yield (
            f"{count} no empty line between documents: {each}. If each line is a "
            "document of its own, use --document-per-line (`document_per_line=True`); "
            "otherwise separate documents by empty lines."
        )

    def _read(self) -> Iterator[tuple[int, str]]:
        """Yield the lines of all files, and an empty one after each document.

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
            yield start, ""

    def _lines(self, path: pathlib.Path, file: io.BufferedReader) -> Iterator[str]:
        """Yield the stripped lines of a file, and count those that are skipped."""
        text = open_text(printable(path), file, self.encoding, _ERRORS, newline=None)
        pieces = _pieces(text)
        first = next((piece for piece in pieces if piece.text.strip()), None)
        if first is None:
            return
        pieces = itertools.chain([first], pieces)
        # Concatenated files may have several byte order marks.
        start = first.text.removeprefix("\ufeff").strip()
        if endings(path)[0] in JSON_ENDINGS or is_json(start):
            yield from self._json_lines(path, pieces)
        else:
            yield from self._text_lines(path, pieces)

    def _text_lines(
        self, path: pathlib.Path, pieces: Iterable[_Piece]
    ) -> Iterator[str]:
        """Yield the lines of text, and an empty one at the end of a document."""
        has_tags = in_document = False
        has_end = is_divided = False
        count = 0
        for piece in pieces:
            line = piece.text.removeprefix("\ufeff").strip()
            is_whole = piece.begins and piece.ends
            if _UNDECODED.search(line):
                self._skip("not_utf8", path)
            elif is_whole and DOCUMENT_TAG.fullmatch(line):
                has_tags, in_document = True, not line.startswith("</")
                yield ""
                continue
            elif line:
                is_divided |= has_end
                count += piece.begins
                yield line
            is_end = self.document_per_line and piece.ends
            if not in_document and (is_end or (is_whole and not line)):
                has_end = count > 0
                yield ""
        if count > 1 and not (has_tags or is_divided or self.document_per_line):
            self._undivided.append((path, count))

    def _json_lines(
        self, path: pathlib.Path, pieces: Iterable[_Piece]
    ) -> Iterator[str]:
        """Yield the lines of the texts of objects, and an empty one after each."""
        for line in _whole_lines(pieces):
            if _UNDECODED.search(line):
                self._skip("not_utf8", path)
            elif DOCUMENT_TAG.fullmatch(line):
                yield ""
            elif line:
                text = _json_text(line, self.text_field)
                if text is None:
                    self._skip("not_json", path)
                for part in _short_lines(text or ""):
                    if part:
                        yield part
                yield ""

    def _skip(self, kind: str, path: pathlib.Path) -> None:
        self.counts[kind] += 1
        if path not in self._skipped_in[kind][-1:]:
            self._skipped_in[kind].append(path)


def _pieces(text: io.TextIOBase) -> Iterator[_Piece]:
    """Yield the lines of a text, those of more than `PIECE` characters in pieces."""
    begins, rest = True, ""
    for part in iter(functools.partial(text.readline, PIECE), ""):
        rest += part
        if rest.endswith("\n"):
            yield _Piece(rest, begins, True)
            begins, rest = True, ""
        elif len(part) == PIECE:
            end = _last_end(rest)
            yield _Piece(rest[:end], begins, False)
            begins, rest = False, rest[end:]
    if rest or not begins:
        yield _Piece(rest, begins, True)


def _whole_lines(pieces: Iterable[_Piece]) -> Iterator[str]:
    """Yield the stripped lines of which these are the pieces."""
    parts: list[str] = []
    for piece in pieces:
        parts.append(piece.text)
        if piece.ends:
            line = "".join(parts)
            parts.clear()
            yield line.removeprefix("\ufeff").strip()


def _short_lines(text: str) -> Iterator[str]:
    """Yield the stripped lines of a text, long ones in pieces."""
    start = 0
    while start < len(text):
        part = text[start : start + PIECE]
        line, end_of_line, _ = part.partition("\n")
        if not end_of_line and len(part) == PIECE:
            line = part[: _last_end(part)]
        yield line.strip()
        start += len(line) + len(end_of_line)


def _last_end(text: str) -> int:
    """Return where the last sentence of a text ends, or else its last part."""
    for marks in _ENDS:
        places = [(text.rfind(mark), len(mark)) for mark in marks]
        place, length = max(places)
        if place >= 0:
            closers = _CLOSERS.match(text, place + length)
            return closers.end() if closers else place + length
    return len(text)


def printable(path: str | os.PathLike) -> str:
    """Return a name that can be printed: names unzipped from GBK have surrogates."""
    return str(path).encode("utf-8", "backslashreplace").decode()


def _find_files(
    patterns: str | os.PathLike | Iterable[str | os.PathLike],
    excluded: set[pathlib.Path],
) -> list[pathlib.Path]:
    """Return the files of paths and patterns, sorted by name, each once."""
    if isinstance(patterns, (str, os.PathLike)):
        patterns = [patterns]
    paths = [x for pattern in patterns for x in _matches(str(pattern), excluded)]
    if not paths:
        raise AlbertError("No text to read: `files` is empty. Name at least one file.")
    files: dict[str, pathlib.Path] = {}
    for path in sorted(paths, key=pathlib.Path.as_posix):
        _check(path)
        # Keep the first of several names, such as links, of one file.
        files.setdefault(os.path.realpath(path), path)
    return list(files.values())


def _matches(pattern: str, excluded: set[pathlib.Path]) -> list[pathlib.Path]:
    # The name of a file may contain brackets.
    if os.path.lexists(pattern) or not glob.has_magic(pattern):
        return [pathlib.Path(pattern)]
    found = filter(os.path.isfile, glob.glob(pattern, recursive=True))
    files = [
        path
        for path in map(pathlib.Path, found)
        if excluded.isdisjoint({path.resolve(), path.resolve().parent})
        and not any((path.parent / x).exists() for x in (MANIFEST, CHECKSUMS))
    ]
    if not files:
        raise FileNotFoundError(
            f"No text file matches the pattern {printable(pattern)}. To search all "
            "subfolders use folder/**/*.txt. The vocabulary and directories of records "
            "are left out."
        )
    return files


def _check(path: pathlib.Path) -> None:
    if {x.lower() for x in path.suffixes[-2:]} & ARCHIVES:
        raise AlbertError(
            f"{printable(path)} is an archive or has an unsupported compression. "
            f"Unpack it or leave it out. Supported are {', '.join(COMPRESSED_ENDINGS)}."
        )
    if endings(path)[1] in ZSTD_ENDINGS:
        import_extra("zstandard")
    # Report a file that is missing, not readable or no text now instead of hours later.
    with path.open("rb") as file, contextlib.suppress(OSError, EOFError, zlib.error):
        check_kind(printable(path), next(byte_chunks(file), b""), "utf-8")


def _json_text(line: str, field: str) -> str | None:
    """Return the text of a JSON object; `None` without one."""
    try:
        # JSON can contain halves of surrogate pairs, which UTF-8 cannot.
        return json.loads(line)[field].encode("utf-8", "ignore").decode()
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return None
