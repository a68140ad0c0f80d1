"""Archives of checkpoints: unpacked completely and inside the folder, or not at all."""

import io
import random
import tarfile
import zipfile

import pytest

from albert_tf.checkpoints import CheckpointError
from albert_tf.checkpoints.download import is_archive, unpack

ENDINGS = (".tar.gz", ".tgz", ".tar", ".zip")
FILES = {"model/a.index": b"index" * 500, "model/sub/config.json": b"{}"}
both = pytest.mark.parametrize("ending", [".tar.gz", ".zip"])


def make(path, members):
    """Write an archive of {name: bytes}."""
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


def assert_refused(archive, message):
    """Assert that unpacking raises one sentence and leaves nothing behind."""
    before = set(archive.parent.iterdir())
    with pytest.raises(CheckpointError, match=message) as error:
        unpack(archive, archive.parent / "out")
    assert str(archive) in str(error.value)
    assert set(archive.parent.iterdir()) == before


def test_unpacks_and_keeps_other_files(tmp_path):
    members = {
        **FILES,
        "词表.txt": b"1",
        "__MACOSX/model/._a.index": b"fork",
        "model/._a.index": b"fork",
    }
    for ending in ENDINGS:
        out = tmp_path / ending / "out"
        out.mkdir(parents=True)
        (out / "mine.txt").write_text("mine")
        archive = make(tmp_path / f"x{ending}", members)
        assert is_archive(archive) and unpack(archive, out) == out
        assert tree(out) == {**FILES, "词表.txt": b"1", "mine.txt": b"mine"}
    assert not is_archive(tmp_path / "a.index")


@both
def test_nothing_is_written_outside_the_folder(ending, tmp_path):
    for name in ("../up.txt", "model/../../up.txt"):
        archive = make(tmp_path / f"x{ending}", {**FILES, name: b"bad"})
        if ending == ".tar.gz":
            assert_refused(archive, "outside")
        else:
            unpack(archive, tmp_path / "zip")
        assert not list(tmp_path.glob("up.txt"))
    archive = make(tmp_path / f"x{ending}", {"/etc/albert_tf": b"1"})
    assert tree(unpack(archive, tmp_path / "out")) == {"etc/albert_tf": b"1"}


def test_links_out_of_the_folder(tmp_path):
    for kind, target in ((tarfile.SYMTYPE, "/etc/passwd"), (tarfile.LNKTYPE, "../x")):
        with tarfile.open(tmp_path / "x.tar.gz", "w:gz") as file:
            info = tarfile.TarInfo("model/link")
            info.type, info.linkname = kind, target
            file.addfile(info)
        assert_refused(tmp_path / "x.tar.gz", "not safe to unpack")


def test_a_zip_of_chinese_windows(tmp_path):
    # GBK bytes without the UTF-8 flag; both names have 8 bytes.
    archive = make(tmp_path / "x.zip", {"model/NAMENAME": b"1"})
    content = archive.read_bytes().replace(b"NAMENAME", "中文词表".encode("gbk"))
    archive.write_bytes(content)
    assert tree(unpack(archive, tmp_path / "out")) == {"model/中文词表": b"1"}


@both
def test_cut_and_changed_archives(ending, tmp_path):
    archive = make(tmp_path / f"x{ending}", {"a": random.Random(0).randbytes(600)})
    content = archive.read_bytes()
    archive.write_text("<html>Please log in</html>")
    assert_refused(archive, "damaged, cut short")
    for length in range(0, len(content), 101):
        archive.write_bytes(content[:length])
        assert_refused(archive, "damaged, cut short")
    archive.write_bytes(content.replace(content[200:203], b"abc"))
    assert_refused(archive, "damaged, cut short")


def test_a_zip_that_lacks_a_part_of_its_middle(tmp_path):
    archive = make(tmp_path / "x.zip", {"a": random.Random(0).randbytes(600), "b": b""})
    content = archive.read_bytes()
    archive.write_bytes(content[:100] + content[500:])
    assert_refused(archive, "damaged, cut short")
