"""Archives of given files."""

import io
import tarfile
import zipfile


def zipped(files):
    """Return a zip archive of {name: bytes}."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in files.items():
            file.writestr(name, content)
    return data.getvalue()


def write_archive(path, files):
    """Write an archive of {name: bytes}, a .zip or a .tar.gz, and return its path."""
    if path.name.endswith(".zip"):
        path.write_bytes(zipped(files))
        return path
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path
