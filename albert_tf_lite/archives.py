"""Refuse archives that expand to many times their size, as decompression bombs do."""

import os
import zipfile

from albert_tf_lite.errors import AlbertError


def check_expansion(path: str | os.PathLike, expanded: int, most: int = 20) -> None:
    """Raise if a file expands to more than `most` times its size and 1 MB.

    The environment variable ALBERT_TF_MAX_EXPANSION allows a larger number.
    """
    most = max(int(os.environ.get("ALBERT_TF_MAX_EXPANSION", 0)), most)
    if expanded > max(most * os.path.getsize(path), 1_000_000):
        raise AlbertError(
            f"{path} expands to more than {most} times its size, as a decompression "
            "bomb does. If you trust it, set ALBERT_TF_MAX_EXPANSION to a larger "
            "number."
        )


def check_zip(path: str | os.PathLike, most: int = 20) -> None:
    """Raise if a zip archive expands to more than `most` times its size."""
    with zipfile.ZipFile(path) as archive:
        check_expansion(path, sum(x.file_size for x in archive.infolist()), most)
