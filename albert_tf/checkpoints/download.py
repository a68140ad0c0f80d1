"""Fetching a release: checked, unpacked, kept."""

import json
import os
import pathlib
import shutil
import tempfile
from urllib.parse import urlsplit

from albert_tf.checkpoints.archives import ArchiveError, unpack
from albert_tf.checkpoints.formats.bundle_index import read_index
from albert_tf.checkpoints.layout import CheckpointError
from albert_tf.checkpoints.releases import RELEASES, identify
from albert_tf.files import make_folder

TIMEOUT_SECONDS = 30  # Between two pieces.
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
        ValueError: if the variable is no http or https address.
    """
    mirror = os.environ.get("ALBERT_TF_MIRROR")
    if not mirror:
        return release.url
    if not mirror.startswith(("http://", "https://")):
        raise ValueError(
            f"ALBERT_TF_MIRROR is {mirror!r}. Expected an address such as "
            "https://mirror.example.com"
        )
    return mirror.rstrip("/") + urlsplit(release.url).path


def download_release(name, cache=None, progress=None):
    """Fetch a release unless it was fetched before.

    An archive that someone put into the cache folder, under the name it has at its
    address, is used as it is.

    Args:
        name: string, a name of `RELEASES`.
        cache: optional string or path, in place of `cache_folder()`.
        progress: optional function, called with the bytes received so far and the
            bytes in all (`None` if the server does not say).

    Returns:
        The folder of the release, a `pathlib.Path`: the checkpoint, its config, and
        its vocabulary if the archive holds one.

    Raises:
        ValueError: if there is no release of that name, or no address for it.
        ImportError: if pooch is not installed.
        ConnectionError: if the archive cannot be fetched.
        FileExistsError: if other files have the place of the release.
        ArchiveError, CheckpointError: if what came is not the release.
    """
    release = _find_release(name)
    cache = pathlib.Path(cache) if cache is not None else cache_folder()
    folder = cache / release.name
    if _is_there(folder):
        return folder
    make_folder(cache)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FileExistsError(
            f"{folder} is in the way: it holds no checkpoint. Move it elsewhere."
        )
    given = cache / pathlib.PurePosixPath(urlsplit(release.url).path).name
    with tempfile.TemporaryDirectory(prefix=f".{release.name}.", dir=cache) as scratch:
        unpacked = pathlib.Path(scratch) / "unpacked"
        if given.exists():
            _unpack_release(release, given, folder, unpacked)
            return folder
        archive = pathlib.Path(scratch) / given.name
        _fetch(release, archive, given, progress)
        try:
            _unpack_release(release, archive, folder, unpacked)
        except (ArchiveError, CheckpointError) as error:
            url = archive_address(release)
            raise type(error)(f"{error} (From {url}; nothing was kept.)") from error
    return folder


def _find_release(name):
    if name not in RELEASES:
        raise ValueError(
            f"There is no release named {name!r}. The releases: {', '.join(RELEASES)}"
        )
    release = RELEASES[name]
    if release.url is None:
        raise ValueError(
            f"No public address of {name} is known, so it cannot be downloaded. "
            "Give the path of your copy instead."
        )
    return release


def _is_there(folder):
    # The folder gets its name when all is in it.
    return any(folder.glob("*.index"))


def _fetch(release, archive, given, progress):
    pooch = _pooch(release)
    url = archive_address(release)
    fetcher = pooch.create(
        archive.parent,
        base_url="",
        registry={archive.name: None},
        urls={archive.name: url},
        retry_if_failed=RETRIES,
    )
    bar = _Bar(progress) if progress else False
    try:
        fetcher.fetch(
            archive.name,
            downloader=pooch.HTTPDownloader(bar, timeout=TIMEOUT_SECONDS),
        )
    # Those of requests are errors of the system.
    except OSError as error:
        raise ConnectionError(_unreachable(url, release, given, error)) from error


def _pooch(release):
    try:
        import pooch
    except ImportError as error:
        raise ImportError(
            f"{release.name} is fetched by pooch. Run: pip install 'albert-tf[hf]'"
        ) from error
    return pooch


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


def _unreachable(url, release, given, error):
    mirrors = " or ".join(f"hf://{mirror}" for mirror in release.mirrors)
    return (
        f"{url} could not be fetched: {error}. Download it "
        f"elsewhere (a browser will do), put the file at {given} and call again. "
        "ALBERT_TF_MIRROR can name another server."
        + (
            f" Or take {mirrors} in place of the name: the same weights on the "
            "Hugging Face Hub, for which HF_ENDPOINT can name another server."
            if mirrors
            else ""
        )
    )


# === From archive to folder ===


def _unpack_release(release, archive, folder, scratch):
    prefix = _only_checkpoint(unpack(archive, scratch), archive)
    _check_release(release, prefix, archive)
    source = prefix.parent
    if not any(source.glob("*config*.json")):
        text = json.dumps(release.config, indent=2) + "\n"
        (source / "albert_config.json").write_text(text, encoding="utf-8")
    try:
        os.replace(source, folder)
    except OSError:
        # Another process was faster.
        if not _is_there(folder):
            raise
        shutil.rmtree(source)


def _only_checkpoint(unpacked, archive):
    found = sorted(unpacked.rglob("*.index"))
    if len(found) != 1:
        names = [str(path.relative_to(unpacked)) for path in found]
        raise CheckpointError(
            f"{archive.name} should hold one TensorFlow checkpoint, and holds "
            f"{len(found)}: {names}"
        )
    return found[0].with_suffix("")


def _check_release(release, prefix, archive):
    entries = read_index(prefix)
    found, differences = identify(
        {name: entry.crc32c for name, entry in entries.items()}
    )
    names = (release.name, *release.confused_with)
    if found is not None and found.name not in names:
        raise CheckpointError(f"{archive.name} holds {found.name}, not {release.name}.")
    if release.checksums and found is None:
        raise CheckpointError(
            f"{archive.name} does not hold {release.name}: the checksums of its "
            "tensors are others."
        )
    if differences:
        raise CheckpointError(
            f"{archive.name} is not {release.name} as it was released: "
            + "; ".join(differences[:5])
            + (" ..." if len(differences) > 5 else "")
        )
    _check_sizes(release, entries, archive)


def _check_sizes(release, entries, archive):
    """For a release whose checksums are not known, its two telling shapes."""
    size = release.arguments
    expected = {
        "embeddings/word_embeddings": (size["vocabulary_size"], size["embedding_dim"]),
        "pooler/dense/kernel": (size["hidden_dim"], size["hidden_dim"]),
    }
    for ending, shape in expected.items():
        found = [
            entry.shape for name, entry in entries.items() if name.endswith(ending)
        ]
        if found != [shape]:
            raise CheckpointError(
                f"{archive.name} does not hold {release.name}: expected one {ending} "
                f"of shape {list(shape)}, found {[list(shape) for shape in found]}."
            )
