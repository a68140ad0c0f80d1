"""Unpacking archives from elsewhere: nothing is written outside of the folder.

An archive is a program for writing files. Its names, sizes and links are not to be
believed, so each is checked here, and what counts is what was really written.
"""

import gzip
import pathlib
import stat
import tarfile
import unicodedata
import zipfile
import zlib

from albert_tf.files import complete_directory

ENDINGS = (".tar.gz", ".tgz", ".tar", ".zip")

# The weights of the largest release are 0.9 GB, and 2.7 GB with optimizer slots.
MAX_BYTES = 8 * 2**30
MAX_MEMBERS = 10_000
MAX_DEPTH = 32
MAX_PADDING = 2**24
_CHUNK = 2**16

_ENCRYPTED = 0x1  # In the flags of a zip member; APPNOTE.TXT 4.4.4.
_UTF8 = 0x800
_ZIP_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

# What an archive of broken bytes makes the standard library raise.
_UNREADABLE = (
    tarfile.TarError,
    zipfile.BadZipFile,
    gzip.BadGzipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    ValueError,
    IndexError,
    OverflowError,
    RuntimeError,
)


class ArchiveError(ValueError):
    """An archive is damaged, or does what no archive of a model needs to do."""


def is_archive(path):
    """Whether a path has the ending of an archive that `unpack` reads."""
    return pathlib.Path(path).name.lower().endswith(ENDINGS)


def unpack(archive, directory, max_bytes=MAX_BYTES, progress=None):
    """Unpack a .tar.gz, .tgz, .tar or .zip, completely or not at all.

    What macOS adds (`__MACOSX/`, `._*`) is left out.

    Args:
        archive: string or path.
        directory: string or path of the folder to write; files of other names that
            are there already stay.
        max_bytes: int, how much to write at most.
        progress: optional function, called with the bytes written so far.

    Returns:
        The directory, a `pathlib.Path`.

    Raises:
        FileNotFoundError: if there is no such archive.
        ArchiveError: if it is damaged, has another ending, holds a link, a device,
            a name that leads out of the folder, two files of one name, an encrypted
            file, or more than `max_bytes` or `MAX_MEMBERS`. Nothing is left behind.
    """
    archive, directory = pathlib.Path(archive), pathlib.Path(directory)
    if not archive.is_file():
        raise FileNotFoundError(f"There is no archive {archive}.")
    if not is_archive(archive):
        raise ArchiveError(
            f"{archive} does not end in any of {', '.join(ENDINGS)}; other archives "
            "are not read."
        )
    members = _zip_members if archive.name.lower().endswith(".zip") else _tar_members
    with complete_directory(directory) as temporary:
        try:
            _write_all(members(archive), temporary, max_bytes, progress)
        except ArchiveError as error:
            raise ArchiveError(f"{archive}: {error}. Nothing was unpacked.") from None
        except _UNREADABLE as error:
            raise ArchiveError(
                f"{archive} is damaged or cut short ({error or type(error).__name__})."
                " Download it again. Nothing was unpacked."
            ) from error
    return directory


def _write_all(members, directory, max_bytes, progress):
    """Write (name, open file or `None` for a folder) as the members come."""
    seen, written = {}, 0
    for number, (name, source) in enumerate(members, start=1):
        if number > MAX_MEMBERS:
            raise ArchiveError(f"it holds more than {MAX_MEMBERS} files")
        parts = _safe_parts(name)
        if not parts or _is_macos(parts):
            continue
        path = directory.joinpath(*parts)
        if source is None:
            _claim(seen, parts, "folder", name)
            path.mkdir(parents=True, exist_ok=True)
            continue
        _claim(seen, parts, "file", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as target:
            while chunk := source.read(_CHUNK):
                written += len(chunk)
                if written > max_bytes:
                    raise ArchiveError(
                        f"it unpacks to more than {max_bytes} bytes, which is the limit"
                    )
                target.write(chunk)
                if progress is not None:
                    progress(written)


def _claim(seen, parts, kind, name):
    """Note that a member takes this place; two may share only a folder.

    Names that differ in case or in how their accents are written are one file on
    macOS and Windows.
    """
    keys = [unicodedata.normalize("NFC", part).casefold() for part in parts]
    for depth in range(1, len(keys)):
        if seen.setdefault(tuple(keys[:depth]), "folder") == "file":
            raise ArchiveError(f"{name!r} lies inside a file")
    if seen.get(tuple(keys)) not in (None, kind) or (
        kind == "file" and tuple(keys) in seen
    ):
        raise ArchiveError(f"it holds two files named {name!r}")
    seen[tuple(keys)] = kind


def _safe_parts(name):
    """The parts of a name that stays inside of the folder.

    Backslashes and drive letters count on Windows, so they count everywhere.
    """
    parts = [part for part in name.replace("\\", "/").split("/") if part != "."]
    if name.startswith(("/", "\\")) or ".." in parts or _has_drive(name):
        raise ArchiveError(f"{name!r} leads out of the folder")
    parts = [part for part in parts if part]
    if any(len(part.encode("utf-8", "replace")) > 255 for part in parts) or (
        len(parts) > MAX_DEPTH
    ):
        raise ArchiveError(f"the name {name[:60]!r}... is too long")
    if any(unicodedata.category(char).startswith("C") for char in name):
        # NUL, line breaks, lone surrogates: no file system takes them all.
        raise ArchiveError(f"the name {name!r} has characters no file name has")
    return parts


def _has_drive(name):
    return len(name) > 1 and name[1] == ":" and name[0].isascii() and name[0].isalpha()


def _is_macos(parts):
    return parts[0] == "__MACOSX" or parts[-1].startswith("._")


def _tar_members(archive):
    compressed = not archive.name.lower().endswith(".tar")
    with (
        (gzip.open if compressed else open)(archive, "rb") as file,
        tarfile.open(
            fileobj=_Forward(file),
            mode="r:",
            encoding="utf-8",
            errors="surrogateescape",
        ) as tar,
    ):
        for member in tar:
            name = _decoded(member.name)
            if member.isdir():
                yield name, None
            elif member.isreg() and not member.issparse():
                yield name, tar.extractfile(member)
            else:
                raise ArchiveError(f"{name!r} is a link or a device, not a file")
        # The checksum of a .gz is behind the tar, which is padded to 10 kB at least.
        for _ in range(MAX_PADDING // _CHUNK):
            if not file.read(_CHUNK):
                return
        raise ArchiveError("it goes on after its end")


class _Forward:
    """A file read once, from front to back, and never much at a time.

    `tarfile` reads a member's long name, whose length the archive states, in one
    piece: 8 GB of zeros take 8 MB of archive. No name is longer than a chunk.
    """

    def __init__(self, file):
        self.file, self.position = file, 0

    def tell(self):
        return self.position

    def read(self, size):
        if not 0 <= size <= 2 * _CHUNK:
            raise tarfile.ReadError("a header in it has an impossible size")
        data = self.file.read(size)
        self.position += len(data)
        return data

    def seek(self, position):
        if position < self.position:
            raise tarfile.ReadError("a header in it points backwards")
        while self.position < position:
            if not self.read(min(_CHUNK, position - self.position)):
                break


def _decoded(name):
    """A tar's name, whose bytes were not UTF-8 if it has surrogates."""
    data = name.encode("utf-8", "surrogateescape")
    return _text(data) if _has_surrogates(name) else name


def _has_surrogates(name):
    return any("\ud800" <= char <= "\udfff" for char in name)


def _text(data):
    """Bytes of a file name as text: UTF-8, else what Chinese Windows writes."""
    for encoding in ("utf-8", "gb18030"):
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    return data.decode("latin-1")


def _zip_members(archive):
    with zipfile.ZipFile(archive) as file:
        for info in file.infolist():
            name = _zip_name(info)
            if info.flag_bits & _ENCRYPTED:
                raise ArchiveError(f"{name!r} is encrypted")
            # Zero where the archive was made on Windows.
            kind = stat.S_IFMT(info.external_attr >> 16)
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise ArchiveError(f"{name!r} is a link or a device, not a file")
            if info.compress_type not in _ZIP_METHODS:
                raise ArchiveError(f"{name!r} has a compression that is not read")
            if not 0 <= info.header_offset < archive.stat().st_size:
                raise zipfile.BadZipFile(f"{name!r} lies outside of the archive")
            if info.is_dir():
                yield name, None
            else:
                with file.open(info) as source:
                    yield name, source


def _zip_name(info):
    """The name as it was meant.

    Without the UTF-8 flag `zipfile` reads code page 437, and Windows wrote that of
    its country.
    """
    if info.flag_bits & _UTF8:
        return info.orig_filename
    return _text(info.orig_filename.encode("cp437"))
