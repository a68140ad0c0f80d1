"""Reading text to pretrain on as blocks of documents.

A corpus is larger than memory, and somewhere in it a line is no text at all. So
files are read as streams, what cannot be read is skipped and counted, and what is
held at once is bounded by `block_bytes` and `max_line_bytes`, never by a file.
"""

import collections
import dataclasses
import json
import zlib

from albert_tf.pretraining.corpus_files import endings, find_files, printable
from albert_tf.pretraining.text_lines import read_lines
from albert_tf_lite.errors import AlbertError

JSON_ENDINGS = (".jsonl", ".json", ".ndjson")
# By kind of skipped lines, what to tell the user.
_ADVICE = {
    "not_utf8": "are not UTF-8. Convert them: iconv -f GB18030 -t UTF-8 (or -f UTF-16)",
    "too_long": (
        "are longer than {0.max_line_bytes:,} bytes. End a line after each sentence or "
        "paragraph"
    ),
    "not_json": (
        'are no JSON objects with a string "{0.text_field}". If the text is in another '
        "field, name it with `text_field=`"
    ),
}


@dataclasses.dataclass
class Block:
    """Some documents of a corpus, in their order.

    Attributes:
        index: int, counted from 0.
        documents: list of lists of strings: lines without white space around them,
            none of them empty.
        position: int, bytes of the files, as they are on disk, read so far; in the
            last block `Corpus.total_bytes`.
        bytes: int, the UTF-8 bytes of the lines.
    """

    index: int
    documents: list = dataclasses.field(default_factory=list)
    position: int = 0
    bytes: int = 0


class Corpus:
    """Text files read as blocks of documents.

    A line is a sentence or a paragraph, an empty line ends a document, and so does
    the end of a file. Lines end with "\\n" or "\\r\\n"; any other control character is
    part of a line. White space around a line is dropped.

    `.gz`, `.zst` and `.zstd` files are decompressed. A `.jsonl`, `.json` or
    `.ndjson` file, compressed or not, has a JSON object a line: each is a document,
    whose lines are those of the string in its `text_field`.

    Skipped are lines that are not UTF-8, longer than `max_line_bytes`, or no JSON
    object with a text; the document continues after them. Of a file that turns out to
    be damaged the whole lines before the damage are kept.

    Args:
        files: list of strings: paths, or patterns such as `texts/**/*.txt`, in which
            `**` stands for any folders. They are read in the order of their names,
            each once.
        document_per_line: bool, whether each line of a text file is a document. A
            JSON object always is one.
        block_bytes: int, bytes of text. A block ends with the document with which
            it has as many. A document with more of them is cut at a line, and the
            rest is a document of the next block.
        text_field: string, the field of the JSON objects.
        max_line_bytes: int, the longest line, in bytes before its "\\n".
        without: optional function of a `pathlib.Path`, absolute and without links,
            that says which files are left out although a pattern matches them.

    Attributes:
        files: list of `pathlib.Path`, in the order in which they are read.
        total_bytes: int, their sizes on disk together.
        counts: dict, what was read so far: "documents", "lines", "bytes" (UTF-8, of
            the lines), and the skipped lines "not_utf8", "not_json" and "too_long".
        warnings: list of strings, what to tell the user of skipped lines and damaged
            files.

    Raises:
        FileNotFoundError: if there is no such file, or none that a pattern matches.
        OSError: if a file may not be read, or is a folder.
        AlbertError: if no file is given, one is an archive or of a compression that
            is not read, `zstandard` is missing, or a size is not positive.
    """

    def __init__(
        self,
        files,
        document_per_line=False,
        block_bytes=4_000_000,
        text_field="text",
        max_line_bytes=10_000_000,
        without=lambda path: False,
    ):
        sizes = {"block_bytes": block_bytes, "max_line_bytes": max_line_bytes}
        for name, size in sizes.items():
            if size < 1:
                raise AlbertError(f"`{name}` must be at least 1. Received: {size}")
        self.files = find_files(files, without)
        self.document_per_line = document_per_line
        self.block_bytes = block_bytes
        self.text_field = text_field
        self.max_line_bytes = max_line_bytes
        self._sizes = [path.stat().st_size for path in self.files]
        self.total_bytes = sum(self._sizes)
        self._start_over()

    def _start_over(self):
        self.counts = dict.fromkeys(("documents", "lines", "bytes", *_ADVICE), 0)
        self._damaged = []
        # By kind of skipped lines, the files that have them.
        self._skipped_in = collections.defaultdict(list)
        self._position = 0

    def blocks(self):
        """Read the files from the start, setting back `counts` and `warnings`.

        The blocks and their order depend on the files and the arguments only.

        Yields:
            `Block`s, none without a document.
        """
        self._start_over()
        block, document, size = Block(0), [], 0
        for lines in self._read():
            for line in lines:
                if not line:
                    document = []
                    continue
                # Asked before a line, not after: so there is no block of nothing
                # but what is skipped at the end.
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
    def warnings(self):
        skipped = [
            f"{self.counts[kind]:,} lines were skipped, in {printable(files[0])}"
            + (f" and {len(files) - 1:,} more files" if len(files) > 1 else "")
            + f": they {_ADVICE[kind].format(self)}."
            for kind, files in self._skipped_in.items()
        ]
        return [*skipped, *self._damaged]

    def _complete(self, block, position):
        block.position = position
        self.counts["documents"] += len(block.documents)
        self.counts["lines"] += sum(map(len, block.documents))
        self.counts["bytes"] += block.bytes
        return block

    def _read(self):
        """Yield lists of lines, of which empty ones end documents."""
        start = 0
        for path, size in zip(self.files, self._sizes, strict=True):
            skipped = collections.Counter()
            try:
                with path.open("rb") as file:
                    for lines in read_lines(path, file, self.max_line_bytes, skipped):
                        # The file may have grown since.
                        self._position = start + min(file.tell(), size)
                        yield self._documents(path, lines, skipped)
            except (OSError, EOFError, zlib.error) as error:
                self._damaged.append(
                    f"{printable(path)} is damaged or cut short ({error}). Its whole "
                    "lines before that were read."
                )
            for kind, count in (+skipped).items():
                self.counts[kind] += count
                self._skipped_in[kind].append(path)
            start += size
            yield [""]

    def _documents(self, path, lines, skipped):
        """Lines of a file with an empty one after each document."""
        if endings(path)[0] in JSON_ENDINGS:
            texts = [_text(line, self.text_field) for line in lines if line]
            skipped["not_json"] += texts.count(None)
            return [x for text in texts if text is not None for x in _lines_of(text)]
        if self.document_per_line:
            return [part for line in lines for part in (line, "")]
        return lines


def _text(line, field):
    """The text of a JSON object; `None` if it has none."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    text = record.get(field) if isinstance(record, dict) else None
    return text if isinstance(text, str) else None


def _lines_of(text):
    # Without the halves of surrogate pairs, which JSON can write and UTF-8 cannot.
    lines = text.encode("utf-8", "ignore").decode().split("\n")
    return [*filter(None, map(str.strip, lines)), ""]
