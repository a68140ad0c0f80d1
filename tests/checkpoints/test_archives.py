import gzip
import io
import random
import struct
import tarfile
import zipfile

import pytest

from albert_tf.checkpoints import archives
from albert_tf.checkpoints.archives import ArchiveError, is_archive, unpack

ENDINGS = (".tar.gz", ".tgz", ".tar", ".zip")
FILES = {"model/a.index": b"index" * 500, "model/sub/config.json": b"{}"}


def make(path, members):
    """An archive of {name: bytes, or `None` for a folder}, or of `TarInfo`s."""
    if path.name.endswith(".zip"):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
            for name, content in members.items():
                file.writestr(
                    name if content is not None else f"{name}/", content or b""
                )
        return path
    mode = "w" if path.name.endswith(".tar") else "w:gz"
    with tarfile.open(path, mode) as file:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content or b"")
            if content is None:
                info.type = tarfile.DIRTYPE
            file.addfile(info, io.BytesIO(content or b""))
    return path


def tree(directory):
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }


def refused(archive, message, **kwargs):
    """Unpacking is refused with one sentence, and leaves nothing behind."""
    before = set(archive.parent.iterdir())
    with pytest.raises(ArchiveError, match=message) as error:
        unpack(archive, archive.parent / "out", **kwargs)
    assert "\n" not in str(error.value)
    assert str(archive) in str(error.value)
    assert set(archive.parent.iterdir()) == before
    return error


@pytest.mark.parametrize("ending", ENDINGS)
def test_unpacks(ending, tmp_path):
    archive = make(tmp_path / f"x{ending}", {"model": None, **FILES})
    reported = []
    out = unpack(str(archive), tmp_path / "deep" / "out", progress=reported.append)
    assert out == tmp_path / "deep" / "out"
    assert tree(out) == FILES
    assert reported == [2500, 2502]
    assert not list(out.parent.glob(".*"))


@pytest.mark.parametrize("ending", ENDINGS)
def test_other_files_stay(ending, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    unpack(make(tmp_path / f"x{ending}", FILES), tmp_path / "out")
    assert tree(tmp_path / "out") == {**FILES, "mine.txt": b"mine"}


def test_is_archive():
    assert all(is_archive(f"a/B{ending}") for ending in (*ENDINGS, ".ZIP", ".Tar.GZ"))
    assert not any(
        is_archive(name) for name in ("zip", "a.gz", "a.index", "a.zip.part")
    )


def test_no_archive(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no archive .*x\.zip"):
        unpack(tmp_path / "x.zip", tmp_path / "out")


def test_other_ending(tmp_path):
    (tmp_path / "x.rar").write_bytes(b"Rar!")
    refused(tmp_path / "x.rar", "does not end in any of")


# === What does not belong into an archive ===

OUTSIDE = (
    "/etc/passwd",
    "../up.txt",
    "model/../../up.txt",
    "..",
    "\\windows\\file",
    "model\\..\\..\\up.txt",
    "C:\\file",
    "c:file",
)


@pytest.mark.parametrize("ending", [".tar.gz", ".zip"])
@pytest.mark.parametrize("name", OUTSIDE)
def test_names_that_lead_out(name, ending, tmp_path):
    archive = make(tmp_path / f"x{ending}", {**FILES, name: b"bad"})
    refused(archive, "leads out of the folder")


@pytest.mark.parametrize("ending", [".tar.gz", ".zip"])
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a\nb", "characters no file name has"),
        ("a\x1b[2Jb", "characters no file name has"),
        ("a" * 300, "too long"),
        ("a/" * 60 + "b", "too long"),
    ],
)
def test_names_no_file_has(name, message, ending, tmp_path):
    refused(make(tmp_path / f"x{ending}", {name: b"bad"}), message)


@pytest.mark.parametrize("ending", [".tar", ".zip"])
@pytest.mark.parametrize(
    "names",
    [
        ("a.txt", "./a.txt"),
        ("a.txt", "A.TXT"),
        ("caf\u00e9", "cafe\u0301"),
        ("a/b", "a//b"),
    ],
)
def test_two_files_of_one_name(names, ending, tmp_path):
    archive = make(tmp_path / f"x{ending}", dict.fromkeys(names, b"x"))
    refused(archive, "two files named")


@pytest.mark.parametrize("members", [{"a": b"x", "./a": None}, {"a": None, "A": b"x"}])
def test_file_and_folder_of_one_name(members, tmp_path):
    refused(make(tmp_path / "x.tar", members), "two files named")


def test_file_inside_a_file(tmp_path):
    refused(make(tmp_path / "x.tar", {"a": b"1", "a/b": b"2"}), "lies inside a file")


@pytest.mark.parametrize(
    "kind",
    [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE],
)
def test_links_and_devices_in_tar(kind, tmp_path):
    with tarfile.open(tmp_path / "x.tar.gz", "w:gz") as file:
        info = tarfile.TarInfo("model/link")
        info.type, info.linkname = kind, "/etc/passwd"
        file.addfile(info)
    refused(tmp_path / "x.tar.gz", "a link or a device")


def test_links_in_zip(tmp_path):
    info = zipfile.ZipInfo("model/link")
    info.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as file:
        file.writestr(info, "/etc/passwd")
    refused(tmp_path / "x.zip", "a link or a device")


def test_sparse_file_in_tar(tmp_path):
    # 1 TB of nothing, in one header.
    info = tarfile.TarInfo("hole")
    header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    header[156:157] = b"S"
    header[386:410] = b"%011o\0%011o\0" % (0, 0)
    header[483:495] = b"%011o\0" % (2**32)
    header[148:156] = b"%06o\0 " % (256 + sum(header[:148]) + sum(header[156:512]))
    (tmp_path / "x.tar").write_bytes(bytes(header) + bytes(1024))
    refused(tmp_path / "x.tar", "a link or a device")


@pytest.mark.parametrize("ending", ENDINGS)
def test_limit_on_what_is_written(ending, tmp_path):
    archive = make(tmp_path / f"x{ending}", {"zeros": bytes(10**6), "more": b"1"})
    refused(archive, "more than 1000000 bytes", max_bytes=10**6)
    unpack(archive, tmp_path / "out", max_bytes=10**6 + 1)


def test_size_in_the_header_of_a_zip_is_not_believed(tmp_path):
    archive = make(tmp_path / "x.zip", {"zeros": bytes(10**6)})
    content = archive.read_bytes()
    archive.write_bytes(content.replace(struct.pack("<I", 10**6), struct.pack("<I", 7)))
    refused(archive, "damaged")


@pytest.mark.parametrize("ending", [".tar", ".zip"])
def test_too_many_members(ending, tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "MAX_MEMBERS", 3)
    members = {f"__MACOSX/{number}": b"" for number in range(4)}
    refused(make(tmp_path / f"x{ending}", members), "more than 3 files")


def test_name_of_any_length_takes_no_memory(tmp_path):
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 2**33
    with gzip.open(tmp_path / "x.tar.gz", "wb", 1) as file:
        file.write(info.tobuf(tarfile.GNU_FORMAT))
        file.write(bytes(2**20))
    refused(tmp_path / "x.tar.gz", "impossible size")


def test_endless_padding(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "MAX_PADDING", 2**18)
    archive = make(tmp_path / "x.tar.gz", FILES)
    content = gzip.decompress(archive.read_bytes())
    archive.write_bytes(gzip.compress(content + bytes(2**19)))
    refused(archive, "goes on after its end")


def test_encrypted_zip(tmp_path):
    archive = make(tmp_path / "x.zip", {"a.txt": b"secret"})
    content = bytearray(archive.read_bytes())
    content[6] |= 1
    content[content.index(b"PK\x01\x02") + 8] |= 1
    archive.write_bytes(content)
    refused(archive, "is encrypted")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compression(method, tmp_path):
    with zipfile.ZipFile(tmp_path / "x.zip", "w", method) as file:
        file.writestr("a.txt", b"a")
    refused(tmp_path / "x.zip", "a compression that is not read")


# === Names from elsewhere ===


@pytest.mark.parametrize("ending", ENDINGS)
def test_what_macos_adds_is_left_out(ending, tmp_path):
    members = {
        **FILES,
        "__MACOSX/model/._a.index": b"fork",
        "__MACOSX": None,
        "model/._a.index": b"fork",
    }
    out = unpack(make(tmp_path / f"x{ending}", members), tmp_path / "out")
    assert tree(out) == FILES


def test_chinese_windows_zip(tmp_path):
    # GBK bytes without the UTF-8 flag; both names have 8 bytes.
    archive = make(tmp_path / "x.zip", {"model/NAMENAME": b"1"})
    gbk = "\u4e2d\u6587\u8bcd\u8868".encode("gbk")
    archive.write_bytes(archive.read_bytes().replace(b"NAMENAME", gbk))
    out = unpack(archive, tmp_path / "out")
    assert tree(out) == {"model/\u4e2d\u6587\u8bcd\u8868": b"1"}


def test_chinese_utf8_names(tmp_path):
    for ending in ENDINGS:
        archive = make(tmp_path / f"x{ending}", {"\u8bcd\u8868.txt": b"1"})
        out = unpack(archive, tmp_path / f"out{ending}")
        assert tree(out) == {"\u8bcd\u8868.txt": b"1"}


@pytest.mark.parametrize(
    ("data", "name"),
    [
        ("\u4e2d\u6587".encode("gbk"), "\u4e2d\u6587"),
        (b"caf\xe9", "caf\u00e9"),  # Neither UTF-8 nor GB 18030.
    ],
)
def test_tar_names_that_are_not_utf8(data, name, tmp_path):
    archive = make(tmp_path / "x.tar", {"X" * len(data): b"1"})
    content = archive.read_bytes().replace(b"X" * len(data), data)
    header = bytearray(content[:512])
    header[148:156] = b"%06o\0 " % (256 + sum(header[:148]) + sum(header[156:512]))
    archive.write_bytes(bytes(header) + content[512:])
    assert tree(unpack(archive, tmp_path / "out")) == {name: b"1"}


# === Damage ===


@pytest.mark.parametrize("ending", [".tar.gz", ".zip"])
def test_cut_anywhere(ending, tmp_path):
    archive = make(tmp_path / f"x{ending}", {"a": random.Random(0).randbytes(600)})
    content = archive.read_bytes()
    for length in range(0, len(content), 7):
        archive.write_bytes(content[:length])
        refused(archive, "damaged or cut short")


def test_tar_cut_inside_a_file(tmp_path):
    archive = make(tmp_path / "x.tar", FILES)
    archive.write_bytes(archive.read_bytes()[:1000])
    refused(archive, "damaged or cut short")


@pytest.mark.parametrize("ending", [".tar.gz", ".zip"])
def test_wrong_checksum(ending, tmp_path):
    archive = make(tmp_path / f"x{ending}", {"a.txt": b"a" * 100})
    content = bytearray(archive.read_bytes())
    if ending == ".zip":
        for signature, offset in ((b"PK\x03\x04", 14), (b"PK\x01\x02", 16)):
            content[content.index(signature) + offset] ^= 1
    else:
        content[-8] ^= 1
    archive.write_bytes(content)
    refused(archive, "damaged or cut short .*CRC")


@pytest.mark.parametrize("ending", ENDINGS)
def test_web_page_in_place_of_an_archive(ending, tmp_path):
    (tmp_path / f"x{ending}").write_text("<html>Please log in</html>")
    refused(tmp_path / f"x{ending}", "damaged or cut short")


@pytest.mark.parametrize("ending", ENDINGS)
def test_mutations(ending, tmp_path):
    generator = random.Random(2)
    archive = make(tmp_path / f"x{ending}", FILES)
    content = archive.read_bytes()
    for number in range(150):
        changed = bytearray(content)
        for _ in range(generator.choice([1, 3])):
            changed[generator.randrange(len(changed))] = generator.choice([0, 55, 255])
        archive.write_bytes(changed)
        before = set(tmp_path.iterdir())
        try:
            unpack(archive, tmp_path / str(number))
        except ArchiveError:
            assert set(tmp_path.iterdir()) == before
