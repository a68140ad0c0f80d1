"""Corpora: documents, blocks, and how reading continues after damage."""

import gzip
import json
import os
import sys
import tracemalloc
import zlib
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from albert_tf.pretraining import corpus as corpus_module
from albert_tf.pretraining.corpus import Corpus

COMPRESSIONS = ["", ".gz", ".zst"]
DOCUMENTS = [["第一句。", "第二句。"], ["Another document."], ["甲", "乙", "丙"]]
TEXT = "\n\n".join("\n".join(lines) for lines in DOCUMENTS) + "\n"


def compress(data, ending):
    if ending == ".gz":
        return gzip.compress(data, 1)
    if ending in (".zst", ".zstd"):
        zstandard = pytest.importorskip("zstandard")
        return zstandard.ZstdCompressor(write_checksum=True).compress(data)
    return data


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
    documents = [line for block in corpus.blocks() for line in block.documents]
    return corpus, documents


def documents_of(files, **kwargs):
    return read(files, **kwargs)[1]


def skips(corpus):
    kinds = ("not_utf8", "too_long", "not_json")
    return {kind: corpus.counts[kind] for kind in kinds if corpus.counts[kind]}


# === Documents ===


def test_an_empty_line_ends_a_document(write):
    for content, ending in (
        *((TEXT, ending) for ending in (*COMPRESSIONS, ".zstd")),
        (TEXT.rstrip("\n"), ""),
        (TEXT.replace("\n", "\r\n"), ".gz"),
        ("\ufeff" + TEXT, ".zst"),
        ("\n \n\u3000\n" + TEXT.replace("\n\n", "\n\n \t\n\n") + "\n\n", ""),
        (TEXT.replace("\n", "\u3000 \n \t"), ""),
    ):
        corpus, documents = read(write(f"a.txt{ending}", content))
        assert documents == DOCUMENTS
        lines = sum(DOCUMENTS, [])
        assert corpus.counts == {
            **{"documents": 3, "lines": 6, "bytes": len("".join(lines).encode())},
            **{"not_utf8": 0, "too_long": 0, "not_json": 0},
        }
        assert corpus.warnings == []


@pytest.mark.parametrize(
    ("name", "kwargs"),
    [
        ("a.jsonl", {}),
        ("A.NDJSON.zst", {"text_field": "content", "document_per_line": True}),
    ],
)
def test_json_lines(write, name, kwargs):
    field = kwargs.get("text_field", "text")
    texts = ["\n".join(lines) for lines in DOCUMENTS]
    texts[2] = texts[2].replace("\n", "\n \r\n")
    content = "\ufeff" + "\n\r\n".join(
        json.dumps({"id": 1, field: text}, ensure_ascii=position in (1, 4))
        # A single half of a surrogate pair is left out.
        for position, text in enumerate([*texts, "\n ", "\ud83d"])
    )
    corpus, documents = read([write(name, content)], **kwargs)
    assert documents == DOCUMENTS
    assert skips(corpus) == {}


def test_only_newlines_end_a_line_and_the_rest_stays(write):
    lines = [f"前{character}后" for character in "\0\r\x0b\x1c\x85\u2028\ufeff"]
    assert documents_of([write("a.txt", "\n".join(lines))]) == [lines]


@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_compressed_files_joined_are_one(write, tmp_path, ending):
    """`cat` and parallel compressors write such files."""
    data = TEXT.encode()
    path = tmp_path / f"a.txt{ending}"
    parts = [compress(data[i : i + 7], ending) for i in range(0, len(data), 7)]
    path.write_bytes(b"".join(parts))
    assert documents_of([str(path)]) == DOCUMENTS


# === Blocks ===


@pytest.mark.parametrize("ending", ["", ".zst"])
def test_the_position_rises_to_the_total(write, monkeypatch, ending):
    monkeypatch.setattr(corpus_module, "_CHUNK", 1000)
    text = "\n\n".join(numbered_lines())
    files = [write(f"{name}.txt{ending}", text + "\n" * 5000) for name in "ab"]
    corpus = Corpus(files, block_bytes=2000)
    positions = [block.position for block in corpus.blocks()]
    assert positions == sorted(positions) and len(set(positions)) > 10
    assert positions[-1] == sum(os.path.getsize(file) for file in files)


def naive_documents(data, document_per_line, max_line_bytes):
    """Documents and counts of skipped lines, from all bytes at once."""
    skipped = {"not_utf8": 0, "too_long": 0}
    is_utf16 = data.startswith((b"\xff\xfe", b"\xfe\xff"))
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    documents, document = [], []
    for line in lines if lines[-1] else lines[:-1]:
        if is_utf16:
            skipped["not_utf8"] += 1
            continue
        if len(line) > max_line_bytes:
            skipped["too_long"] += 1
            continue
        try:
            text = line.decode().strip()
        except UnicodeDecodeError:
            skipped["not_utf8"] += 1
            continue
        if text:
            document.append(text)
        if not text or document_per_line:
            documents.append(document)
            document = []
    return [lines for lines in [*documents, document] if lines], skipped


def size(lines):
    return sum(len(line.encode()) for line in lines)


def check_blocks(blocks, block_bytes):
    """Check where blocks end. Return the lines at which documents are cut."""
    cuts, lines = set(), 0
    for number, block in enumerate(blocks):
        assert block.index == number
        assert block.documents and all(block.documents)
        *whole, last = block.documents
        assert sum(map(size, whole)) < block_bytes
        assert size(last[:-1]) < block_bytes
        assert sum(map(size, block.documents)) >= block_bytes or block is blocks[-1]
        lines += sum(map(len, block.documents))
        if size(last) >= block_bytes:
            cuts.add(lines)
    return cuts


def ends(documents):
    """Numbers of lines after which a document ends."""
    return {sum(map(len, documents[:end])) for end in range(1, len(documents) + 1)}


pieces = st.sampled_from(
    [
        *(b"\n", b"\n", b"\n\n", b"\r\n", b"\r", b" ", b"a", b"bc d", b"\0"),
        *(b"\xef\xbb\xbf", b"\xff\xfe", b"\xff", b"\xe7\x94", "中".encode("gbk")),
        *("中文。".encode(), "😀".encode(), "\u3000".encode(), b"long line " * 3),
    ]
)


@given(
    files=st.lists(
        st.tuples(
            st.lists(pieces, max_size=40).map(b"".join),
            st.sampled_from(["", ".gz", ".zst"]),
        ),
        min_size=1,
        max_size=3,
    ),
    document_per_line=st.booleans(),
    block_bytes=st.integers(1, 12) | st.integers(1, 60),
    max_line_bytes=st.integers(1, 40) | st.just(10_000_000),
    chunk=st.integers(1, 20) | st.just(2**18),
)
@settings(deadline=None, max_examples=50)
def test_the_documents_are_those_of_a_simple_reader(
    tmp_path_factory, files, document_per_line, block_bytes, max_line_bytes, chunk
):
    folder = tmp_path_factory.mktemp("corpus")
    expected, skipped = [], {"not_utf8": 0, "too_long": 0}
    for number, (data, ending) in enumerate(files):
        (folder / f"{number}.txt{ending}").write_bytes(compress(data, ending))
        more, skips = naive_documents(data, document_per_line, max_line_bytes)
        expected += more
        skipped = {kind: skipped[kind] + skips[kind] for kind in skips}
    corpus = Corpus([str(folder / "*")], document_per_line, block_bytes)
    with mock.patch.multiple(
        corpus_module, _CHUNK=chunk, MAX_LINE_BYTES=max_line_bytes
    ):
        blocks = list(corpus.blocks())
    documents = [document for block in blocks for document in block.documents]
    assert sum(documents, []) == sum(expected, [])
    cuts = check_blocks(blocks, block_bytes)
    assert ends(expected) <= ends(documents) <= ends(expected) | cuts
    assert {kind: corpus.counts[kind] for kind in skipped} == skipped
    assert not any("damaged" in warning for warning in corpus.warnings)
    assert [block.position for block in blocks[-1:]] in ([], [corpus.total_bytes])


# === Lines that are skipped ===


def test_files_of_another_encoding_are_named(write):
    text = "很好，真的很好。\n\n\n" * 50
    good = write("a.txt", text)
    gbk = write("b.txt", text.encode("gb18030"))
    utf16 = write("c.txt", text.encode("utf-16"))
    # A line that is skipped leaves its document whole.
    half = write("d.txt", "好\n".encode() * 50 + "很好\n".encode("gbk") + b"a\n")
    corpus, documents = read([good, gbk, utf16, half])
    assert len(documents) == 51 and documents[-1] == ["好"] * 50 + ["a"]
    assert corpus.counts["not_utf8"] > 100
    (warning,) = corpus.warnings
    assert f"lines were skipped, in {gbk} and 2 more files: they are not UTF" in warning
    assert "iconv -f GB18030 -t UTF-8 (or -f UTF-16)" in warning


def test_a_line_that_is_no_json_object_with_a_text(write):
    bad = ["甲", "null", '["text"]', '{"text": 1}', '{"content": "甲"}', "[" * 100_000]
    path = write("a.jsonl", "\n".join(['{"text": "一"}', *bad, '{"text": "二"}']))
    corpus, documents = read([path])
    assert documents == [["一"], ["二"]]
    assert skips(corpus) == {"not_json": 6}
    (warning,) = corpus.warnings
    assert f"6 lines were skipped, in {path}: they are not JSON objects" in warning
    assert 'a string "text"' in warning and "text_field" in warning


# === Files that are damaged ===


def numbered_lines(count=50_000):
    """Digits of hashes, which compress to about a half."""
    return [f"{number} {zlib.crc32(b'%d' % number)}" for number in range(count)]


@pytest.mark.parametrize("ending", [".gz", ".zst"])
@pytest.mark.parametrize("damage", ["cut short", "wrong bytes", "wrong checksum"])
def test_a_damaged_file_is_read_up_to_the_damage(write, tmp_path, ending, damage):
    lines = numbered_lines()
    path = tmp_path / f"a.txt{ending}"
    data = bytearray(compress("\n".join(lines).encode(), ending))
    if damage == "cut short":
        del data[len(data) // 2 :]
    else:
        data[len(data) // 2 if damage == "wrong bytes" else -1] ^= 0xFF
    path.write_bytes(data)
    corpus, documents = read([str(path), write("b.txt", TEXT)])
    assert documents[-3:] == DOCUMENTS
    (message,) = corpus.warnings
    assert str(path) in message
    if damage != "wrong bytes":
        assert "is damaged or truncated (" in message and skips(corpus) == {}
        kept = sum(documents[:-3], [])
        # zstd compresses 128 kB at a time, gzip far less.
        share = 0.3 if damage == "cut short" else 0.8
        assert kept == lines[: len(kept)] and len(kept) > share * len(lines)


def test_a_file_that_vanished_is_named(write):
    files = [write(f"{name}.txt", name) for name in "abc"]
    corpus = Corpus(files)
    os.remove(files[1])
    (block,) = corpus.blocks()
    assert block.documents == [["a"], ["c"]]
    assert files[1] in corpus.warnings[0]


# === Which files, in which order ===


@pytest.fixture
def tree(write):
    names = [
        "B.txt",
        "a.txt",
        "a/1.md",
        "a/1.txt",
        "a/x/y/1.txt",
        "b/10.txt",
        "b/2.txt",
    ]
    return {name: write(name, name) for name in names}


def test_files_are_sorted_by_name_and_read_once(tree, tmp_path):
    (tmp_path / "b" / "latest.txt").symlink_to(tree["b/2.txt"])
    names = ["B.txt", "a.txt", "a/1.txt", "b/10.txt", "b/2.txt"]
    files = [tree[name] for name in ("b/2.txt", "a/1.txt", "b/2.txt")]
    files += [str(tmp_path / pattern) for pattern in ("*.txt", "b/*", "b/../a/1.txt")]
    for order in (files, files[::-1]):
        corpus, documents = read(order)
        assert list(map(os.path.realpath, corpus.files)) == [tree[x] for x in names]
        assert [lines for (lines,) in documents] == names
    everything = Corpus([str(tmp_path / "**" / "*.txt")])
    names = sorted(name for name in tree if name.endswith(".txt"))
    assert [str(path) for path in everything.files] == [tree[name] for name in names]
    # A name may have brackets.
    (tmp_path / "a[1].txt").write_text(TEXT)
    assert documents_of([str(tmp_path / "a[1].txt")]) == DOCUMENTS


# === What is refused, before anything is read ===


REFUSED = [
    ("nowhere.txt", FileNotFoundError, r"No such file.*nowhere\.txt"),
    ("*.xyz", FileNotFoundError, r"No text file matches the pattern .*/\*\.xyz"),
    ("b", IsADirectoryError, r"a folder.*b/\*\*/\*.txt"),
]


def test_what_cannot_be_read_is_refused(tree, tmp_path):
    for name, error, message in REFUSED:
        with pytest.raises(error, match=message):
            Corpus([tree["a.txt"], str(tmp_path / name)])
    with pytest.raises(ValueError, match="`files` is empty"):
        Corpus([])


def test_zstandard_is_missing(tmp_path, monkeypatch):
    (tmp_path / "a.txt.zst").touch()
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(ValueError, match=r"a\.txt.zst.*'albert-tf\[fast\]'"):
        Corpus([str(tmp_path / "a.txt.zst")])


# === Memory ===


def peak(path, **kwargs):
    """Maximum memory in bytes while a file is read, and the corpus."""
    tracemalloc.start()
    try:
        corpus = Corpus([str(path)], **kwargs)
        for _ in corpus.blocks():
            pass
        return tracemalloc.get_traced_memory()[1], corpus
    finally:
        tracemalloc.stop()


@pytest.mark.nightly
def test_memory_does_not_grow_with_files_lines_or_documents(write, monkeypatch):
    document = ("预训练" * 300 + "\n") * 4 + "\n"
    path = write("a.txt", document * (25_000_000 // len(document.encode())))
    most, corpus = peak(path, block_bytes=1_000_000)
    assert most < 10e6 and corpus.counts["bytes"] > 24e6
    path = write("a.txt.gz", "预训练\n".encode() * 300_000)
    most, corpus = peak(path, block_bytes=100_000)
    assert most < 8e6 and corpus.counts["bytes"] == 2_700_000
    monkeypatch.setattr(corpus_module, "MAX_LINE_BYTES", 1_000_000)
    for ending in COMPRESSIONS:
        path = write(f"a.txt{ending}", b"a\n" + b"x" * 50_000_000 + b"\nb\n")
        most, corpus = peak(path)
        assert skips(corpus) == {"too_long": 1} and corpus.counts["bytes"] == 2
        # A piece of zstd may hold 4 MB, see `_ZSTD_PIECE`.
        assert most < (20e6 if ending == ".zst" else 5e6)
