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

from albert_tf.pretraining import corpus as corpus_module
from albert_tf.pretraining.corpus import Corpus

COMPRESSIONS = ["", ".gz", ".zst", ".zstd"]
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


@pytest.mark.parametrize("ending", COMPRESSIONS)
@pytest.mark.parametrize(
    "content",
    [
        TEXT,
        TEXT.rstrip("\n"),
        TEXT.replace("\n", "\r\n"),
        "\ufeff" + TEXT,
        "\n \n\u3000\n" + TEXT.replace("\n\n", "\n\n \t\n\n") + "\n\n",
        TEXT.replace("\n", "\u3000 \n \t"),
    ],
    ids=["plain", "no_last_newline", "crlf", "bom", "empty_lines", "white_space"],
)
def test_an_empty_line_ends_a_document(write, content, ending):
    corpus, documents = read([write(f"a.txt{ending}", content)])
    assert documents == DOCUMENTS
    lines = sum(DOCUMENTS, [])
    assert corpus.counts == {
        **{"documents": 3, "lines": 6, "bytes": len("".join(lines).encode())},
        **{"not_utf8": 0, "too_long": 0, "not_json": 0, "unreadable": []},
        **{"files_not_utf8": [], "files_not_json": [], "files_too_long": []},
    }
    assert corpus.complaint == ""


@pytest.mark.parametrize("ending", COMPRESSIONS)
def test_a_document_per_line(write, ending):
    path = write(f"a.txt{ending}", "\n" + TEXT)
    expected = [[line] for lines in DOCUMENTS for line in lines]
    assert documents_of([path], document_per_line=True) == expected


@pytest.mark.parametrize("ending", COMPRESSIONS)
@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.ndjson", "A.JSONL"])
@pytest.mark.parametrize("document_per_line", [False, True])
def test_json_lines(write, name, ending, document_per_line):
    texts = ["\n".join(lines) for lines in DOCUMENTS]
    texts[2] = texts[2].replace("\n", "\n \r\n")
    content = "\ufeff" + "\n\r\n".join(
        json.dumps({"id": 1, "text": text}, ensure_ascii=position == 1)
        for position, text in enumerate(texts)
    )
    path = write(name + ending, content)
    corpus, documents = read([path], document_per_line=document_per_line)
    assert documents == DOCUMENTS
    assert skips(corpus) == {}


def test_another_field_of_json_lines(write):
    path = write("a.jsonl", json_lines({"text": "甲", "content": "乙"}))
    assert documents_of([path], text_field="content") == [["乙"]]


@pytest.mark.parametrize("text", ["", " ", "\n\r\n\u3000"])
def test_a_json_text_of_nothing_is_no_document_and_no_error(write, text):
    path = write("a.jsonl", json_lines({"text": "甲"}, {"text": text}))
    corpus, documents = read([path])
    assert documents == [["甲"]]
    assert skips(corpus) == {}


def test_halves_of_surrogate_pairs_in_json_are_left_out(write):
    path = write("a.jsonl", r'{"text": "\ud83d\ude00 a\ud83d\nb\ude00"}')
    corpus, documents = read([path])
    assert documents == [["😀 a", "b"]]
    assert skips(corpus) == {}


@pytest.mark.parametrize("content", ["", "\n", "\n \r\n\t\n", "\ufeff", "\ufeff\n"])
@pytest.mark.parametrize("ending", COMPRESSIONS)
def test_files_of_nothing_have_no_blocks(write, content, ending):
    path = write(f"a.txt{ending}", content)
    corpus = Corpus([path])
    assert list(corpus.blocks()) == []
    assert corpus.counts["documents"] == 0
    assert skips(corpus) == {}
    assert documents_of([path, write("b.txt", TEXT)]) == DOCUMENTS


@pytest.mark.parametrize("ending", COMPRESSIONS)
def test_a_file_of_no_bytes(write, tmp_path, ending):
    path = tmp_path / f"a.txt{ending}"
    path.touch()
    corpus, documents = read([str(path), write("b.txt", TEXT)])
    assert documents == DOCUMENTS
    assert corpus.counts["unreadable"] == []


def test_no_document_spans_files(write):
    files = [write("a.txt", "甲"), write("b.txt", "乙\n"), write("c.txt", "丙\n\n丁")]
    assert documents_of(files) == [["甲"], ["乙"], ["丙"], ["丁"]]


@pytest.mark.parametrize(
    "character", "\0\r\x01\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029\ufeff", ids=ascii
)
def test_only_newlines_end_a_line_and_the_rest_stays(write, character):
    line = f"前{character}后"
    path = write("a.txt", f"一\n{line}\n二\n")
    assert documents_of([path]) == [["一", line, "二"]]


@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_compressed_files_joined_are_one(write, tmp_path, ending):
    """As `cat` and parallel compressors write them."""
    data = TEXT.encode()
    path = tmp_path / f"a.txt{ending}"
    parts = [compress(data[i : i + 7], ending) for i in range(0, len(data), 7)]
    path.write_bytes(b"".join(parts))
    assert documents_of([str(path)]) == DOCUMENTS


# === Blocks ===


def test_a_block_ends_with_the_document_that_fills_it(write):
    path = write("a.txt", "aa\naa\n\nb\n\ncccccc\n\nd\n\ne\n")
    blocks = list(Corpus([path], block_bytes=5).blocks())
    assert [block.documents for block in blocks] == [
        [["aa", "aa"], ["b"]],
        [["cccccc"]],
        [["d"], ["e"]],
    ]
    assert [block.index for block in blocks] == [0, 1, 2]
    assert [block.bytes for block in blocks] == [5, 6, 2]


def test_a_document_larger_than_a_block_is_cut_at_a_line(write):
    path = write("a.txt", "x\n\n" + "甲乙\n" * 5 + "\ny\n")
    blocks = list(Corpus([path], block_bytes=12).blocks())
    assert [block.documents for block in blocks] == [
        [["x"], ["甲乙", "甲乙"]],
        [["甲乙", "甲乙"]],
        [["甲乙"], ["y"]],
    ]


def test_a_document_that_alone_fits_a_block_is_not_cut(write):
    path = write("a.txt", "aaaa\n\nb\nb\nb\n\nc\n")
    blocks = list(Corpus([path], block_bytes=5).blocks())
    assert [block.documents for block in blocks] == [
        [["aaaa"], ["b", "b", "b"]],
        [["c"]],
    ]


def test_a_json_document_is_cut_at_a_line_as_well(write):
    path = write("a.jsonl", json_lines({"text": "a\nb\nc"}))
    assert documents_of([path], block_bytes=1) == [["a"], ["b"], ["c"]]


def test_the_skips_of_a_block_are_those_before_the_next(write):
    bad = b"\xff"
    lines = [bad, b"a", bad, b"", b"b", b"xxxx", bad, b"", bad, b"c", b"xxxx"]
    path = write("a.txt", b"\n".join(lines))
    corpus = Corpus([path], block_bytes=1, max_line_bytes=3)
    blocks = list(corpus.blocks())
    assert [block.documents for block in blocks] == [[["a"]], [["b"]], [["c"]]]
    assert [block.counts["not_utf8"] for block in blocks] == [2, 2, 0]
    assert [block.counts["too_long"] for block in blocks] == [0, 1, 1]
    assert skips(corpus) == {"not_utf8": 4, "too_long": 2}


def test_counts_are_of_the_blocks_so_far_and_start_again(write):
    corpus = Corpus([write("a.txt", b"a\n\xff\n\nb\nc\n")], block_bytes=1)
    for _ in range(2):
        blocks = corpus.blocks()
        next(blocks)
        assert (corpus.counts["lines"], corpus.counts["not_utf8"]) == (1, 1)
        assert len(list(blocks)) == 2
        assert (corpus.counts["lines"], corpus.counts["not_utf8"]) == (3, 1)
        assert (corpus.counts["documents"], corpus.counts["bytes"]) == (3, 3)


def test_nothing_is_read_before_it_is_asked_for(write):
    files = [write(f"{name}.txt", TEXT) for name in "abc"]
    corpus = Corpus(files, block_bytes=1)
    blocks = corpus.blocks()
    assert next(blocks).position <= corpus.total_bytes / 3
    blocks.close()


@pytest.mark.parametrize("ending", COMPRESSIONS)
def test_the_position_rises_to_the_total(write, monkeypatch, ending):
    monkeypatch.setattr(corpus_module, "_CHUNK", 1000)
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
    assert [files[1] in message for message in corpus.counts["unreadable"]] == [True]


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
@settings(deadline=None)
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
    with mock.patch.object(corpus_module, "_CHUNK", chunk):
        blocks = list(corpus.blocks())
    documents = [document for block in blocks for document in block.documents]
    assert sum(documents, []) == sum(expected, [])
    cuts = check_blocks(blocks, block_bytes)
    assert ends(expected) <= ends(documents) <= ends(expected) | cuts
    assert {kind: corpus.counts[kind] for kind in skipped} == skipped
    for kind in skipped:
        # What follows no block at all belongs to none.
        in_blocks = sum(block.counts[kind] for block in blocks)
        assert in_blocks == (skipped[kind] if blocks else 0)
    assert corpus.counts["unreadable"] == []
    assert [block.position for block in blocks[-1:]] in ([], [corpus.total_bytes])


# A lone surrogate is left out, a pair is a character.
texts = st.text(max_size=20) | st.text("中a\n\r \ud83d\ude00", max_size=20)


@given(st.lists(texts, max_size=6))
@settings(deadline=None)
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


@pytest.mark.parametrize("ending", COMPRESSIONS)
def test_a_line_that_is_not_utf8_leaves_the_document_whole(write, ending):
    data = "甲\n".encode() + "乙\n".encode("gbk") + b"\xed\xa0\x80\n" + "丙\n".encode()
    corpus, documents = read([write(f"a.txt{ending}", data)])
    assert documents == [["甲", "丙"]]
    assert skips(corpus) == {"not_utf8": 2}


def test_files_of_another_encoding_are_complained_of(write):
    text = "很好，真的很好。\n\n\n" * 50
    good = write("a.txt", text)
    gbk = write("b.txt", text.encode("gb18030"))
    utf16 = write("c.txt", text.encode("utf-16"))
    half = write("d.txt", "好\n".encode() * 50 + "很好\n".encode("gbk") * 50)
    corpus, documents = read([good, gbk, utf16, half])
    assert len(documents) == 51
    assert corpus.counts["files_not_utf8"] == [gbk, utf16]
    assert corpus.counts["not_utf8"] > 150
    assert f"{gbk}, {utf16} are not UTF-8" in corpus.complaint
    assert "iconv -f GB18030 -t UTF-8" in corpus.complaint
    assert half not in corpus.complaint and good not in corpus.complaint


def test_the_complaint_names_a_few_of_many(write):
    files = [write(f"{name}.txt", "很好".encode("gbk")) for name in "abcdefgh"]
    corpus, documents = read(files)
    assert documents == []
    assert f"{files[4]} and 3 more are not UTF-8" in corpus.complaint
    assert files[5] not in corpus.complaint


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_western_text_in_utf16_is_not_taken_for_utf8(write, encoding):
    text = ("\ufeff" if encoding != "utf-16" else "") + "good\n" * 10
    corpus, documents = read([write("a.txt", text.encode(encoding))])
    assert documents == []
    assert skips(corpus) == {"not_utf8": 11 - (encoding == "utf-16-be")}
    assert "-f UTF-16" in corpus.complaint


@pytest.mark.parametrize("ending", COMPRESSIONS)
@pytest.mark.parametrize("chunk", [1, 4, 2**18])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
def test_the_longest_line(write, monkeypatch, chunk, ending, bom):
    monkeypatch.setattr(corpus_module, "_CHUNK", chunk)
    lines = ["x" * length for length in (20, 21, 19, 21, 20)]
    for content in ("\n".join(lines), "\n".join(reversed(lines)) + "\n"):
        path = write(f"a.txt{ending}", bom + content)
        corpus, documents = read([path], max_line_bytes=20)
        assert sorted(sum(documents, [])) == sorted(["x" * 19, "x" * 20, "x" * 20])
        assert skips(corpus) == {"too_long": 2}


def test_the_longest_line_is_in_bytes(write):
    corpus, documents = read([write("a.txt", "中文\n中文字\n")], max_line_bytes=6)
    assert documents == [["中文"]]
    assert skips(corpus) == {"too_long": 1}


@pytest.mark.parametrize(
    "line",
    [
        '{"text": "甲"',
        "甲",
        '"甲"',
        "null",
        '["text"]',
        "{'text': '甲'}",
        '{"txt": "甲"}',
        '{"text": null}',
        '{"text": 1}',
        '{"text": ["甲"]}',
        '{"text": ' + "1" * 5000 + "}",
        "[" * 100_000,
        '{"text": "a\0"}',
    ],
    ids=lambda line: line[:16],
)
def test_a_line_that_is_no_json_object_with_a_text(write, line):
    path = write("a.jsonl", json_lines({"text": "一"}, line, {"text": "二"}))
    corpus, documents = read([path])
    assert documents == [["一"], ["二"]]
    assert skips(corpus) == {"not_json": 1}
    assert corpus.complaint == ""


def test_json_of_another_field_or_form_is_complained_of(write):
    other = write("a.jsonl", json_lines(*[{"content": "甲"}] * 3, {"text": "乙"}))
    pretty = write("b.json", json.dumps([{"text": "甲"}] * 3, indent=2))
    corpus, documents = read([other, pretty])
    assert documents == [["乙"]]
    assert corpus.counts["files_not_json"] == [other, pretty]
    assert f'{other}, {pretty} are no JSON objects with a string "text"' in (
        corpus.complaint
    )
    assert "text_field" in corpus.complaint


def test_skips_of_all_kinds_in_json(write):
    lines = [b'{"text": "\xff"}', b'{"text": "too long"}', b"{}", b'{"text": "ok"}']
    corpus, documents = read([write("a.jsonl", b"\n".join(lines))], max_line_bytes=14)
    assert documents == [["ok"]]
    assert skips(corpus) == {"not_utf8": 1, "too_long": 1, "not_json": 1}


# === Files that are damaged ===


def numbered_lines():
    """Of the digits of hashes, which do not compress to nothing."""
    return [f"{number} {zlib.crc32(b'%d' % number)}" for number in range(50_000)]


@pytest.mark.parametrize("ending", [".gz", ".zst"])
@pytest.mark.parametrize("share", [0, 0.0001, 0.1, 0.5, 0.9, 0.9999])
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
    (message,) = corpus.counts["unreadable"]
    assert f"{path} is damaged or cut short (" in message
    assert skips(corpus) == {}


@pytest.mark.parametrize("ending", [".gz", ".zst"])
@pytest.mark.parametrize("share", [0, 0.3, 0.6, 0.95, 1])
def test_a_file_with_wrong_bytes_is_told(write, tmp_path, ending, share):
    lines = numbered_lines()
    path = tmp_path / f"a.txt{ending}"
    data = bytearray(compress("\n".join(lines).encode(), ending))
    data[int((len(data) - 1) * share)] ^= 0xFF
    path.write_bytes(data)
    corpus, documents = read([str(path), write("b.txt", TEXT)])
    assert documents[-3:] == DOCUMENTS
    (message,) = corpus.counts["unreadable"]
    assert str(path) in message
    if share == 1:
        # The last byte is of a checksum. What came with it is lost.
        kept = sum(documents[:-3], [])
        assert kept == lines[: len(kept)]
        assert len(kept) > 0.8 * len(lines)


@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_what_follows_the_compressed_text_is_told(write, tmp_path, ending):
    path = tmp_path / f"a.txt{ending}"
    path.write_bytes(compress(TEXT.encode(), ending) + b"something else")
    corpus, documents = read([str(path), write("b.txt", TEXT)])
    assert documents == DOCUMENTS * 2
    assert len(corpus.counts["unreadable"]) == 1


@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_a_file_that_is_not_compressed(tmp_path, ending):
    path = tmp_path / f"a.txt{ending}"
    path.write_text(TEXT)
    corpus = Corpus([str(path)])
    assert list(corpus.blocks()) == []
    assert len(corpus.counts["unreadable"]) == 1


@pytest.mark.parametrize("ending", [".gz", ".zst"])
@given(data=st.data())
@settings(deadline=None, max_examples=50)
def test_whatever_the_damage_the_reading_goes_on(tmp_path_factory, ending, data):
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


def test_the_order_is_not_that_of_the_file_system(tree, tmp_path, monkeypatch):
    pattern = str(tmp_path / "**" / "*.txt")
    expected = Corpus([pattern]).files
    found = corpus_module.glob.glob(pattern, recursive=True)
    for seed in range(5):
        random.Random(seed).shuffle(found)
        monkeypatch.setattr(corpus_module.glob, "glob", lambda *_, **__: found[:])
        assert Corpus([pattern]).files == expected


def test_a_link_is_not_read_beside_its_file(tree, tmp_path):
    (tmp_path / "b" / "latest.txt").symlink_to(tree["b/2.txt"])
    corpus = Corpus([str(tmp_path / "b" / "*")])
    assert [path.name for path in corpus.files] == ["10.txt", "2.txt"]


def test_brackets_in_the_name_of_a_file(write):
    path = write("a[1].txt", TEXT)
    assert documents_of([path]) == DOCUMENTS


def test_one_path_for_a_list_and_paths_for_strings(tree):
    expected = [pathlib.Path(tree["a.txt"])]
    assert Corpus(tree["a.txt"]).files == expected
    assert Corpus(expected).files == Corpus(expected[0]).files == expected


# === What is refused, before anything is read ===


def test_a_missing_file(tree, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no file .*nowhere\.txt"):
        Corpus([tree["a.txt"], str(tmp_path / "nowhere.txt")])


def test_a_link_to_nothing_is_not_left_out(tree, tmp_path):
    (tmp_path / "b" / "gone.txt").symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match=r"There is no file .*gone\.txt"):
        Corpus([str(tmp_path / "b" / "*.txt")])


@pytest.mark.parametrize("pattern", ["*.xyz", "nowhere/**/*.txt", "a/[x]"])
def test_a_pattern_that_matches_no_file(tree, tmp_path, pattern):
    with pytest.raises(FileNotFoundError) as error:
        Corpus([tree["a.txt"], str(tmp_path / pattern)])
    assert f"No file matches the pattern {tmp_path / pattern}" in str(error.value)


def test_a_folder(tree, tmp_path):
    with pytest.raises(IsADirectoryError, match=rf"a folder.*{tmp_path}/b/\*\*/\*.txt"):
        Corpus([tree["a.txt"], str(tmp_path / "b")])


def test_a_file_that_may_not_be_read(tree, monkeypatch):
    # The rights themselves do not hold for root, who may run the tests.
    def refuse(path, *args):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(pathlib.Path, "open", refuse)
    with pytest.raises(PermissionError, match=r"a\.txt cannot be read: Permission"):
        Corpus([tree["a.txt"]])


def test_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="pipe is a pipe or a device"):
        Corpus([str(tmp_path / "pipe")])


@pytest.mark.parametrize("ending", corpus_module.REFUSED_ENDINGS)
def test_archives(tmp_path, ending):
    path = tmp_path / f"wiki{ending.upper()}"
    path.touch()
    with pytest.raises(ValueError, match=r"wiki.* is an archive.*\.gz, \.zst"):
        Corpus([str(path)])


def test_no_files():
    with pytest.raises(ValueError, match="`files` is empty"):
        Corpus([])


@pytest.mark.parametrize("argument", ["block_bytes", "max_line_bytes"])
def test_sizes_of_nothing(tree, argument):
    with pytest.raises(ValueError, match=f"`{argument}` must be at least 1.*: 0"):
        Corpus([tree["a.txt"]], **{argument: 0})


@pytest.mark.parametrize("ending", [".zst", ".zstd"])
def test_zstandard_is_missing(tmp_path, monkeypatch, ending):
    (tmp_path / f"a.txt{ending}").touch()
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(ValueError, match=r"a\.txt.zst.*'albert-tf\[fast\]'"):
        Corpus([str(tmp_path / f"a.txt{ending}")])


def test_a_name_that_is_not_utf8_can_be_printed(tmp_path):
    path = os.fsencode(tmp_path) + "/评论.txt".encode("gbk")
    try:
        pathlib.Path(os.fsdecode(path)).write_bytes("很好".encode("gbk"))
    except OSError:
        pytest.skip("this file system has UTF-8 names only")
    corpus, _ = read([os.fsdecode(path)])
    assert "\\udcc6" in corpus.complaint.encode().decode()


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


def test_memory_does_not_grow_with_the_file(tmp_path):
    path = tmp_path / "a.txt"
    paragraph = ("预训练" * 300 + "\n") * 4 + "\n"
    peaks = []
    for megabytes in (5, 100):
        path.write_text(paragraph * (megabytes * 10**6 // len(paragraph.encode())))
        most, count, _ = peak(path, block_bytes=1_000_000)
        assert count > 0.99e6 * megabytes
        peaks.append(most)
    path.unlink()
    assert peaks[1] < 1.1 * peaks[0]
    assert peaks[1] < 10e6


@pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
def test_a_line_of_50_megabytes_is_not_held(write, ending):
    path = write(f"a.txt{ending}", b"a\n" + b"x" * 50_000_000 + b"\nb\n")
    most, count, corpus = peak(path, max_line_bytes=1_000_000)
    assert skips(corpus) == {"too_long": 1}
    assert count == 2
    # A piece of zstd may hold 4 MB, see `_ZSTD_PIECE`.
    assert most < (20e6 if ending == ".zst" else 5e6)


def test_a_document_of_many_megabytes_is_not_held(write):
    path = write("a.txt.gz", "预训练\n".encode() * 300_000)
    most, count, corpus = peak(path, block_bytes=100_000)
    assert count == 2_700_000
    assert corpus.counts["documents"] == -(-300_000 // -(-100_000 // 9))
    assert most < 8e6
