"""Files from elsewhere: archives, releases by pooch, the Hub by huggingface_hub."""

from __future__ import annotations

import contextlib
import errno
import os
import pathlib
import shutil
import tarfile
import tempfile
import warnings
import zipfile
import zlib
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from albert_tf.checkpoints.config import check_sizes
from albert_tf.checkpoints.formats import TensorFlowBundle
from albert_tf.checkpoints.layout import CheckpointError, first_line
from albert_tf.checkpoints.releases import RELEASES, Release
from albert_tf.files import complete_directory, make_folder, write_json
from albert_tf_lite.errors import AlbertError, MissingPackageError

TIMEOUT_SECONDS = 10, 30  # To connect, and between two packets.
RETRIES = 3
HUB = "hf://"
# Every form that is read, and no weights of Flax, ONNX and TensorFlow 2.
_HUB_FILES = ["*.json", "*.txt", "*.model", "assets/**", "*.safetensors", "*.keras"]
_HUB_FILES += ["model.weights*.h5", "task.weights.h5", "*.index", "*.data-*-of-*"]
_HUB_WEIGHTS = ("*.safetensors", "*.h5", "*.keras", "*.index")
_TORCH_WEIGHTS = "pytorch_model*.bin"

# === Archives ===

# The standard library raises these for archives that are truncated, changed, encrypted
# or of another kind.
_DAMAGE = (
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error),
    *(EOFError, OSError, RuntimeError, UnicodeDecodeError),
)


def is_archive(path: pathlib.Path) -> bool:
    """Return whether `unpack` reads files of this name."""
    return path.name.lower().endswith((".tar.gz", ".tgz", ".tar", ".zip"))


def unpack(archive: pathlib.Path, directory: pathlib.Path) -> pathlib.Path:
    """Unpack a .tar.gz, .tgz, .tar or .zip, completely or not at all.

    Raises:
        CheckpointError: if the archive is damaged or encrypted, or a name in it leads
            out of the folder.
    """
    extract = _unzip if archive.suffix.lower() == ".zip" else _untar
    with complete_directory(directory) as temporary:
        try:
            extract(archive, temporary)
        except _DAMAGE as error:
            # zipfile seeks to a negative position (EINVAL) if a part is missing. Other
            # numbers are of the system, such as a full disk.
            if getattr(error, "errno", None) not in (None, errno.EINVAL):
                raise
            raise CheckpointError(
                f"{archive} is damaged, cut short or not safe to unpack "
                f"({first_line(error)}). Download it again. Nothing was unpacked."
            ) from error
    return directory


def _untar(archive: pathlib.Path, directory: pathlib.Path) -> None:
    with tarfile.open(archive) as file:
        # A generator, because a list would read the compressed file twice.
        members = (x for x in file if not _is_from_macos(x.name))
        file.extractall(directory, members, filter="data")
        # The checksum of gzip follows the last member.
        while file.fileobj.read(2**20):
            pass


def _unzip(archive: pathlib.Path, directory: pathlib.Path) -> None:
    # Windows in Chinese writes names in GB 18030, without a flag that tells.
    try:
        file = zipfile.ZipFile(archive, metadata_encoding="utf-8")
    except UnicodeDecodeError:
        file = zipfile.ZipFile(archive, metadata_encoding="gb18030")
    with file:
        names = [x for x in file.namelist() if not _is_from_macos(x)]
        file.extractall(directory, names)


def _is_from_macos(name: str) -> bool:
    return "__MACOSX/" in name or pathlib.PurePath(name).name.startswith("._")


# === The Hugging Face Hub ===


def is_on_hub(path: Any) -> bool:
    """Return whether a path names a repository of the Hub."""
    return isinstance(path, str) and path.startswith(HUB)


def fetch_from_hub(path: str, **options: Any) -> pathlib.Path:
    """Download `"hf://user/name@revision"` unless it is cached, and return the folder.

    Raises:
        ImportError: if huggingface_hub is not installed.
        OSError: if the repository cannot be downloaded or holds no weights.
    """
    try:
        import huggingface_hub
    except ImportError as error:
        raise MissingPackageError(
            f"{path} is downloaded by huggingface_hub. Run: pip install 'albert-tf[hf]'"
        ) from error
    name, _, revision = path.removeprefix(HUB).partition("@")
    options["revision"] = revision or None
    download = huggingface_hub.snapshot_download
    folder = pathlib.Path(download(name, allow_patterns=_HUB_FILES, **options))
    # Many repositories have their weights in both formats.
    if not any(any(folder.glob(pattern)) for pattern in _HUB_WEIGHTS):
        download(name, allow_patterns=[_TORCH_WEIGHTS], **options)
        if not any(folder.glob(_TORCH_WEIGHTS)):
            raise FileNotFoundError(f"{path} holds no weights that can be read.")
    return folder


# === Releases ===


def cache_folder() -> pathlib.Path:
    """Return `ALBERT_TF_CACHE`, by default `albert_tf` in the user's cache folder."""
    if folder := os.environ.get("ALBERT_TF_CACHE"):
        return pathlib.Path(folder).expanduser()
    user = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return pathlib.Path(user).expanduser() / "albert_tf"


def archive_address(release: Release) -> str:
    """Return the address of an archive, on the server `ALBERT_TF_MIRROR` if set."""
    mirror, url = os.environ.get("ALBERT_TF_MIRROR"), str(release.url)
    if not mirror:
        return url
    if not mirror.startswith(("http://", "https://")):
        raise AlbertError(
            f"ALBERT_TF_MIRROR is {mirror!r}. Expected an address such as "
            "https://mirror.example.com"
        )
    return mirror.rstrip("/") + urlsplit(url).path


def download_release(
    name: str,
    cache: str | os.PathLike | None = None,
    progress: Callable[[int, int | None], None] | None = None,
) -> pathlib.Path:
    """Download a release, check it and keep it in the cache.

    If its address does not answer, its mirrors on the Hugging Face Hub are tried in
    turn, with a warning. An archive of the same name in the cache folder is used
    without network.

    Args:
        name: string, a name of `RELEASES`.
        cache: optional path. By default `cache_folder()`.
        progress: optional function, called with the bytes received and the total
            (`None` if the server does not send it).

    Returns:
        The folder with the checkpoint, its config, and its vocabulary if the archive
        has one. A mirror has the same weights in the Hugging Face layout.

    Raises:
        AlbertError: if there is no release of that name, or no address for it.
        ImportError: if pooch is not installed.
        ConnectionError: if neither the archive nor a mirror can be downloaded.
        FileExistsError: if the folder of the release holds other files.
        CheckpointError, FileNotFoundError: if the archive does not hold the release.

    Example:
    ```python
    folder = albert_tf.checkpoints.download_release("albert_tiny_zh")
    ```
    """
    if name not in RELEASES:
        raise AlbertError(
            f"There is no release named {name!r}. The releases: {', '.join(RELEASES)}"
        )
    release = RELEASES[name]
    if release.url is None:
        raise AlbertError(
            f"No public address of {name} is known, so it cannot be downloaded. "
            "Give the path of your copy instead."
        )
    cache = pathlib.Path(cache) if cache is not None else cache_folder()
    folder = cache / name
    if _is_complete(folder):
        return folder
    for mirror in release.mirrors:
        with contextlib.suppress(ImportError, OSError):
            return fetch_from_hub(HUB + mirror, local_files_only=True)
    make_folder(cache)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FileExistsError(
            f"{folder} exists and holds no checkpoint. Move it elsewhere."
        )
    given = cache / pathlib.PurePosixPath(urlsplit(release.url).path).name
    with tempfile.TemporaryDirectory(prefix=f".{name}.", dir=cache) as scratch:
        archive, origin = given, "the cache"
        if not given.exists():
            origin = archive_address(release)
            archive = pathlib.Path(scratch, given.name)
            try:
                _fetch(origin, archive, given, progress)
            except ConnectionError as error:
                return _fetch_from_mirrors(release, error)
        try:
            _install(release, archive, folder, pathlib.Path(scratch))
        except (CheckpointError, FileNotFoundError) as error:
            message = f"{error} (From {origin}; nothing was installed.)"
            raise type(error)(message) from error
    return folder


def _is_complete(folder: pathlib.Path) -> bool:
    # The folder gets its name when all files are in it.
    return any(folder.glob("*.index"))


def _fetch(
    url: str, archive: pathlib.Path, given: pathlib.Path, progress: Callable | None
) -> None:
    try:
        import pooch
    except ImportError as error:
        raise MissingPackageError(
            f"{url} is downloaded by pooch. Run: pip install 'albert-tf[hf]'"
        ) from error
    fetcher = pooch.create(
        archive.parent,
        base_url="",
        registry={archive.name: None},
        urls={archive.name: url},
        retry_if_failed=RETRIES,
    )
    bar = _ProgressBar(progress) if progress else False
    downloader = pooch.HTTPDownloader(bar, timeout=TIMEOUT_SECONDS)
    try:
        fetcher.fetch(archive.name, downloader=downloader)
    except OSError as error:  # The exceptions of requests are OSErrors.
        raise ConnectionError(
            f"{url} could not be downloaded: {error}. Download it elsewhere, for "
            f"example in a browser, put the file at {given} and call again. "
            "ALBERT_TF_MIRROR can name another server."
        ) from error


class _ProgressBar:
    """The interface that pooch expects of a progress bar."""

    total = None

    def __init__(self, progress: Callable) -> None:
        self._progress, self._done = progress, 0

    def update(self, count: int) -> None:
        self._done += count
        self._progress(self._done, self.total or None)

    def reset(self) -> None:
        self._done = 0

    def close(self) -> None:
        pass


def _fetch_from_mirrors(release: Release, error: Exception) -> pathlib.Path:
    """Download a release from the first mirror that answers, or raise all errors."""
    messages = [str(error)]
    for mirror in release.mirrors:
        warnings.warn(
            f"{messages[-1].partition(': ')[0]}. Trying {HUB}{mirror}.", stacklevel=4
        )
        try:
            return fetch_from_hub(HUB + mirror)
        except (ImportError, OSError) as failure:
            reason = first_line(failure)
            messages.append(f"{HUB}{mirror} could not be downloaded: {reason}")
    if release.mirrors:
        messages.append(
            "HF_ENDPOINT can name another server than huggingface.co. A folder with "
            "the files of such a repository, for example from ModelScope, loads by its "
            "path."
        )
    raise ConnectionError("\n".join(messages)) from error


def _install(
    release: Release, archive: pathlib.Path, folder: pathlib.Path, scratch: pathlib.Path
) -> None:
    """Unpack an archive, check that it is the release, and rename its folder."""
    unpacked = unpack(archive, scratch / "unpacked")
    found = sorted(unpacked.rglob("*.index"))
    if len(found) != 1:
        names = [str(path.relative_to(unpacked)) for path in found]
        raise CheckpointError(
            f"{archive.name} should hold one TensorFlow checkpoint, and holds "
            f"{len(found)}: {names}"
        )
    bundle, config = TensorFlowBundle(found[0]), release.config
    holds = bundle.release and bundle.release.name
    known = {release.name, *release.confused_with} if release.index_sha256 else {None}
    if holds not in known:
        raise CheckpointError(
            f"{archive.name} is not {release.name} as it was released: it holds "
            f"{holds or 'a checkpoint with another index'}."
        )
    check_sizes(bundle.find_layout(), config, bundle.shapes, archive.name, release.name)
    source = found[0].parent
    if not any(source.glob("*config*.json")):
        write_json(source / "albert_config.json", config)
    try:
        os.replace(source, folder)
    except OSError:
        # Another process may have been faster.
        if not _is_complete(folder):
            raise
        shutil.rmtree(source)
