"""Unpacking archives from elsewhere: completely or not at all, and only inside."""

import errno
import pathlib
import tarfile
import zipfile
import zlib

from albert_tf.checkpoints.layout import first_line
from albert_tf.files import complete_directory
from albert_tf_lite.errors import AlbertError

ENDINGS = (".tar.gz", ".tgz", ".tar", ".zip")
# The weights of the largest release are 0.9 GB, and 2.7 GB with optimizer slots.
MAX_BYTES = 8 * 2**30
_CHUNK = 2**20
_UTF8 = 0x800  # In the flags of a zip member; APPNOTE.TXT 4.4.4.

# What the standard library raises on archives that are cut short, changed, encrypted
# or of another kind. An `OSError` of the system has a number, one of gzip's has none.
_DAMAGE = (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, OSError)
_DAMAGE += (RuntimeError, NotImplementedError)


class ArchiveError(AlbertError):
    """An archive is damaged, or does what no archive of a model needs to do."""


def is_archive(path):
    """Whether a path has the ending of an archive that `unpack` reads."""
    return path.name.lower().endswith(ENDINGS)


def unpack(archive, directory):
    """Unpack a .tar.gz, .tgz, .tar or .zip, completely or not at all.

    What macOS adds (`__MACOSX/`, `._*`) is left out.

    Args:
        archive: path.
        directory: path of the folder to write; files of other names that are there
            already stay.

    Returns:
        The directory.

    Raises:
        ArchiveError: if it is damaged or encrypted, holds a device, a name that leads
            out of the folder, or more than `MAX_BYTES`. Nothing is left behind.
    """
    extract = _unzip if archive.name.lower().endswith(".zip") else _untar
    with complete_directory(directory) as temporary:
        try:
            extract(archive, temporary)
        except _DAMAGE as error:
            # A zip with a gap makes `zipfile` seek to a negative position (EINVAL); a
            # full disk and the like are not damage.
            if getattr(error, "errno", None) not in (None, errno.EINVAL):
                raise
            raise ArchiveError(
                f"{archive} is damaged, cut short or not safe to unpack "
                f"({first_line(error)}). Download it again. Nothing was unpacked."
            ) from error
    return directory


def _untar(archive, directory):
    # The bytes of names in other encodings are kept, for `_text`.
    names = {"encoding": "utf-8", "errors": "surrogateescape"}
    mode = "r:" if archive.name.lower().endswith(".tar") else "r:gz"
    with tarfile.open(archive, mode, **names) as tar:
        written = 0
        for member in tar:
            written = _add(written, member.size)
            name = _text(member.name.encode("utf-8", "surrogateescape"))
            if not _is_macos(name):
                tar.extract(member.replace(name=name), directory, filter="data")
        # The checksum of a .gz is behind the tar.
        while chunk := tar.fileobj.read(_CHUNK):
            written = _add(written, len(chunk))


def _unzip(archive, directory):
    with zipfile.ZipFile(archive) as file:
        written = 0
        for member in file.infolist():
            written = _add(written, member.file_size)
            # Without the UTF-8 flag `zipfile` reads code page 437, and Windows wrote
            # that of its country.
            if not member.flag_bits & _UTF8:
                member.filename = _text(member.orig_filename.encode("cp437"))
            if ".." in pathlib.PurePath(member.filename).parts:
                raise zipfile.BadZipFile(f"{member.filename!r} leads out of the folder")
            if not _is_macos(member.filename):
                file.extract(member, directory)


def _add(written, size):
    if written + size > MAX_BYTES:
        raise zipfile.BadZipFile(f"it unpacks to more than {MAX_BYTES} bytes")
    return written + size


def _is_macos(name):
    path = pathlib.PurePath(name)
    return "__MACOSX" in path.parts or path.name.startswith("._")


def _text(data):
    """Bytes of a file name as text: UTF-8, else what Chinese Windows writes."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("gb18030", "replace")
