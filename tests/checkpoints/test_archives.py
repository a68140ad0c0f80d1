import io
import random
import tarfile
import zipfile

import pytest

from albert_tf.checkpoints import archives
from albert_tf.checkpoints.archives import ArchiveError, is_archive, unpack

ENDINGS = (".tar.gz", ".tgz", ".tar", ".zip")
FILES = {"model/a.index": b"index" * 500, "model/sub/config.json": b"{}"}


def make(path, members):
    """An archive of {name: bytes}."""
    if path.name.endswith(".zip"):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
            for name, content in members.items():
                file.writestr(name, content)
        return path
    with tarfile.open(path, "w" if path.name.endswith(".tar") else "w:gz") as file:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            file.addfile(info, io.BytesIO(content))
    return path


def tree(directory):
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }


def refused(archive, message):
    """Unpacking is refused with one sentence, and leaves nothing behind."""
    before = set(archive.parent.iterdir())
    with pytest.raises(ArchiveError, match=message) as error:
        unpack(archive, archive.parent / "out")
    assert str(archive) in str(error.value)
    assert set(archive.parent.iterdir()) == before


@pytest.mark.parametrize("ending", [".tar.gz", ".zip"])
def test_unpacks_and_leaves_other_files(ending, tmp_path):
    out = tmp_path / "deep" / "out"
    out.mkdir(parents=True)
    (out / "mine.txt").write_text("mine")
    members = {
        **FILES,
        "词表.txt": b"1",
        "__MACOSX/model/._a.index": b"fork",
        "model/._a.index": b"fork",
    }
    archive = make(tmp_path / f"x{ending}", members)
    assert is_archive(archive) and unpack(archive, out) == out
    assert tree(out) == {**FILES, "词表.txt": b"1", "mine.txt": b"mine"}


def test_endings(tmp_path):
    names = ("zip", "a.gz", "a.index", "a.zip.part")
    assert not any(is_archive(tmp_path / name) for name in names)
    for ending in ENDINGS:
        archive = make(tmp_path / f"x{ending}", FILES)
        assert is_archive(archive)
        assert tree(unpack(archive, tmp_path / ending)) == FILES


@pytest.mark.parametrize("ending", [".tar.gz", ".zip"])
def test_names_that_lead_out_or_to_the_root(ending, tmp_path):
    for name in ("../up.txt", "model/../../up.txt"):
        archive = make(tmp_path / f"x{ending}", {**FILES, name: b"bad"})
        refused(archive, "outside|leads out")
    archive = make(tmp_path / f"x{ending}", {"/etc/albert_tf": b"1"})
    assert tree(unpack(archive, tmp_path / "out")) == {"etc/albert_tf": b"1"}


def test_links_out_and_devices(tmp_path):
    for kind, target in (
        (tarfile.SYMTYPE, "/etc/passwd"),
        (tarfile.LNKTYPE, "../x"),
        (tarfile.CHRTYPE, ""),
    ):
        with tarfile.open(tmp_path / "x.tar.gz", "w:gz") as file:
            info = tarfile.TarInfo("model/link")
            info.type, info.linkname = kind, target
            file.addfile(info)
        refused(tmp_path / "x.tar.gz", "not safe to unpack")


def test_limit_on_what_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "MAX_BYTES", 10**6)
    for ending in (".tar.gz", ".zip"):
        archive = make(tmp_path / f"x{ending}", {"zeros": bytes(10**6), "more": b"1"})
        refused(archive, "more than 1000000 bytes")


def test_chinese_windows_zip(tmp_path):
    # GBK bytes without the UTF-8 flag; both names have 8 bytes.
    archive = make(tmp_path / "x.zip", {"model/NAMENAME": b"1"})
    content = archive.read_bytes().replace(b"NAMENAME", "中文词表".encode("gbk"))
    archive.write_bytes(content)
    assert tree(unpack(archive, tmp_path / "out")) == {"model/中文词表": b"1"}


def test_chinese_windows_tar(tmp_path):
    archive = make(tmp_path / "x.tar", {"XXXX": b"1"})
    content = bytearray(archive.read_bytes())
    content[:4] = "中文".encode("gbk")
    content[148:156] = b"%06o\0 " % (256 + sum(content[:148]) + sum(content[156:512]))
    archive.write_bytes(content)
    assert tree(unpack(archive, tmp_path / "out")) == {"中文": b"1"}


@pytest.mark.parametrize("ending", [".tar.gz", ".zip"])
def test_cut_anywhere(ending, tmp_path):
    archive = make(tmp_path / f"x{ending}", {"a": random.Random(0).randbytes(600)})
    content = archive.read_bytes()
    archive.write_text("<html>Please log in</html>")
    refused(archive, "damaged, cut short")
    for length in range(0, len(content), 29):
        archive.write_bytes(content[:length])
        refused(archive, "damaged, cut short")


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
    refused(archive, "damaged, cut short .*CRC")


def test_an_encrypted_zip(tmp_path):
    archive = make(tmp_path / "x.zip", {"a.txt": b"secret"})
    content = bytearray(archive.read_bytes())
    content[6] |= 1
    content[content.index(b"PK\x01\x02") + 8] |= 1
    archive.write_bytes(content)
    refused(archive, "encrypted")
