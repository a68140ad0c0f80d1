"""Read text files as blocks of documents, with bounded memory."""

import collections
import contextlib
import glob
import io
import itertools
import json
import os
import pathlib
import re
import zlib
from collections.abc import Iterable, Iterator

from albert_tf.data.reading import (
    COMPRESSED_ENDINGS,
    DOCUMENT_TAG,
    JSON_ENDINGS,
    ZSTD_ENDINGS,
    byte_chunks,
    check_kind,
    endings,
    is_json,
    open_text,
)
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


class Corpus:
    """Text files read as blocks of documents.

    A line is a sentence or a paragraph. An empty line, the end of a file or a tag
    <doc> of WikiExtractor ends a document. Each line of a file of JSON is an object:
    one document, the string in its `text_field`. Files may be compressed by gzip or
    zstd. The first megabyte of each determines its encoding, if none is given.

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
    ):
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
        """Messages about skipped lines and damaged files."""
        skipped = [
            f"{self.counts[kind]:,} lines were skipped, in {printable(files[0])}"
            + (f" and {len(files) - 1:,} more files" if len(files) > 1 else "")
            + f": they {_ADVICE[kind].format(self)}."
            for kind, files in self._skipped_in.items()
        ]
        return [*skipped, *self._damaged]

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
        # Concatenated files may have several byte order marks.
        lines = (line.removeprefix("\ufeff").strip() for line in text)
        head = list(itertools.islice(lines, 100))
        first = next(filter(None, head), "")
        has_objects = endings(path)[0] in JSON_ENDINGS or is_json(first)
        in_document = False
        for line in itertools.chain(head, lines):
            if _UNDECODED.search(line):
                self._skip("not_utf8", path)
            elif DOCUMENT_TAG.fullmatch(line):
                in_document = not line.startswith("</")
                yield ""
            elif not has_objects:
                yield from [line] * bool(line or not in_document)
            elif line:
                found = _json_text(line, self.text_field)
                if found is None:
                    self._skip("not_json", path)
                yield from filter(None, map(str.strip, (found or "").split("\n")))
                yield ""

    def _skip(self, kind: str, path: pathlib.Path) -> None:
        self.counts[kind] += 1
        if path not in self._skipped_in[kind][-1:]:
            self._skipped_in[kind].append(path)


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
