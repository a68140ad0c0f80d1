"""Archives of checkpoints: unpacked inside the folder, or an error that names them."""

import io
import random
import tarfile
import zipfile

import pytest

from albert_tf.checkpoints import CheckpointError
from albert_tf.checkpoints.download import ARCHIVES, unpack

FILES = {"model/a.index": b"index" * 500, "model/词表.txt": b"{}"}
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


def assert_refused(archive):
    with pytest.raises(
        CheckpointError, match="is damaged, truncated"
    ) as error:
        unpack(archive, archive.parent / "out")
    assert str(archive) in str(error.value)


def test_unpacks_every_kind(tmp_path):
    for ending in ARCHIVES:
        unpack(make(tmp_path / f"x{ending}", FILES), tmp_path / ending)
        assert tree(tmp_path / ending) == FILES


@both
def test_nothing_is_written_outside_the_folder(ending, tmp_path):
    for name in ("../up.txt", "model/../../up.txt"):
        archive = make(tmp_path / f"x{ending}", {**FILES, name: b"bad"})
        if ending == ".tar.gz":
            assert_refused(archive)
        else:
            unpack(archive, tmp_path / "zip")
        assert not list(tmp_path.glob("up.txt"))


def test_links_out_of_the_folder(tmp_path):
    for kind, target in ((tarfile.SYMTYPE, "/etc/passwd"), (tarfile.LNKTYPE, "../x")):
        with tarfile.open(tmp_path / "x.tar.gz", "w:gz") as file:
            info = tarfile.TarInfo("model/link")
            info.type, info.linkname = kind, target
            file.addfile(info)
        assert_refused(tmp_path / "x.tar.gz")


@both
def test_truncated_archives_and_web_pages(ending, tmp_path):
    content = {"a": random.Random(0).randbytes(20_000)}
    archive = make(tmp_path / f"x{ending}", content)
    data = archive.read_bytes()
    archive.write_text("<html>Please log in</html>")
    assert_refused(archive)
    for length in range(0, 20_000, 1001):
        archive.write_bytes(data[:length])
        assert_refused(archive)
