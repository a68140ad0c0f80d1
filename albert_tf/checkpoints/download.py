"""Fetching a release: resumed after a break, checked, unpacked, kept."""

import contextlib
import dataclasses
import json
import os
import pathlib
import re
import tempfile
import time
from urllib.parse import urljoin, urlsplit, urlunsplit

import requests
import urllib3

from albert_tf.checkpoints.archives import ArchiveError, unpack
from albert_tf.checkpoints.formats.bundle_index import read_index
from albert_tf.checkpoints.layout import CheckpointError
from albert_tf.checkpoints.releases import RELEASES, identify
from albert_tf.files import make_folder

# The weights of xxlarge are 0.9 GB, and 2.7 GB with two optimizer slots each.
MAX_ARCHIVE_BYTES = 4 * 2**30
ATTEMPTS = 5
BACKOFF_SECONDS = 1.0  # Doubled after every attempt.
TIMEOUT_SECONDS = (15, 60)  # To connect, and between two pieces.
_MAX_REDIRECTS = 5
_CHUNK = 2**18

_BROKEN = (requests.RequestException, urllib3.exceptions.HTTPError)
_ARCHIVE_SIZE = re.compile(r"bytes (?:(\d+)-\d+|\*)/(\d+)$")


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
    scheme, host, path, _, _ = urlsplit(mirror)
    if scheme not in ("http", "https") or not host:
        raise ValueError(
            f"ALBERT_TF_MIRROR is {mirror!r}. Expected an address such as "
            "https://mirror.example.com"
        )
    path = path.rstrip("/") + urlsplit(release.url).path
    return urlunsplit((scheme, host, path, "", ""))


def download_release(name, cache=None, progress=None):
    """Fetch a release unless it was fetched before.

    A download that broke off goes on where it stopped. An archive that someone put
    into the cache folder, under the name it has at its address, is used as it is.

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
        ConnectionError: if the archive cannot be fetched.
        FileExistsError: if other files have the place of the release.
        ArchiveError, CheckpointError: if what came is not the release. It is
            removed then.
    """
    release = _find_release(name)
    cache = pathlib.Path(cache) if cache is not None else cache_folder()
    folder = cache / release.name
    if _is_there(folder):
        return folder
    url = archive_address(release)
    archive = cache / pathlib.PurePosixPath(urlsplit(release.url).path).name
    make_folder(cache)
    with _lock(cache / f".{release.name}.lock"):
        if _is_there(folder):  # Another process had the lock, and fetched it.
            return folder
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise FileExistsError(
                f"{folder} is in the way: it holds no checkpoint. Move it elsewhere."
            )
        given = archive.exists()
        if not given:
            _fetch(url, archive, progress)
        try:
            _unpack_release(release, archive, folder)
        except (ArchiveError, CheckpointError) as error:
            if given:
                raise
            archive.unlink()
            raise type(error)(f"{error} (Received from {url}, and removed.)") from error
        if not given:
            archive.unlink()
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


# === From archive to folder ===


def _unpack_release(release, archive, folder):
    with tempfile.TemporaryDirectory(
        prefix=f".{release.name}.", dir=folder.parent
    ) as scratch:
        unpacked = unpack(archive, pathlib.Path(scratch) / "unpacked")
        prefix = _only_checkpoint(unpacked, archive)
        _check_release(release, prefix, archive)
        source = prefix.parent
        if not any(source.glob("*config*.json")):
            text = json.dumps(release.config, indent=2) + "\n"
            (source / "albert_config.json").write_text(text, encoding="utf-8")
        os.replace(source, folder)


def _only_checkpoint(unpacked, archive):
    found = sorted(unpacked.rglob("*.index"))
    if len(found) != 1:
        names = [str(path.relative_to(unpacked)) for path in found]
        raise CheckpointError(
            f"{archive} should hold one TensorFlow checkpoint, and holds "
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
        raise CheckpointError(f"{archive} holds {found.name}, not {release.name}.")
    if release.checksums and found is None:
        raise CheckpointError(
            f"{archive} does not hold {release.name}: the checksums of its tensors "
            "are others."
        )
    if differences:
        raise CheckpointError(
            f"{archive} is not {release.name} as it was released: "
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
                f"{archive} does not hold {release.name}: expected one {ending} of "
                f"shape {list(shape)}, found {[list(shape) for shape in found]}."
            )


# === From address to archive ===


@dataclasses.dataclass
class _Part:
    """A download that is not complete: the bytes so far, and of what version."""

    path: pathlib.Path
    url: str

    @property
    def _state(self):
        return self.path.with_name(self.path.name + ".json")

    def resume_point(self):
        """How many bytes are there and what the server called that version."""
        try:
            state = json.loads(self._state.read_text(encoding="utf-8"))
            size = self.path.stat().st_size
        except (FileNotFoundError, json.JSONDecodeError, UnicodeDecodeError):
            return 0, None
        same = isinstance(state, dict) and state.get("url") == self.url
        version = state.get("version") if same else None
        return (size, version) if version else (0, None)

    def start(self, version):
        self.path.write_bytes(b"")
        state = {"url": self.url, "version": version}
        self._state.write_text(json.dumps(state), encoding="utf-8")

    def forget(self):
        self.path.unlink(missing_ok=True)
        self._state.unlink(missing_ok=True)

    def finish(self, target):
        os.replace(self.path, target)
        self._state.unlink(missing_ok=True)


class _TryAgainError(Exception):
    """Something that may be over in a moment."""


def _fetch(url, archive, progress):
    part = _Part(archive.with_name(archive.name + ".part"), url)
    reason = None
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(BACKOFF_SECONDS * 2 ** (attempt - 1))
        try:
            with requests.Session() as session:
                _fetch_rest(session, part, progress)
        except _TryAgainError as error:
            reason = str(error)
        except _BROKEN as error:
            reason = _innermost(error)
        else:
            part.finish(archive)
            return
    raise _unreachable(url, archive, reason)


def _unreachable(url, archive, reason):
    return ConnectionError(
        f"{url} could not be fetched: {reason}. Is there a network? If not, download "
        f"this address elsewhere (a browser will do), put the file at {archive} and "
        "call again. ALBERT_TF_MIRROR can name another server. What has come so far "
        "is kept."
    )


def _innermost(error):
    """What went wrong in the words of the system, not of four libraries."""
    seen = [error]
    while (inner := seen[-1].__cause__ or seen[-1].__context__) is not None:
        seen.append(inner)
    causes = [cause for cause in seen if isinstance(cause, OSError) and cause.strerror]
    return str(causes[-1]) if causes else f"{type(error).__name__}: {error}"


def _fetch_rest(session, part, progress):
    """One request for what is still missing."""
    done, version = part.resume_point()
    # The bytes of the archive, not of a compressed transfer of it.
    headers = {"Accept-Encoding": "identity"}
    if done:
        headers |= {"Range": f"bytes={done}-", "If-Range": version}
    with _get(session, part.url, headers) as response:
        start, total = _range(response)
        if response.status_code == 416:
            if total == done:
                return
            part.forget()
            raise _TryAgainError("the file at the server is another one by now")
        _check_status(response, part.url)
        if response.status_code == 206 and start != done:
            part.forget()
            raise _TryAgainError("the server sent another part than was asked for")
        if response.status_code == 200:
            done = 0
            part.start(_version(response))
            length = response.headers.get("Content-Length", "")
            total = int(length) if length.isdigit() else None
        _receive(response, part, done, total, progress)


def _range(response):
    """Where the bytes of a partial answer begin, and how many the file has."""
    match = _ARCHIVE_SIZE.match(response.headers.get("Content-Range", ""))
    if match is None:
        return None, None
    start, total = match.groups()
    return (None if start is None else int(start)), int(total)


def _version(response):
    """What names this version of the file exactly, else `None`."""
    etag = response.headers.get("ETag", "")
    if etag and not etag.startswith("W/"):
        return etag
    return response.headers.get("Last-Modified")


def _receive(response, part, done, total, progress):
    _check_length(total or 0, part)
    with part.path.open("ab") as file:
        while chunk := response.raw.read(_CHUNK, decode_content=False):
            done += len(chunk)
            _check_length(done, part)
            file.write(chunk)
            if progress is not None:
                progress(done, total)
    if total is not None and done != total:
        raise _TryAgainError(f"the connection ended after {done} of {total} bytes")


def _check_length(size, part):
    if size > MAX_ARCHIVE_BYTES:
        part.forget()
        raise ConnectionError(
            f"{part.url} sends {size} bytes or more, and no release has more than "
            f"{MAX_ARCHIVE_BYTES}. Nothing was kept."
        )


def _check_status(response, url):
    status = response.status_code
    if status in (408, 425, 429) or status >= 500:
        raise _TryAgainError(f"the server answered {status} {response.reason}")
    if status not in (200, 206):
        raise ConnectionError(
            f"{url} is not there: the server answered {status} {response.reason}. If "
            "it has moved, ALBERT_TF_MIRROR can name another server."
        )


def _get(session, url, headers):
    """GET, following redirects that stay on the web and do not lose encryption."""
    for _ in range(_MAX_REDIRECTS):
        response = session.get(
            url,
            headers=headers,
            stream=True,
            timeout=TIMEOUT_SECONDS,
            allow_redirects=False,
        )
        if not response.is_redirect:
            return response
        response.close()
        target = urljoin(url, response.headers["Location"])
        allowed = ("https",) if urlsplit(url).scheme == "https" else ("http", "https")
        if urlsplit(target).scheme not in allowed:
            raise ConnectionError(
                f"{url} leads on to {target}, which is not {' or '.join(allowed)}; it "
                "was not followed."
            )
        url = target
    raise ConnectionError(f"{url} leads on to other addresses too many times.")


# === Two processes at once ===


@contextlib.contextmanager
def _lock(path):
    """Let one process in at a time; the system frees it if that process dies."""
    with path.open("a+b") as file:
        _take(file)
        yield


def _take(file):
    try:
        import fcntl
    except ImportError:  # Windows.
        import msvcrt

        while True:
            with contextlib.suppress(OSError):  # It waits for ten seconds only.
                return msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
    fcntl.flock(file, fcntl.LOCK_EX)
