"""Files from elsewhere: archives, releases by pooch, the Hub by huggingface_hub."""

import contextlib
import glob
import gzip
import itertools
import os
import pathlib
import posixpath
import shutil
import tarfile
import warnings
import zipfile
import zlib
from typing import Any
from urllib.parse import urlsplit

from albert_tf.checkpoints.checkpoint import Checkpoint
from albert_tf.checkpoints.formats import bundle, huggingface, keras_model
from albert_tf.checkpoints.layout import (
    CheckpointError,
    name_damage,
)
from albert_tf.checkpoints.releases import RELEASES, Release
from albert_tf.extras import import_extra
from albert_tf.files import FORMER, HUB, temporary_directory, write_json
from albert_tf_lite.archives import check_expansion, check_zip
from albert_tf_lite.errors import AlbertError, first_line, listed
from albert_tf_lite.pointers import check_downloaded

ARCHIVES = (".tar.gz", ".tgz", ".tar", ".zip")
TIMEOUT_SECONDS = 10, 30  # To connect, and between two packets.
RETRIES = 3


def unpack(archive: pathlib.Path, directory: pathlib.Path) -> None:
    """Unpack an archive without files whose names lead out of the directory.

    Raise if it expands to more than 20 times its size.
    """
    check_downloaded(archive)
    with name_damage(
        archive,
        # The standard library raises these for truncated and encrypted files.
        shutil.ReadError,
        tarfile.TarError,
        zipfile.BadZipFile,
        zlib.error,
        gzip.BadGzipFile,
        EOFError,
        RuntimeError,
    ):
        if archive.suffix == ".zip":
            check_zip(archive)
            shutil.unpack_archive(archive, directory)
        else:
            _unpack_tar(archive, directory)


def _unpack_tar(archive: pathlib.Path, directory: pathlib.Path) -> None:
    """Unpack a tar archive, each member after its check."""
    # Absent before Python 3.11.4.
    has_filters = hasattr(tarfile, "data_filter")
    options: Any = {"filter": "data"} if has_filters else {}
    expanded = 0
    with tarfile.open(archive) as tar:
        for member in tar:
            expanded += tarfile.BLOCKSIZE + member.size
            check_expansion(archive, expanded)
            # Without filters no link is safe: several may lead out together.
            is_safe = has_filters or member.isreg() or member.isdir()
            if not is_safe or _leads_out(member.name):
                raise tarfile.ExtractError(
                    f"{member.name!r} leads out of its directory, or is no file"
                )
            tar.extract(member, directory, **options)


def _leads_out(path: str) -> bool:
    """Return whether a path in an archive is absolute or above its directory."""
    normal = posixpath.normpath(path)
    return normal.startswith(("/", "../")) or normal == ".."


# === The Hugging Face Hub ===

# Every form that is read, and no weights of Flax, ONNX and TensorFlow 2.
_HUB_FILES = ["*.json", "*.txt", "*.model", "assets/**", "*.safetensors", "*.keras"]
_HUB_FILES += ["model*.weights.h5", "task.weights.h5", "*.index", "*.data-*-of-*"]


def fetch_from_hub(path: str, **options: Any) -> pathlib.Path:
    """Return the folder with the files of `"hf://user/name@revision"`."""
    huggingface_hub = import_extra("huggingface_hub")
    name, _, revision = path.removeprefix(HUB).partition("@")
    options["revision"] = revision or None
    download = huggingface_hub.snapshot_download
    folder = pathlib.Path(download(name, allow_patterns=_HUB_FILES, **options))
    # Many repositories have their weights in both formats.
    if _missing_weights(folder):
        download(name, allow_patterns=["pytorch_model*.bin"], **options)
    # Without network, or after an interruption, a part of the files is in the cache.
    if problem := _missing_weights(folder):
        raise FileNotFoundError(
            f"{path} is incomplete in the cache: {problem} If a download was "
            "interrupted, run the same again with a connection to the Hub. Weights "
            "for Flax and TensorFlow 2 are not read."
        )
    return folder


def _missing_weights(folder: pathlib.Path) -> str:
    """Return which file of weights a folder lacks, "" if it is complete."""
    # Some repositories have them in another folder.
    places = (folder, *folder.glob("*/"), *folder.glob("*/*/"))
    formats: tuple[Any, ...] = (huggingface, bundle, keras_model)
    has_weights = False
    for format_, place in itertools.product(formats, places):
        for path in format_.find(place):
            try:
                format_.files_of(path)
            except FileNotFoundError as error:
                return str(error)
            has_weights = True
    if has_weights:
        return ""
    names = sorted(file.name for file in folder.iterdir())
    return f"{folder} has no weights, only {listed(names)}."


def interruption_hint(folder: pathlib.Path) -> str:
    """Return advice for a folder with a part of its files, else ""."""
    # Where the client of the Hub keeps incomplete files, for folders and for its cache.
    places = (folder / ".cache" / "huggingface", folder.parent.parent / "blobs")
    if any(any(place.rglob("*.incomplete")) for place in places):
        return " A download from the Hub was interrupted. Run it again."
    if any(folder.parent.glob(f".{glob.escape(folder.name)}.*.part/{FORMER}")):
        return " A process was killed while it wrote there. Write it again."
    if any(folder.glob("*config*.json")):
        return " The weights are missing. Download or copy them into it."
    return ""


# === Releases ===


def download_release(name: str, progress: bool = False) -> pathlib.Path:
    """Download a release, check it and keep it in the cache.

    The cache is the folder `ALBERT_TF_CACHE`, by default `~/.cache/albert_tf`. An
    archive of the same name in it is used without network. `ALBERT_TF_MIRROR` names
    another server. If that does not answer, mirrors on the Hugging Face Hub are tried.

    Args:
        name: string, a name of `RELEASES`.
        progress: bool. Show a progress bar.

    Returns:
        The folder with the checkpoint, its config, and its vocabulary if the archive
        has one. A mirror has the same weights in the Hugging Face layout.

    Raises:
        AlbertError: if there is no release of that name, or no address for it.
        ImportError: if pooch is not installed.
        ConnectionError: if neither the archive nor a mirror can be downloaded.
        CheckpointError: if the archive is damaged or does not hold the release.

    Example:
    ```python
    folder = albert_tf.checkpoints.download_release("albert_tiny_zh")
    ```
    """
    if name not in RELEASES:
        raise AlbertError(
            f"There is no release named {name!r}. Known releases: {', '.join(RELEASES)}"
        )
    release = RELEASES[name]
    if release.url is None:
        raise AlbertError(
            f"{name} cannot be downloaded, because no public address of it is known. "
            "Pass the path of your copy instead."
        )
    user = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    path = os.environ.get("ALBERT_TF_CACHE") or f"{user}/albert_tf"
    cache = pathlib.Path(path).expanduser()
    folder = cache / name
    if _is_complete(folder):
        return folder
    for mirror in release.mirrors:
        # The cache of the Hub may lack it, or hold a part of it.
        with contextlib.suppress(ImportError, OSError):
            return _fetch_mirror(release, mirror, local_files_only=True)
    archive = cache / pathlib.PurePosixPath(urlsplit(release.url).path).name
    with temporary_directory(folder) as scratch:
        if not archive.exists():
            try:
                archive = _fetch(release, scratch, archive, progress)
            except ConnectionError as error:
                return _fetch_from_mirrors(release, error)
        _install(release, archive, folder, scratch / "unpacked")
    return folder


def _fetch(
    release: Release, folder: pathlib.Path, archive: pathlib.Path, progress: bool
) -> pathlib.Path:
    """Download an archive to a folder; `archive` is its path in the cache."""
    name, url = archive.name, str(release.url)
    if mirror := os.environ.get("ALBERT_TF_MIRROR"):
        url = mirror.rstrip("/") + urlsplit(url).path
    pooch = import_extra("pooch")
    fetcher = pooch.create(
        folder, "", registry={name: None}, urls={name: url}, retry_if_failed=RETRIES
    )
    downloader = pooch.HTTPDownloader(progress, timeout=TIMEOUT_SECONDS)
    try:
        return pathlib.Path(fetcher.fetch(name, downloader=downloader))
    except OSError as error:  # The exceptions of requests are OSErrors.
        raise ConnectionError(
            f"{url} could not be downloaded: {error}. Download it elsewhere and put it "
            f"at {archive}, or name another server by ALBERT_TF_MIRROR."
        ) from error


def _fetch_from_mirrors(release: Release, error: Exception) -> pathlib.Path:
    """Download a release from the first mirror that answers, or raise all errors."""
    for mirror in release.mirrors:
        warnings.warn(f"{error} Trying {HUB}{mirror}.", stacklevel=4)
        try:
            return _fetch_mirror(release, mirror)
        except (ImportError, OSError) as failure:
            error = ConnectionError(
                f"{error}\n{HUB}{mirror} could not be downloaded: "
                f"{first_line(failure)} HF_ENDPOINT can name another server."
            )
    raise error


def _fetch_mirror(release: Release, mirror: str, **options: Any) -> pathlib.Path:
    """Return the folder of a mirror on the Hub; raise if a file is missing."""
    folder = fetch_from_hub(HUB + mirror, **options)
    needed = {"config": ["config.json"]}
    if release.vocabulary:
        needed["vocabulary"] = ["vocab*.txt", "*.model", "tokenizer.json"]
    for kind, patterns in needed.items():
        if not any(any(folder.glob(pattern)) for pattern in patterns):
            raise FileNotFoundError(
                f"{folder} lacks the {kind} of {release.name}. Run the same again with "
                "a connection to the Hub."
            )
    return folder


def _is_complete(folder: pathlib.Path) -> bool:
    """Return whether a folder of the cache holds a release."""
    prefixes = bundle.find(folder)
    if not prefixes or not any(folder.glob("*config*.json")):
        return False
    try:
        bundle.open_files(prefixes[0])
    except (CheckpointError, FileNotFoundError):
        return False
    return True


def _install(
    release: Release, archive: pathlib.Path, folder: pathlib.Path, scratch: pathlib.Path
) -> None:
    """Unpack an archive, check that it is the release, and rename its folder."""
    unpack(archive, scratch)
    indexes = sorted(scratch.rglob("[!.]*.index"))
    if len(indexes) != 1:
        raise CheckpointError(
            f"{archive} holds {len(indexes)} TensorFlow checkpoints. Expected one."
        )
    checkpoint = Checkpoint(bundle.open_files(indexes[0]), release.config)
    # The name of the release with this index, `None` for others.
    holds = None if checkpoint.release is None else checkpoint.release.name
    expected: set[str | None] = {None}
    if release.index_sha256:
        expected = {release.name, *release.confused_with}
    if holds not in expected:
        raise CheckpointError(
            f"{archive} is not {release.name} as it was released: it holds "
            f"{holds or 'a checkpoint with another index'}."
        )
    # Windows moves no open files.
    del checkpoint
    source = indexes[0].parent
    if not any(source.glob("*config*.json")):
        write_json(source / "albert_config.json", release.config)
    # A copy that was interrupted, or lost files.
    if folder.exists() and not _is_complete(folder):
        folder.rename(scratch.with_name("incomplete"))
    try:
        os.replace(source, folder)
    except OSError:
        # Another process may have been faster.
        if not _is_complete(folder):
            raise
