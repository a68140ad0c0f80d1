"""Corpora: documents, blocks, and what is read on when something is no text."""

import gzip
import json
import os
import pathlib
import random
import sys
import tracemalloc
import zlib
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from albert_tf.pretraining import Corpus, text_lines

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
    """Write a file, compressed as its name says."""

    def write_file(name, content):
        data = content if isinstance(content, bytes) else content.encode()
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(compress(data, path.suffix))
        return str(path)

    return write_file


def read(files, **kwargs):
    """The corpus, all of it read, and its documents."""
    corpus = Corpus(files, **kwargs)
    documents = [line for block in corpus.blocks() for line in block.documents]
    return corpus, documents


def documents_of(files, **kwargs):
    return read(files, **kwargs)[1]


def skips(corpus):
    kinds = ("not_utf8", "too_long", "not_json")
    return {kind: corpus.counts[kind] for kind in kinds if corpus.counts[kind]}


def json_lines(*records):
    return "".join(
        (record if isinstance(record, str) else json.dumps(record)) + "\n"
        for record in records
    )


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
        ("a.json.gz", {"text_field": "content"}),
        ("A.NDJSON.zst", {"document_per_line": True}),
    ],
)
def test_json_lines(write, name, kwargs):
    field = kwargs.get("text_field", "text")
    texts = ["\n".join(lines) for lines in DOCUMENTS]
    texts[2] = texts[2].replace("\n", "\n \r\n")
    content = "\ufeff" + "\n\r\n".join(
        json.dumps({"id": 1, field: text}, ensure_ascii=position == 1)
        for position, text in enumerate([*texts, "\n "])
    )
    corpus, documents = read([write(name, content)], **kwargs)
    assert documents == DOCUMENTS
    assert skips(corpus) == {}


@pytest.mark.parametrize("ending", COMPRESSIONS)
def test_files_of_nothing_have_no_blocks(write, ending):
    content = "\ufeff\n \r\n\t\n"
    assert documents_of([write(f"empty.txt{ending}", "")]) == []
    path = write(f"a.txt{ending}", content)
    corpus = Corpus([path])
    assert list(corpus.blocks()) == []
    assert corpus.counts["documents"] == 0
    assert skips(corpus) == {}
    assert documents_of([path, write("b.txt", TEXT)]) == DOCUMENTS


def test_only_newlines_end_a_line_and_the_rest_stays(write):
    lines = [f"前{character}后" for character in "\0\r\x0b\x1c\x85\u2028\ufeff"]
    assert documents_of([write("a.txt", "\n".join(lines))]) == [lines]


@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_compressed_files_joined_are_one(write, tmp_path, ending):
    """As `cat` and parallel compressors write them."""
    data = TEXT.encode()
    path = tmp_path / f"a.txt{ending}"
    parts = [compress(data[i : i + 7], ending) for i in range(0, len(data), 7)]
    path.write_bytes(b"".join(parts))
    assert documents_of([str(path)]) == DOCUMENTS


# === Blocks ===


BLOCKS = [
    # A block ends with the document that fills it.
    (
        "aa\naa\n\nb\n\ncccccc\n\nd\n\ne\n",
        5,
        [[["aa", "aa"], ["b"]], [["cccccc"]], [["d"], ["e"]]],
    ),
    # A document larger than a block is cut at a line.
    (
        "x\n\n" + "甲乙\n" * 5 + "\ny\n",
        12,
        [[["x"], ["甲乙"] * 2], [["甲乙"] * 2], [["甲乙"], ["y"]]],
    ),
    # One that alone fits is not.
    ("aaaa\n\nb\nb\nb\n\nc\n", 5, [[["aaaa"], ["b", "b", "b"]], [["c"]]]),
]


def test_blocks(write):
    for text, block_bytes, blocks in BLOCKS:
        found = list(Corpus([write("a.txt", text)], block_bytes=block_bytes).blocks())
        assert [block.documents for block in found] == blocks
        check_blocks(found, block_bytes)


@pytest.mark.parametrize("ending", ["", ".zst"])
def test_the_position_rises_to_the_total(write, monkeypatch, ending):
    monkeypatch.setattr(text_lines, "_CHUNK", 1000)
    letters = random.Random(0).choices("的一是不了在人有我他", k=300_000)
    text = "\n\n".join("".join(letters[i : i + 20]) for i in range(0, 300_000, 20))
    tail = text + "\n" * 5000 + "\xff" * 5000
    files = [write(f"a.txt{ending}", text), write(f"b.txt{ending}", tail)]
    corpus = Corpus(files, block_bytes=2000)
    positions = [block.position for block in corpus.blocks()]
    assert corpus.total_bytes == sum(os.path.getsize(file) for file in files)
    assert positions == sorted(positions)
    assert positions[-1] == corpus.total_bytes
    assert len(set(positions)) > 10


def test_a_file_that_grew_or_vanished_since(write):
    files = [write(f"{name}.txt", f"{name}\n" * 100) for name in "abc"]
    corpus = Corpus(files, block_bytes=1)
    os.remove(files[1])
    pathlib.Path(files[2]).write_text("c\n" * 1000)
    blocks = list(corpus.blocks())
    assert [block.documents[0][0] for block in blocks] == ["a"] * 100 + ["c"] * 1000
    positions = [block.position for block in blocks]
    assert positions == sorted(positions)
    assert positions[-1] == corpus.total_bytes == 600
    (warning,) = corpus.warnings
    assert files[1] in warning


# === What a simple reader reads ===


def naive_documents(data, document_per_line, max_line_bytes):
    """Everything at once: the documents and what is skipped."""
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
    """All that is said of when a block ends. Gives back where documents are cut."""
    cuts, lines = set(), 0
    for number, block in enumerate(blocks):
        assert block.index == number
        assert block.bytes == sum(map(size, block.documents))
        assert block.documents and all(block.documents)
        *whole, last = block.documents
        assert sum(map(size, whole)) < block_bytes
        assert size(last[:-1]) < block_bytes
        assert block.bytes >= block_bytes or block is blocks[-1]
        lines += sum(map(len, block.documents))
        if size(last) >= block_bytes:
            cuts.add(lines)
    return cuts


def ends(documents):
    """After which lines a document ends."""
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
    corpus = Corpus(
        [str(folder / "*")],
        document_per_line,
        block_bytes,
        max_line_bytes=max_line_bytes,
    )
    with mock.patch.object(text_lines, "_CHUNK", chunk):
        blocks = list(corpus.blocks())
    documents = [document for block in blocks for document in block.documents]
    assert sum(documents, []) == sum(expected, [])
    cuts = check_blocks(blocks, block_bytes)
    assert ends(expected) <= ends(documents) <= ends(expected) | cuts
    assert {kind: corpus.counts[kind] for kind in skipped} == skipped
    assert not any("damaged" in warning for warning in corpus.warnings)
    assert [block.position for block in blocks[-1:]] in ([], [corpus.total_bytes])


# A lone surrogate is left out, a pair is a character.
texts = st.text(max_size=20) | st.text("中a\n\r \ud83d\ude00", max_size=20)


@pytest.mark.slow
@given(st.lists(texts, max_size=6))
@settings(deadline=None, max_examples=50)
def test_json_documents_are_the_texts(tmp_path_factory, texts):
    path = tmp_path_factory.getbasetemp() / "texts.jsonl"
    path.write_text(json_lines(*({"text": text} for text in texts)))
    expected = []
    for text in texts:
        text = json.loads(json.dumps(text)).encode("utf-8", "ignore").decode()
        lines = [line.strip() for line in text.split("\n")]
        expected.append([line for line in lines if line])
    corpus, documents = read([str(path)])
    assert documents == [lines for lines in expected if lines]
    assert skips(corpus) == {}


# === Lines that are skipped ===


def test_a_line_that_is_not_utf8_leaves_the_document_whole(write):
    data = "甲\n".encode() + "乙\n".encode("gbk") + b"\xed\xa0\x80\n" + "丙\n".encode()
    corpus, documents = read([write("a.txt", data)])
    assert documents == [["甲", "丙"]]
    assert skips(corpus) == {"not_utf8": 2}


def test_files_of_another_encoding_are_named(write):
    text = "很好，真的很好。\n\n\n" * 50
    good = write("a.txt", text)
    gbk = write("b.txt", text.encode("gb18030"))
    utf16 = write("c.txt", text.encode("utf-16"))
    half = write("d.txt", "好\n".encode() * 50 + "很好\n".encode("gbk") * 50)
    corpus, documents = read([good, gbk, utf16, half])
    assert len(documents) == 51
    assert corpus.counts["not_utf8"] > 150
    (warning,) = corpus.warnings
    assert f"lines were skipped, in {gbk} and 2 more files: they are not UTF" in warning
    assert "iconv -f GB18030 -t UTF-8 (or -f UTF-16)" in warning


@pytest.mark.parametrize(
    ("ending", "chunk", "bom"), [("", 4, "\ufeff"), (".zst", 2**18, "")]
)
def test_the_longest_line(write, monkeypatch, ending, chunk, bom):
    monkeypatch.setattr(text_lines, "_CHUNK", chunk)
    lines = ["x" * length for length in (20, 21, 19, 21, 20)]
    for content in ("\n".join(lines), "\n".join(reversed(lines)) + "\n"):
        path = write(f"a.txt{ending}", bom + content)
        corpus, documents = read([path], max_line_bytes=20)
        assert sorted(sum(documents, [])) == sorted(["x" * 19, "x" * 20, "x" * 20])
        assert skips(corpus) == {"too_long": 2}


def test_a_line_that_is_no_json_object_with_a_text(write):
    bad = ["甲", "null", '["text"]', '{"text": 1}', '{"content": "甲"}', "[" * 100_000]
    bad.append('{"text": ' + "1" * 5000 + "}")
    path = write("a.jsonl", json_lines({"text": "一"}, *bad, {"text": "二"}))
    corpus, documents = read([path])
    assert documents == [["一"], ["二"]]
    assert skips(corpus) == {"not_json": 7}
    (warning,) = corpus.warnings
    assert f"7 lines were skipped, in {path}: they are no JSON objects" in warning
    assert 'a string "text"' in warning and "text_field" in warning


# === Files that are damaged ===


def numbered_lines():
    """Of the digits of hashes, which do not compress to nothing."""
    return [f"{number} {zlib.crc32(b'%d' % number)}" for number in range(50_000)]


@pytest.mark.parametrize("ending", [".gz", ".zst"])
@pytest.mark.parametrize(
    "share", [pytest.param(0, marks=pytest.mark.slow), 0.5, 0.9999]
)
def test_a_file_cut_short_is_read_up_to_there(write, tmp_path, ending, share):
    lines = numbered_lines()
    path = tmp_path / f"a.txt{ending}"
    data = compress("\n".join(lines).encode(), ending)
    path.write_bytes(data[: max(3, int(len(data) * share))])
    corpus, documents = read([str(path), write("b.txt", TEXT)])
    assert documents[-3:] == DOCUMENTS
    kept = sum(documents[:-3], [])
    assert kept == lines[: len(kept)]
    # zstd compresses 128 kB at a time, gzip far less.
    assert len(kept) > (share - 0.2) * len(lines)
    (message,) = corpus.warnings
    assert f"{path} is damaged or cut short (" in message
    assert skips(corpus) == {}


@pytest.mark.parametrize("ending", [".gz", ".zst"])
@pytest.mark.parametrize("share", [pytest.param(0, marks=pytest.mark.slow), 0.6, 1])
def test_a_file_with_wrong_bytes_is_named(write, tmp_path, ending, share):
    lines = numbered_lines()
    path = tmp_path / f"a.txt{ending}"
    data = bytearray(compress("\n".join(lines).encode(), ending))
    data[int((len(data) - 1) * share)] ^= 0xFF
    path.write_bytes(data)
    corpus, documents = read([str(path), write("b.txt", TEXT)])
    assert documents[-3:] == DOCUMENTS
    (message,) = corpus.warnings
    assert str(path) in message
    if share == 1:
        # The last byte is of a checksum. What came with it is lost.
        kept = sum(documents[:-3], [])
        assert kept == lines[: len(kept)]
        assert len(kept) > 0.8 * len(lines)


@pytest.mark.slow
@pytest.mark.parametrize("ending", [".gz", ".zst"])
@given(data=st.data())
@settings(deadline=None, max_examples=50)
def test_whatever_the_damage_the_reading_continues(tmp_path_factory, ending, data):
    path = tmp_path_factory.getbasetemp() / f"0.txt{ending}"
    good = path.with_name("1.txt")
    good.write_text(TEXT)
    content = bytearray(compress("\n".join(numbered_lines()[:200]).encode(), ending))
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(
            st.integers(0, 255)
        )
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    assert documents_of([str(path), str(good)])[-3:] == DOCUMENTS


# === Which files, in which order ===


@pytest.fixture
def tree(write):
    names = [
        "b/2.txt",
        "b/10.txt",
        "a/x/y/1.txt",
        "a/1.txt",
        "B.txt",
        "a/1.md",
        "a.txt",
    ]
    return {name: write(name, name) for name in names}


def test_files_are_sorted_by_name_and_read_once(tree, tmp_path):
    names = ["B.txt", "a.txt", "a/1.txt", "b/10.txt", "b/2.txt"]
    files = [tree[name] for name in ("b/2.txt", "a/1.txt", "b/2.txt")]
    files += [str(tmp_path / pattern) for pattern in ("*.txt", "b/*", "b/../a/1.txt")]
    for order in (files, files[::-1]):
        corpus, documents = read(order)
        assert sorted(map(os.path.realpath, corpus.files)) == [
            tree[name] for name in names
        ]
        assert [lines for (lines,) in documents] == names
        assert all(isinstance(path, pathlib.Path) for path in corpus.files)


def test_two_stars_stand_for_any_folders(tree, tmp_path):
    corpus = Corpus([str(tmp_path / "**" / "*.txt")])
    names = sorted(name for name in tree if name.endswith(".txt"))
    assert [str(path) for path in corpus.files] == [tree[name] for name in names]
    everything = Corpus([str(tmp_path / "**")])
    assert [str(path) for path in everything.files] == sorted(tree.values())


def test_a_link_is_not_read_beside_its_file(tree, tmp_path):
    (tmp_path / "b" / "latest.txt").symlink_to(tree["b/2.txt"])
    corpus = Corpus([str(tmp_path / "b" / "*")])
    assert [path.name for path in corpus.files] == ["10.txt", "2.txt"]
    # And a name may have brackets.
    (tmp_path / "a[1].txt").write_text(TEXT)
    assert documents_of([str(tmp_path / "a[1].txt")]) == DOCUMENTS


# === What is refused, before anything is read ===


REFUSED = [
    ("nowhere.txt", FileNotFoundError, r"There is no file .*nowhere\.txt"),
    ("b/*.gone", FileNotFoundError, r"There is no file .*link\.gone"),
    ("*.xyz", FileNotFoundError, r"No file of text matches the pattern .*/\*\.xyz"),
    ("a/[x]", FileNotFoundError, "No file of text matches the pattern"),
    ("b", IsADirectoryError, r"a folder.*b/\*\*/\*.txt"),
    ("wiki.TAR.GZ", ValueError, r"wiki.* is an archive.*\.gz, \.zst"),
    ("wiki.parquet", ValueError, r"wiki.* is an archive"),
    ("pipe", FileNotFoundError, r"There is no file .*pipe"),
]


def test_what_cannot_be_read_is_refused(tree, tmp_path):
    (tmp_path / "b" / "link.gone").symlink_to(tmp_path / "nowhere")
    (tmp_path / "wiki.TAR.GZ").touch()
    (tmp_path / "wiki.parquet").touch()
    os.mkfifo(tmp_path / "pipe")
    for name, error, message in REFUSED:
        with pytest.raises(error, match=message):
            Corpus([tree["a.txt"], str(tmp_path / name)])


def test_impossible_arguments(tree):
    with pytest.raises(ValueError, match="`files` is empty"):
        Corpus([])
    for name in ("block_bytes", "max_line_bytes"):
        with pytest.raises(ValueError, match=f"`{name}` must be at least 1.*: 0"):
            Corpus([tree["a.txt"]], **{name: 0})


def test_zstandard_is_missing(tmp_path, monkeypatch):
    (tmp_path / "a.txt.zst").touch()
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(ValueError, match=r"a\.txt.zst.*'albert-tf\[fast\]'"):
        Corpus([str(tmp_path / "a.txt.zst")])


def test_a_name_that_is_not_utf8_can_be_printed(tmp_path):
    path = os.fsencode(tmp_path) + "/评论.txt".encode("gbk")
    try:
        pathlib.Path(os.fsdecode(path)).write_bytes("很好".encode("gbk"))
    except OSError:
        pytest.skip("this file system has UTF-8 names only")
    corpus, _ = read([os.fsdecode(path)])
    assert "\\udcc6" in corpus.warnings[0].encode().decode()


# === Memory ===


def peak(path, **kwargs):
    """The most memory, in bytes, that reading a file takes."""
    tracemalloc.start()
    try:
        corpus = Corpus([str(path)], **kwargs)
        count = sum(block.bytes for block in corpus.blocks())
        return tracemalloc.get_traced_memory()[1], count, corpus
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(tmp_path):
    path = tmp_path / "a.txt"
    paragraph = ("预训练" * 300 + "\n") * 4 + "\n"
    peaks = []
    for megabytes in (5, 25):
        path.write_text(paragraph * (megabytes * 10**6 // len(paragraph.encode())))
        most, count, _ = peak(path, block_bytes=1_000_000)
        assert count > 0.99e6 * megabytes
        peaks.append(most)
    path.unlink()
    assert peaks[1] < 1.1 * peaks[0]
    assert peaks[1] < 10e6


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
def test_a_line_of_50_megabytes_is_not_held(write, ending):
    path = write(f"a.txt{ending}", b"a\n" + b"x" * 50_000_000 + b"\nb\n")
    most, count, corpus = peak(path, max_line_bytes=1_000_000)
    assert skips(corpus) == {"too_long": 1}
    assert count == 2
    # A piece of zstd may hold 4 MB, see `_ZSTD_PIECE`.
    assert most < (20e6 if ending == ".zst" else 5e6)


@pytest.mark.slow
def test_a_document_of_many_megabytes_is_not_held(write):
    path = write("a.txt.gz", "预训练\n".encode() * 300_000)
    most, count, corpus = peak(path, block_bytes=100_000)
    assert count == 2_700_000
    assert corpus.counts["documents"] == -(-300_000 // -(-100_000 // 9))
    assert most < 8e6
