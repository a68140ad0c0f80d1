"""Fetching a release: checked, unpacked, kept."""

import os
import pathlib
import shutil
import tempfile
import warnings
from urllib.parse import urlsplit

from albert_tf.checkpoints.archives import ArchiveError, unpack
from albert_tf.checkpoints.formats.bundle_index import read_index
from albert_tf.checkpoints.hub import HUB, fetch_from_hub, kept_of_hub
from albert_tf.checkpoints.layout import CheckpointError, first_line
from albert_tf.checkpoints.releases import RELEASES, identify
from albert_tf.files import make_folder, write_json
from albert_tf_lite.errors import AlbertError, MissingPackageError

TIMEOUT_SECONDS = 10, 30  # To connect, and between two pieces.
RETRIES = 3


def cache_folder():
    """Where releases are kept: `ALBERT_TF_CACHE`, or `albert_tf` in the user's cache.

    Returns:
        A `pathlib.Path`.
    """
    if folder := os.environ.get("ALBERT_TF_CACHE"):
        return pathlib.Path(folder).expanduser()
    user = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return pathlib.Path(user).expanduser() / "albert_tf"


def archive_address(release):
    """The address of a release's archive.

    `ALBERT_TF_MIRROR`, such as `http://127.0.0.1:8000`, takes the place of the
    scheme and host: for a mirror inside a network that cannot reach the original.

    Raises:
        AlbertError: if the variable is no http or https address.
    """
    mirror = os.environ.get("ALBERT_TF_MIRROR")
    if not mirror:
        return release.url
    if not mirror.startswith(("http://", "https://")):
        raise AlbertError(
            f"ALBERT_TF_MIRROR is {mirror!r}. Expected an address such as "
            "https://mirror.example.com"
        )
    return mirror.rstrip("/") + urlsplit(release.url).path


def download_release(name, cache=None, progress=None):
    """Fetch a release unless it was fetched before.

    Where its address does not answer, its mirrors on the Hugging Face Hub are tried in
    turn; `HF_ENDPOINT` can name another server for those. A warning says each step.

    An archive that someone put into the cache folder, under the name it has at its
    address, is used as it is.

    Args:
        name: string, a name of `RELEASES`.
        cache: optional string or path, in place of `cache_folder()`.
        progress: optional function, called with the bytes received so far and the
            bytes in all (`None` if the server does not say).

    Returns:
        The folder of the release, a `pathlib.Path`: the checkpoint, its config, and
        its vocabulary if the archive holds one. That of a mirror has the same weights
        in Hugging Face's form.

    Raises:
        AlbertError: if there is no release of that name, or no address for it.
        ImportError: if pooch is not installed.
        ConnectionError: if neither the archive nor a mirror can be fetched.
        FileExistsError: if other files have the place of the release.
        ArchiveError, CheckpointError: if what came is not the release.
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
    folder = cache / release.name
    if _is_there(folder):
        return folder
    for mirror in release.mirrors:
        if kept := kept_of_hub(mirror):
            return kept
    make_folder(cache)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FileExistsError(
            f"{folder} is in the way: it holds no checkpoint. Move it elsewhere."
        )
    given = cache / pathlib.PurePosixPath(urlsplit(release.url).path).name
    with tempfile.TemporaryDirectory(prefix=f".{release.name}.", dir=cache) as scratch:
        unpacked = pathlib.Path(scratch, "unpacked")
        if given.exists():
            _unpack_release(release, given, folder, unpacked)
            return folder
        archive = pathlib.Path(scratch, given.name)
        try:
            _fetch(release, archive, given, progress)
        except ConnectionError as error:
            return _from_mirrors(release, error)
        try:
            _unpack_release(release, archive, folder, unpacked)
        except (ArchiveError, CheckpointError) as error:
            url = archive_address(release)
            raise type(error)(f"{error} (From {url}; nothing was kept.)") from error
    return folder


def _is_there(folder):
    # The folder gets its name when all is in it.
    return any(folder.glob("*.index"))


def _fetch(release, archive, given, progress):
    try:
        import pooch
    except ImportError as error:
        raise MissingPackageError(
            f"{release.name} is fetched by pooch. Run: pip install 'albert-tf[hf]'"
        ) from error
    url = archive_address(release)
    fetcher = pooch.create(
        archive.parent,
        base_url="",
        registry={archive.name: None},
        urls={archive.name: url},
        retry_if_failed=RETRIES,
    )
    bar = _Bar(progress) if progress else False
    downloader = pooch.HTTPDownloader(bar, timeout=TIMEOUT_SECONDS)
    try:
        fetcher.fetch(archive.name, downloader=downloader)
    # Those of requests are errors of the system.
    except OSError as error:
        raise ConnectionError(
            f"{url} could not be fetched: {error}. Download it elsewhere (a browser "
            f"will do), put the file at {given} and call again. ALBERT_TF_MIRROR can "
            "name another server."
        ) from error


def _from_mirrors(release, error):
    """Fetch a release from the first mirror that answers, or raise all that was met."""
    told = [str(error)]
    for mirror in release.mirrors:
        # What went wrong is told at the end, if all do.
        failed, _, _ = told[-1].partition(": ")
        warnings.warn(f"{failed}. Trying {HUB}{mirror}.", stacklevel=4)
        try:
            return fetch_from_hub(HUB + mirror)
        except (ImportError, OSError) as failure:
            told.append(f"{HUB}{mirror} could not be fetched: {first_line(failure)}")
    if release.mirrors:
        told.append(
            "HF_ENDPOINT can name another server than huggingface.co. A folder with "
            "the files of such a repository, from ModelScope say, loads by its path."
        )
    raise ConnectionError("\n".join(told)) from error


class _Bar:
    """What pooch takes for a progress bar."""

    total = None

    def __init__(self, progress):
        self._progress, self._done = progress, 0

    def update(self, count):
        self._done += count
        self._progress(self._done, self.total or None)

    def reset(self):
        self._done = 0

    def close(self):
        pass


# === From archive to folder ===


def _unpack_release(release, archive, folder, scratch):
    found = sorted(unpack(archive, scratch).rglob("*.index"))
    if len(found) != 1:
        names = [str(path.relative_to(scratch)) for path in found]
        raise CheckpointError(
            f"{archive.name} should hold one TensorFlow checkpoint, and holds "
            f"{len(found)}: {names}"
        )
    _check_release(release, read_index(found[0].with_suffix("")), archive.name)
    source = found[0].parent
    if not any(source.glob("*config*.json")):
        write_json(source / "albert_config.json", release.config)
    try:
        os.replace(source, folder)
    except OSError:
        # Another process was faster.
        if not _is_there(folder):
            raise
        shutil.rmtree(source)


def _check_release(release, entries, archive):
    found, differences = identify({name: x.crc32c for name, x in entries.items()})
    if found is None and release.checksums:
        differences = ["the checksums of its tensors are others"]
    elif found and found.name not in (release.name, *release.confused_with):
        raise CheckpointError(f"{archive} holds {found.name}, not {release.name}.")
    # Where no checksums are known, two shapes tell the sizes apart.
    size = release.arguments
    expected = {
        "embeddings/word_embeddings": [size["vocabulary_size"], size["embedding_dim"]],
        "pooler/dense/kernel": [size["hidden_dim"], size["hidden_dim"]],
    }
    for ending, shape in expected.items():
        shapes = [list(x.shape) for name, x in entries.items() if name.endswith(ending)]
        if shapes != [shape]:
            differences.append(f"expected one {ending} of {shape}, found {shapes}")
    if differences:
        raise CheckpointError(
            f"{archive} is not {release.name} as it was released: "
            + "; ".join(differences[:5])
            + (" ..." if len(differences) > 5 else "")
        )
