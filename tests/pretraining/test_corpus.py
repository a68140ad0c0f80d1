"""Corpora: documents, blocks, and reading beyond damage."""

import gzip
import io
import json
import pathlib
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from albert_tf.pretraining.records.corpus import Corpus
from albert_tf.pretraining.records.corpus_lines import (
    PIECE,
    joined_lines,
    read_pieces,
    short_lines,
)

COMPRESSIONS = ["", ".gz", ".zst"]
DOCUMENTS = [["第一句。", "第二句。"], ["Another document."], ["甲", "乙", "丙"]]
# The start of a TFRecord file: a length, its checksum, and a `tf.train.Example`.
RECORD = (
    (40).to_bytes(8, "little") + b"\x1f\xc3\x80\x7a" + b"\n\x26\n\x24\n\x09input_ids"
)
TEXT = "\n\n".join("\n".join(lines) for lines in DOCUMENTS) + "\n"


def compress(data, ending, parts=1):
    """Compress bytes, as several concatenated files if `parts` is above 1."""
    size = -(-len(data) // parts) or 1
    pieces = [data[i : i + size] for i in range(0, len(data), size)] or [data]
    if ending == ".gz":
        pieces = [gzip.compress(piece, 1) for piece in pieces]
    elif ending == ".zst":
        zstandard = pytest.importorskip("zstandard")
        compressor = zstandard.ZstdCompressor(write_checksum=True)
        pieces = map(compressor.compress, pieces)
    return b"".join(pieces)


@pytest.fixture
def write(tmp_path):
    """A function that writes a file, compressed by the ending of its name."""

    def write_file(name, content):
        data = content if isinstance(content, bytes) else content.encode()
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(compress(data, path.suffix))
        return str(path)

    return write_file


def read(files, **kwargs):
    """Read a whole corpus; return it and its documents."""
    corpus = Corpus(files, **kwargs)
    documents = [lines for _, block in corpus.blocks() for lines in block]
    return corpus, documents


# === Documents and blocks ===


def naive_documents(data):
    """Documents and the count of skipped lines, from all bytes at once."""
    skipped = 0
    lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    documents, document = [], []
    for line in lines if lines[-1] else lines[:-1]:
        try:
            text = line.decode("utf-8-sig").strip()
        except UnicodeDecodeError:
            text = "\0"
        if "\0" in text:
            skipped += 1
            continue
        if text:
            document.append(text)
        if not text:
            documents.append(document)
            document = []
    return [lines for lines in [*documents, document] if lines], skipped


def size(document):
    return sum(len(line.encode()) for line in document)


PIECES = [b"\n", b"\n", b"\n\n", b"\r\n", b"\r", b" ", b"a", b"bc d", b"\0"]
PIECES += [b"\xef\xbb\xbf", b"\xff\xfe", b"\xff", b"\xe7\x94", "中".encode("gbk")]
PIECES += ["中文。".encode(), "😀\u2028".encode(), "\u3000".encode(), b"long line " * 3]


@given(
    files=st.lists(
        st.tuples(
            st.lists(st.sampled_from(PIECES), max_size=40).map(b"".join),
            st.sampled_from(COMPRESSIONS),
        ),
        min_size=1,
        max_size=3,
    ),
    block_bytes=st.integers(1, 60),
)
@settings(deadline=None, max_examples=50)
def test_documents_equal_those_of_a_simple_reader(tmp_path_factory, files, block_bytes):
    folder = tmp_path_factory.mktemp("corpus")
    expected, skipped = [], 0
    for number, (data, ending) in enumerate(files):
        (folder / f"{number}.txt{ending}").write_bytes(compress(data, ending, 3))
        more, skips = naive_documents(data)
        expected += more
        skipped += skips
    sizes = (10**9, block_bytes)
    corpora = [Corpus([folder / "*"], size, encoding="utf-8") for size in sizes]
    whole, blocks = ([x for _, x in corpus.blocks()] for corpus in corpora)
    assert sum(whole, []) == expected
    # Smaller blocks divide long documents at line ends.
    assert sum(sum(blocks, []), []) == sum(expected, [])
    for block in blocks:
        assert block and all(block)
        *before, last = block
        assert sum(map(size, before)) < block_bytes and size(last[:-1]) < block_bytes
        assert sum(map(size, block)) >= block_bytes or block is blocks[-1]
    for corpus in corpora:
        assert corpus.counts["not_utf8"] == skipped
        assert not any("damaged" in warning for warning in corpus.warnings)


@pytest.mark.parametrize("ending", COMPRESSIONS)
def test_characters_lie_across_the_chunks_of_a_large_file(write, ending):
    line = "中文。😀\u2028 long line"
    lines = [line[: i % 16] + "é" * (i % 7) for i in range(60_000)]
    data = "\r\n".join(lines).encode()
    assert len(data) > 1_300_000
    assert read([write(f"a.txt{ending}", data)])[1] == naive_documents(data)[0]


@pytest.mark.parametrize("name", ["a.jsonl", "A.NDJSON.zst"])
def test_json_lines(write, name):
    texts = ["\n".join(lines) for lines in DOCUMENTS]
    texts[2] = texts[2].replace("\n", "\n \r\n")
    # A single half of a surrogate pair is left out.
    records = [{"id": 1, "body": text} for text in [*texts, "\n ", "\ud83d"]]
    bad = ["甲", "null", '["body"]', '{"body": 1}', '{"text": "甲"}', "[" * 100_000]
    lines = ["\ufeff" + json.dumps(records[0]), *map(json.dumps, records[1:]), *bad]
    path = write(name, "\n\r\n".join(lines))
    corpus, documents = read([path], text_field="body")
    assert documents == DOCUMENTS
    (warning,) = corpus.warnings
    assert f"6 lines were skipped, in {path}: they are not JSON objects" in warning
    assert 'a string "body"' in warning and "text_field" in warning


def test_each_line_of_text_can_be_a_document(write):
    lines = ["第一句。第二句。", "另一篇。", "又一篇。"]
    text = write("a.txt", "\n".join(lines) + "\n\n")
    for files, expected in (
        ([text], "a.txt has no empty line between documents: it is one document of 3"),
        ([text, write("b.txt", TEXT)], "1 of 2 files have no empty line between"),
    ):
        corpus, _ = read(files)
        (warning,) = corpus.warnings
        assert expected in warning and "--document-per-line" in warning
    corpus, documents = read([text], document_per_line=True)
    assert documents == [[line] for line in lines] and not corpus.warnings
    # JSON and tags determine the documents themselves.
    objects = write("a.jsonl", json.dumps({"text": "\n".join(lines)}))
    tagged = write("wiki_00", "<doc id=1>\n" + "\n\n".join(lines) + "\n</doc>\n")
    for option in (False, True):
        corpus, documents = read([objects, tagged], document_per_line=option)
        assert documents == [lines, lines] and not corpus.warnings


@given(st.text("一二三。！”，. \n", max_size=60), st.integers(1, 12))
@settings(deadline=None, max_examples=100)
def test_pieces_of_long_lines_are_their_text(text, size):
    pieces = list(read_pieces(io.StringIO(text), size))
    assert "".join(piece.text for piece in pieces) == text
    lines = [line.strip() for line in text.removesuffix("\n").split("\n")]
    assert list(joined_lines(pieces)) == (lines if text else [])
    assert max((len(piece.text) for piece in pieces), default=0) <= 3 * size
    short = list(short_lines(text, size))
    assert "".join("".join(short).split()) == "".join(text.split())
    assert max(map(len, short), default=0) <= size


def test_a_long_line_is_divided_after_a_sentence():
    line = "他说：“好。”她走了。我们都在，。end of it. And"
    expected = ["他说：“好。”", "她走了。我们都在，。", "end of it.", "And"]
    pieces = [piece.stripped for piece in read_pieces(io.StringIO(f"{line}\n乙\n"), 10)]
    assert pieces == [*expected, "乙"]


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl"])
@pytest.mark.parametrize("document_per_line", [False, True])
def test_a_line_of_any_length_is_one_document(write, name, document_per_line):
    line = "".join(f"第{i}句。" for i in range(40_000))
    content = f"{line}\n\n乙\n"
    if name == "a.jsonl":
        content = "\n".join(json.dumps({"text": text}) for text in (line, "乙"))
    options = {"document_per_line": document_per_line}
    first, second = read([write(name, content)], **options)[1]
    assert "".join(first) == line and second == ["乙"]
    assert len(first) > 2 and max(map(len, first)) <= PIECE
    assert all(piece.endswith("。") for piece in first)


# === Skipped lines and damaged files ===


def test_files_of_other_encodings_are_read_and_undecodable_lines_are_counted(write):
    text = "很好，真的很好。\r\r\r" * 50
    files = [write("a.txt", text)]
    for i, encoding in enumerate(("gb18030", "utf-16", "cp950")):
        files.append(write(f"{i}.txt", text.encode(encoding)))
    with pytest.warns(UserWarning, match="is utf-16, not UTF-8"):
        corpus, documents = read(files)
    assert len(documents) == 4 * 50 and not corpus.warnings
    assert {len(x) for x in documents} == {1} and documents[0] == ["很好，真的很好。"]
    # A skipped line does not divide its document.
    half = write("d.txt", "好\n".encode() * 50 + "很好\n".encode("gbk") + b"a\n")
    corpus, documents = read([half])
    assert documents == [["好"] * 50 + ["a"]] and corpus.counts["not_utf8"] == 1
    warning, _ = corpus.warnings
    assert f"1 lines were skipped, in {half}: they are not in its encoding" in warning
    assert read([half], encoding="gb18030")[0].counts["not_utf8"] == 50


def test_the_content_decides_and_not_only_the_suffix(write):
    """Files of WikiExtractor have no suffix, and JSON or tags around a document."""
    documents = [["黄河", "黄河发源于青海。", "它流经九省。"], ["围棋", "黑子先行。"]]
    texts = ["\n\n".join(lines) for lines in documents]
    objects = "\n".join(json.dumps({"id": 1, "text": x}) for x in texts)
    tag = '<doc id="1" url="" title="x">'
    tagged = "".join(f"{tag}\n{text}\n\n</doc>\n" for text in texts)
    for name, content in (("AA/wiki_00", objects), ("AB/wiki_01", tagged)):
        assert read([write(name, content)])[1] == documents
    for content, message in (
        (b"\x89PNG\r\n\x1a\n", "wiki_02 is not text but looks like an image"),
        (b" <!DOCTYPE html>\n<p>", "wiki_02 looks like a page in HTML"),
        (RECORD, "wiki_02 looks like a TFRecord file, .* Pass the text itself"),
    ):
        with pytest.raises(ValueError, match=message):
            read([write("AA/wiki_02", content)])


def test_files_that_cannot_be_read_are_refused_at_the_start(write):
    folder = pathlib.Path(write("dump.TAR.gz", "a")).parent
    with pytest.raises(ValueError, match="dump.TAR.gz is an archive .* Unpack it"):
        Corpus([folder / "*"])
    with pytest.raises(ValueError, match="No text to read"):
        Corpus([])
    with pytest.raises(FileNotFoundError, match="No text file matches .*/none"):
        Corpus(str(folder / "none*.txt"))


@pytest.mark.parametrize("ending", [".gz", ".zst"])
@pytest.mark.parametrize("damage", ["truncated", "wrong checksum"])
def test_a_damaged_file_is_read_up_to_the_damage(write, tmp_path, ending, damage):
    # Digits of hashes compress to about a half.
    lines = [f"{number} {zlib.crc32(b'%d' % number)}" for number in range(50_000)]
    path = tmp_path / f"a.txt{ending}"
    data = bytearray(compress("\n".join(lines).encode(), ending))
    if damage == "truncated":
        del data[len(data) // 2 :]
    else:
        data[-1] ^= 0xFF
    path.write_bytes(data)
    corpus, documents = read([str(path), write("b.txt", TEXT)])
    assert documents[-3:] == DOCUMENTS
    (message,) = corpus.warnings
    assert f"{path} is damaged or truncated (" in message
    kept = sum(documents[:-3], [])
    # zstd compresses 128 kB at a time, gzip far less.
    share = 0.3 if damage == "truncated" else 0.8
    assert kept == lines[: len(kept)] and len(kept) > share * len(lines)
