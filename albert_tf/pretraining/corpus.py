"""Read text files as blocks of documents.

A corpus may be larger than memory and contain lines that are not text. Files are read
as streams, unreadable lines are skipped and counted, and memory is bounded by
`block_bytes` and `max_line_bytes`.
"""

import collections
import dataclasses
import json
import os
import pathlib
import zlib
from collections.abc import Callable, Iterable, Iterator

from albert_tf.pretraining.text_files import (
    endings,
    find_files,
    printable,
    read_lines,
)
from albert_tf_lite.errors import AlbertError

JSON_ENDINGS = (".jsonl", ".json", ".ndjson")
# Advice for the user by kind of skipped lines.
_ADVICE = {
    "not_utf8": "are not UTF-8. Convert them: iconv -f GB18030 -t UTF-8 (or -f UTF-16)",
    "too_long": (
        "are longer than {0.max_line_bytes:,} bytes. End a line after each sentence or "
        "paragraph"
    ),
    "not_json": (
        'are not JSON objects with a string "{0.text_field}". If the text is in '
        "another field, name it with `text_field=`"
    ),
}


@dataclasses.dataclass
class Block:
    """Consecutive documents of a corpus.

    Attributes:
        index: int, counted from 0.
        documents: list of lists of strings: the lines, stripped and not empty.
        position: int, bytes of the files on disk that were read so far; in the last
            block `Corpus.total_bytes`.
        bytes: int, the UTF-8 bytes of the lines.
    """

    index: int
    documents: list[list[str]] = dataclasses.field(default_factory=list)
    position: int = 0
    bytes: int = 0


class Corpus:
    """Text files read as blocks of documents.

    A line is a sentence or a paragraph. An empty line or the end of a file ends a
    document. Lines end with "\\n" or "\\r\\n"; any other control character is part of a
    line. White space around a line is dropped.

    `.gz`, `.zst` and `.zstd` files are decompressed. Each line of a `.jsonl`, `.json`
    or `.ndjson` file, compressed or not, is a JSON object: one document, whose lines
    are those of the string in its `text_field`.

    Lines that are not UTF-8, longer than `max_line_bytes` or not JSON objects with a
    text are skipped; the document continues after them. The lines of a damaged file
    are kept up to the damage.

    Args:
        files: list of strings: paths or patterns such as `texts/**/*.txt`, in which
            `**` matches any folders. Files are read once, sorted by name.
        document_per_line: bool, whether each line of a text file is a document. A
            JSON object always is one.
        block_bytes: int, minimum bytes of text per block. A block ends with the
            document that reaches them. A longer document is divided at a line end
            and continues in the next block.
        text_field: string, the field of the JSON objects.
        max_line_bytes: int, the longest line, in bytes before its "\\n".
        is_excluded: optional function of a resolved `pathlib.Path`. Files for which it
            returns true are left out although a pattern matches them.

    Attributes:
        files: list of `pathlib.Path`, in reading order.
        total_bytes: int, their size on disk.
        counts: dict, counts of what was read so far: "documents", "lines", "bytes"
            (UTF-8, of the lines), and the skipped lines "not_utf8", "not_json" and
            "too_long".
        warnings: list of strings, messages about skipped lines and damaged files.

    Raises:
        FileNotFoundError: if a file does not exist or a pattern matches none.
        OSError: if a file cannot be read or is a folder.
        AlbertError: if no file is given, one is an archive or has an unsupported
            compression, `zstandard` is missing, or a size is not positive.

    Example:
    ```python
    corpus = albert_tf.pretraining.Corpus("README*.md", block_bytes=1000)
    sizes = [len(block.documents) for block in corpus.blocks()]
    print(corpus.counts["documents"] == sum(sizes), corpus.warnings)
    ```
    """

    def __init__(
        self,
        files: str | os.PathLike | Iterable[str | os.PathLike],
        document_per_line: bool = False,
        block_bytes: int = 4_000_000,
        text_field: str = "text",
        max_line_bytes: int = 10_000_000,
        is_excluded: Callable[[pathlib.Path], bool] = lambda path: False,
    ):
        sizes = {"block_bytes": block_bytes, "max_line_bytes": max_line_bytes}
        for name, size in sizes.items():
            if size < 1:
                raise AlbertError(f"`{name}` must be at least 1. Received: {size}")
        self.files = find_files(files, is_excluded)
        self.document_per_line = document_per_line
        self.block_bytes = block_bytes
        self.text_field = text_field
        self.max_line_bytes = max_line_bytes
        self._sizes = [path.stat().st_size for path in self.files]
        self.total_bytes = sum(self._sizes)
        self._reset()

    def _reset(self) -> None:
        self.counts = dict.fromkeys(("documents", "lines", "bytes", *_ADVICE), 0)
        self._damaged: list[str] = []
        # The files with skipped lines, by kind.
        self._skipped_in: dict[str, list[pathlib.Path]] = collections.defaultdict(list)
        self._position = 0

    def blocks(self) -> Iterator[Block]:
        """Read the files from the start, resetting `counts` and `warnings`.

        The blocks and their order depend on the files and the arguments only.

        Yields:
            `Block`s of at least one document.
        """
        self._reset()
        block, size = Block(0), 0
        document: list[str] = []
        for lines in self._read():
            for line in lines:
                if not line:
                    document = []
                    continue
                # Close a block before the next line rather than after the last:
                # no block consists of skipped lines only.
                if (size if document else block.bytes) >= self.block_bytes:
                    yield self._complete(block, self._position)
                    block, document = Block(block.index + 1), []
                if not document:
                    block.documents.append(document)
                    size = 0
                document.append(line)
                length = len(line.encode())
                size += length
                block.bytes += length
        if block.documents:
            yield self._complete(block, self.total_bytes)

    @property
    def warnings(self) -> list[str]:
        skipped = [
            f"{self.counts[kind]:,} lines were skipped, in {printable(files[0])}"
            + (f" and {len(files) - 1:,} more files" if len(files) > 1 else "")
            + f": they {_ADVICE[kind].format(self)}."
            for kind, files in self._skipped_in.items()
        ]
        return [*skipped, *self._damaged]

    def _complete(self, block: Block, position: int) -> Block:
        block.position = position
        self.counts["documents"] += len(block.documents)
        self.counts["lines"] += sum(map(len, block.documents))
        self.counts["bytes"] += block.bytes
        return block

    def _read(self) -> Iterator[list[str]]:
        """Yield lists of lines in which an empty one ends a document."""
        start = 0
        for path, size in zip(self.files, self._sizes, strict=True):
            skipped: collections.Counter = collections.Counter()
            try:
                with path.open("rb") as file:
                    for lines in read_lines(path, file, self.max_line_bytes, skipped):
                        # The file may have grown since.
                        self._position = start + min(file.tell(), size)
                        yield self._documents(path, lines, skipped)
            except (OSError, EOFError, zlib.error) as error:
                self._damaged.append(
                    f"{printable(path)} is damaged or truncated ({error}). The "
                    "complete lines before the damage were read."
                )
            for kind, count in (+skipped).items():
                self.counts[kind] += count
                self._skipped_in[kind].append(path)
            start += size
            yield [""]

    def _documents(
        self, path: pathlib.Path, lines: list[str], skipped: collections.Counter
    ) -> list[str]:
        """Return the lines of a file with an empty one after each document."""
        if endings(path)[0] in JSON_ENDINGS:
            texts = [_text(line, self.text_field) for line in lines if line]
            skipped["not_json"] += texts.count(None)
            return [x for text in texts if text is not None for x in _lines_of(text)]
        if self.document_per_line:
            return [part for line in lines for part in (line, "")]
        return lines


def _text(line: str, field: str) -> str | None:
    """Return the text of a JSON object; `None` without one."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    text = record.get(field) if isinstance(record, dict) else None
    return text if isinstance(text, str) else None


def _lines_of(text: str) -> list[str]:
    # JSON can contain halves of surrogate pairs, which UTF-8 cannot.
    lines = text.encode("utf-8", "ignore").decode().split("\n")
    return [*filter(None, map(str.strip, lines)), ""]
