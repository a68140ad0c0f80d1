import collections
import http.server
import io
import json
import pathlib
import shutil
import socket
import tarfile
import threading
import zipfile
from types import SimpleNamespace

import pytest

from albert_tf.checkpoints import download, releases
from albert_tf.checkpoints.archives import ArchiveError
from albert_tf.checkpoints.download import (
    archive_address,
    cache_folder,
    download_release,
)
from albert_tf.checkpoints.formats.bundle_index import read_index
from albert_tf.checkpoints.layout import CheckpointError
from albert_tf.checkpoints.releases import RELEASES, Release

GOLDEN = pathlib.Path(__file__).parents[1] / "golden" / "google_early"
CHECKPOINT = ("model.ckpt-best.index", "model.ckpt-best.data-00000-of-00001")
CONFIG = "albert_config.json"
URL = "https://models.example.com/files/golden.zip"


class Server(http.server.ThreadingHTTPServer):
    """Files over HTTP, with the faults a test asks for.

    Attributes:
        files: {path: bytes}.
        requests: the headers of every request so far.
        cuts: how many bytes each next answer sends before the connection breaks.
        answers: statuses of the next answers, in place of the file.
        redirects: {path: address}.
        etag, ranges, lengths: whether the server has these.
    """

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.requests, self.redirects = {}, [], {}
        self.cuts, self.answers = collections.deque(), collections.deque()
        self.etag, self.ranges, self.lengths = '"1"', True, True

    @property
    def address(self):
        return f"http://127.0.0.1:{self.server_port}"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        server.requests.append(self.headers)
        if server.answers:
            return self.send_error(server.answers.popleft())
        if self.path in server.redirects:
            self.send_response(302)
            self.send_header("Location", server.redirects[self.path])
            self.send_header("Content-Length", "0")
            return self.end_headers()
        if self.path not in server.files:
            return self.send_error(404)
        content = server.files[self.path]
        start = self.start_of_range(len(content))
        if start is not None and start >= len(content):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(content)}")
            self.send_header("Content-Length", "0")
            return self.end_headers()
        self.send_content(content, start)

    def start_of_range(self, size):
        asked = self.headers.get("Range")
        if not asked or not self.server.ranges:
            return None
        if self.headers.get("If-Range") not in (None, self.server.etag):
            return None
        return int(asked.removeprefix("bytes=").removesuffix("-"))

    def send_content(self, content, start):
        self.send_response(200 if start is None else 206)
        if start is not None:
            end = f"{start}-{len(content) - 1}/{len(content)}"
            self.send_header("Content-Range", f"bytes {end}")
            content = content[start:]
        if self.server.etag:
            self.send_header("ETag", self.server.etag)
        if self.server.lengths:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.server.cuts:
            content = content[: self.server.cuts.popleft()]
        self.wfile.write(content)

    def log_message(self, *args):
        pass


@pytest.fixture
def server(monkeypatch):
    server = Server()
    monkeypatch.setenv("ALBERT_TF_MIRROR", server.address)
    monkeypatch.setattr(download, "BACKOFF_SECONDS", 0.0)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def release(monkeypatch):
    """A release named "golden", whose archive is the golden checkpoint."""
    release = Release(
        name="golden",
        language="zh",
        layout="google",
        arguments={
            "vocabulary_size": 120,
            "num_layers": 4,
            "num_heads": 4,
            "embedding_dim": 16,
            "hidden_dim": 48,
            "intermediate_dim": 96,
            "activation": "relu",
            "max_sequence_length": 64,
        },
        vocabulary="vocab.txt",
        lowercase=True,
        url=URL,
    )
    entries = read_index(GOLDEN / "model.ckpt-best")
    checksums = {
        name: [entry.crc32c, list(entry.shape)]
        for name, entry in entries.items()
        if name != "global_step"
    }
    monkeypatch.setitem(RELEASES, release.name, release)
    monkeypatch.setitem(releases._checksums(), release.name, checksums)
    return release


def golden_files(*names, folder="model/"):
    names = names or (*CHECKPOINT, CONFIG)
    return {folder + name: (GOLDEN / name).read_bytes() for name in names}


def zipped(files):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in files.items():
            file.writestr(name, content)
    return data.getvalue()


def tarred(files):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as file:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            file.addfile(info, io.BytesIO(content))
    return data.getvalue()


ARCHIVE = zipped(golden_files())


def names(folder):
    return {path.name for path in folder.iterdir() if not path.name.endswith(".lock")}


def ranges(server):
    return [headers.get("Range") for headers in server.requests]


# === What comes ===


def test_fetches_checks_and_unpacks(server, release, tmp_path):
    server.files["/files/golden.zip"] = ARCHIVE
    reported = []
    folder = download_release(
        "golden", cache=tmp_path, progress=lambda *numbers: reported.append(numbers)
    )
    assert folder == tmp_path / "golden"
    assert names(tmp_path) == {"golden"}
    assert names(folder) == {*CHECKPOINT, CONFIG}
    assert (folder / CONFIG).read_bytes() == (GOLDEN / CONFIG).read_bytes()
    assert reported[-1] == (len(ARCHIVE), len(ARCHIVE))
    assert server.requests[0]["Accept-Encoding"] == "identity"


def test_second_call_needs_no_network(server, release, tmp_path, monkeypatch):
    server.files["/files/golden.zip"] = ARCHIVE
    monkeypatch.setenv("ALBERT_TF_CACHE", str(tmp_path / "cache"))
    first = download_release("golden")
    assert first == tmp_path / "cache" / "golden"
    server.files.clear()
    assert download_release("golden") == first
    assert len(server.requests) == 1


@pytest.mark.parametrize("folder", ["", "a/b/"])
def test_tar_in_any_folder_with_vocabulary(
    folder, server, release, tmp_path, monkeypatch
):
    url = "https://models.example.com/golden.tar.gz"
    monkeypatch.setitem(RELEASES, "golden", Release(**{**vars(release), "url": url}))
    files = {**golden_files(folder=folder), f"{folder}vocab.txt": b"[PAD]\n"}
    server.files["/golden.tar.gz"] = tarred(files)
    found = download_release("golden", cache=tmp_path)
    assert names(found) == {*CHECKPOINT, CONFIG, "vocab.txt"}
    assert names(tmp_path) == {"golden"}


def test_missing_config_is_written(server, release, tmp_path):
    server.files["/files/golden.zip"] = zipped(golden_files(*CHECKPOINT))
    folder = download_release("golden", cache=tmp_path)
    config = json.loads((folder / "albert_config.json").read_text())
    expected = json.loads((GOLDEN / CONFIG).read_text())
    assert config == {field: expected[field] for field in config}


def test_server_that_says_nothing_about_the_file(server, release, tmp_path):
    server.etag, server.ranges, server.lengths = None, False, False
    server.files["/files/golden.zip"] = ARCHIVE
    reported = []
    download_release("golden", tmp_path, lambda *numbers: reported.append(numbers))
    assert reported[-1] == (len(ARCHIVE), None)


# === Breaks ===


def test_goes_on_after_a_break(server, release, tmp_path):
    server.files["/files/golden.zip"] = ARCHIVE
    server.cuts.extend([1000, 500])
    download_release("golden", cache=tmp_path)
    assert ranges(server) == [None, "bytes=1000-", "bytes=1500-"]
    assert [headers.get("If-Range") for headers in server.requests[1:]] == ['"1"'] * 2


def test_goes_on_in_a_later_call(server, release, tmp_path, monkeypatch):
    server.files["/files/golden.zip"] = ARCHIVE
    server.cuts.append(1000)
    monkeypatch.setattr(download, "ATTEMPTS", 1)
    with pytest.raises(ConnectionError, match="could not be fetched"):
        download_release("golden", cache=tmp_path)
    assert names(tmp_path) == {"golden.zip.part", "golden.zip.part.json"}
    assert (tmp_path / "golden.zip.part").read_bytes() == ARCHIVE[:1000]
    download_release("golden", cache=tmp_path)
    assert ranges(server) == [None, "bytes=1000-"]
    assert names(tmp_path) == {"golden"}


def broken_off(server, tmp_path, monkeypatch, size=1000):
    """A download that ended after some bytes, of which the file was another one."""
    server.files["/files/golden.zip"] = b"\xff" * 5000
    server.cuts.append(size)
    with monkeypatch.context() as context:
        context.setattr(download, "ATTEMPTS", 1)
        with pytest.raises(ConnectionError):
            download_release("golden", cache=tmp_path)
    server.files["/files/golden.zip"] = ARCHIVE


def test_a_changed_file_starts_over(server, release, tmp_path, monkeypatch):
    broken_off(server, tmp_path, monkeypatch)
    server.etag = '"2"'
    download_release("golden", cache=tmp_path)
    assert ranges(server) == [None, "bytes=1000-"]


def test_another_address_starts_over(server, release, tmp_path, monkeypatch):
    broken_off(server, tmp_path, monkeypatch)
    monkeypatch.setenv("ALBERT_TF_MIRROR", f"{server.address}/mirror/")
    server.files["/mirror/files/golden.zip"] = ARCHIVE
    download_release("golden", cache=tmp_path)
    assert ranges(server) == [None, None]


def test_server_without_ranges_starts_over(server, release, tmp_path):
    server.files["/files/golden.zip"] = ARCHIVE
    server.ranges = False
    server.cuts.append(1000)
    download_release("golden", cache=tmp_path)
    assert ranges(server) == [None, "bytes=1000-"]


@pytest.mark.parametrize("etag", [None, 'W/"1"'])
def test_no_exact_version_starts_over(etag, server, release, tmp_path):
    server.files["/files/golden.zip"] = ARCHIVE
    server.etag = etag
    server.cuts.append(1000)
    download_release("golden", cache=tmp_path)
    assert ranges(server) == [None, None]


def test_all_bytes_were_there_already(server, release, tmp_path):
    server.files["/files/golden.zip"] = ARCHIVE
    part = tmp_path / "golden.zip.part"
    part.write_bytes(ARCHIVE)
    state = {"url": f"{server.address}/files/golden.zip", "version": '"1"'}
    part.with_name("golden.zip.part.json").write_text(json.dumps(state))
    download_release("golden", cache=tmp_path)
    assert ranges(server) == [f"bytes={len(ARCHIVE)}-"]


def test_more_bytes_than_the_file_has(server, release, tmp_path):
    server.files["/files/golden.zip"] = ARCHIVE
    part = tmp_path / "golden.zip.part"
    part.write_bytes(ARCHIVE + b"more")
    state = {"url": f"{server.address}/files/golden.zip", "version": '"1"'}
    part.with_name("golden.zip.part.json").write_text(json.dumps(state))
    download_release("golden", cache=tmp_path)
    assert ranges(server) == [f"bytes={len(ARCHIVE) + 4}-", None]


@pytest.mark.parametrize("state", ["", "[]", '{"url": 1}', "\x00"])
def test_part_of_unknown_origin_starts_over(state, server, release, tmp_path):
    server.files["/files/golden.zip"] = ARCHIVE
    (tmp_path / "golden.zip.part").write_bytes(b"?" * 100)
    (tmp_path / "golden.zip.part.json").write_text(state)
    download_release("golden", cache=tmp_path)
    assert ranges(server) == [None]


@pytest.mark.parametrize("status", [429, 500, 503])
def test_tries_again(status, server, release, tmp_path):
    server.files["/files/golden.zip"] = ARCHIVE
    server.answers.extend([status, status])
    download_release("golden", cache=tmp_path)
    assert len(server.requests) == 3


def test_waits_longer_each_time(server, release, tmp_path, monkeypatch):
    waits = []
    monkeypatch.setattr(download, "BACKOFF_SECONDS", 1.0)
    monkeypatch.setattr(download.time, "sleep", waits.append)
    server.answers.extend([503] * 10)
    with pytest.raises(ConnectionError, match="the server answered 503"):
        download_release("golden", cache=tmp_path)
    assert waits == [1, 2, 4, 8]


@pytest.mark.parametrize("status", [401, 403, 404, 410])
def test_does_not_try_again_what_is_not_there(status, server, release, tmp_path):
    server.answers.append(status)
    with pytest.raises(ConnectionError, match=f"is not there: .* {status} "):
        download_release("golden", cache=tmp_path)
    assert len(server.requests) == 1
    assert names(tmp_path) == set()


# === No network ===


@pytest.fixture
def no_network(monkeypatch):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    monkeypatch.setenv("ALBERT_TF_MIRROR", f"http://127.0.0.1:{port}")
    monkeypatch.setattr(download, "BACKOFF_SECONDS", 0.0)
    return f"http://127.0.0.1:{port}/files/golden.zip"


def test_no_network(no_network, release, tmp_path):
    with pytest.raises(ConnectionError) as error:
        download_release("golden", cache=tmp_path)
    message = str(error.value)
    assert message.startswith(f"{no_network} could not be fetched: ")
    assert "Connection refused" in message
    assert f"put the file at {tmp_path / 'golden.zip'}" in message
    assert "\n" not in message
    assert len(message) < 500


def test_an_archive_put_there_is_used_and_kept(no_network, release, tmp_path):
    (tmp_path / "golden.zip").write_bytes(ARCHIVE)
    folder = download_release("golden", cache=tmp_path)
    assert names(folder) == {*CHECKPOINT, CONFIG}
    assert (tmp_path / "golden.zip").read_bytes() == ARCHIVE


def test_a_wrong_archive_put_there_is_kept_too(no_network, release, tmp_path):
    (tmp_path / "golden.zip").write_bytes(ARCHIVE[:-100])
    with pytest.raises(ArchiveError, match="damaged or cut short"):
        download_release("golden", cache=tmp_path)
    assert names(tmp_path) == {"golden.zip"}


# === What is not the release ===


def refused(server, tmp_path, archive, error, message):
    server.files["/files/golden.zip"] = archive
    with pytest.raises(error, match=message) as found:
        download_release("golden", cache=tmp_path)
    assert f"Received from {server.address}/files/golden.zip, and removed" in str(
        found.value
    )
    assert names(tmp_path) == set()


def changed_checksums(release, monkeypatch, count):
    checksums = releases._checksums()[release.name]
    changed = {
        name: [crc32c + (number < count), shape]
        for number, (name, (crc32c, shape)) in enumerate(checksums.items())
    }
    monkeypatch.setitem(releases._checksums(), release.name, changed)


def test_a_tensor_differs(server, release, tmp_path, monkeypatch):
    changed_checksums(release, monkeypatch, 1)
    message = "is not golden as it was released: .*LayerNorm/beta has other values"
    refused(server, tmp_path, ARCHIVE, CheckpointError, message)


def test_all_tensors_differ(server, release, tmp_path, monkeypatch):
    changed_checksums(release, monkeypatch, 1000)
    message = "does not hold golden: the checksums of its tensors are others"
    refused(server, tmp_path, ARCHIVE, CheckpointError, message)


def test_another_release(server, release, tmp_path, monkeypatch):
    other = Release(**{**vars(release), "name": "other"})
    monkeypatch.setitem(RELEASES, "other", other)
    checksums = releases._checksums().pop("golden")
    monkeypatch.setitem(releases._checksums(), "other", checksums)
    refused(server, tmp_path, ARCHIVE, CheckpointError, "holds other, not golden")


def test_a_release_it_is_confused_with(server, release, tmp_path, monkeypatch):
    other = Release(**{**vars(release), "name": "other"})
    monkeypatch.setitem(RELEASES, "other", other)
    checksums = releases._checksums()["golden"]
    monkeypatch.setitem(releases._checksums(), "other", checksums)
    changed_checksums(release, monkeypatch, 1000)
    confused = Release(**{**vars(release), "confused_with": ("other",)})
    monkeypatch.setitem(RELEASES, "golden", confused)
    server.files["/files/golden.zip"] = ARCHIVE
    assert download_release("golden", cache=tmp_path).is_dir()


def test_unknown_checksums_and_another_size(server, release, tmp_path, monkeypatch):
    monkeypatch.delitem(releases._checksums(), "golden")
    arguments = {**release.arguments, "hidden_dim": 96}
    other = Release(**{**vars(release), "arguments": arguments})
    monkeypatch.setitem(RELEASES, "golden", other)
    message = r"expected one pooler/dense/kernel of shape \[96, 96\], found \[\[48, 48"
    refused(server, tmp_path, ARCHIVE, CheckpointError, message)


def test_unknown_checksums_and_the_right_size(server, release, tmp_path, monkeypatch):
    monkeypatch.delitem(releases._checksums(), "golden")
    server.files["/files/golden.zip"] = ARCHIVE
    assert download_release("golden", cache=tmp_path).is_dir()


BAD_ARCHIVES = {
    "web page": (b"<html>log in</html>", ArchiveError, "damaged or cut short"),
    "no checkpoint": (
        zipped({"a.txt": b"a"}),
        CheckpointError,
        "should hold one TensorFlow checkpoint, and holds 0",
    ),
    "two checkpoints": (
        zipped({**golden_files(), **golden_files(folder="again/")}),
        CheckpointError,
        "holds 2: .*again/model.ckpt-best.index",
    ),
    "no data": (
        zipped(golden_files(CHECKPOINT[0], CONFIG)),
        CheckpointError,
        "is not there",
    ),
    "broken index": (
        zipped({**golden_files(), f"model/{CHECKPOINT[0]}": b"index"}),
        CheckpointError,
        "index is damaged",
    ),
    "leads out": (
        zipped({**golden_files(), "../../evil.txt": b"evil"}),
        ArchiveError,
        "leads out of the folder",
    ),
}


@pytest.mark.parametrize("case", BAD_ARCHIVES)
def test_bad_archives(case, server, release, tmp_path):
    refused(server, tmp_path, *BAD_ARCHIVES[case])
    assert not list(tmp_path.parent.rglob("evil.txt"))


@pytest.mark.parametrize("lengths", [True, False])
def test_limit_on_the_download(lengths, server, release, tmp_path, monkeypatch):
    monkeypatch.setattr(download, "MAX_ARCHIVE_BYTES", 1000)
    server.lengths = lengths
    server.files["/files/golden.zip"] = ARCHIVE
    with pytest.raises(ConnectionError, match="no release has more than 1000"):
        download_release("golden", cache=tmp_path)
    assert names(tmp_path) == set()
    assert len(server.requests) == 1


# === Where to ===


def test_redirects(server, release, tmp_path):
    server.redirects["/files/golden.zip"] = "/elsewhere"
    server.files["/elsewhere"] = ARCHIVE
    assert download_release("golden", cache=tmp_path).is_dir()


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://example.com/a.zip"])
def test_redirects_off_the_web(target, server, release, tmp_path):
    server.redirects["/files/golden.zip"] = target
    with pytest.raises(ConnectionError, match="leads on to .* was not followed"):
        download_release("golden", cache=tmp_path)
    assert names(tmp_path) == set()


def test_redirect_that_loses_encryption():
    answer = SimpleNamespace(
        is_redirect=True,
        headers={"Location": "http://models.example.com/golden.zip"},
        close=lambda: None,
    )
    session = SimpleNamespace(get=lambda url, **kwargs: answer)
    with pytest.raises(ConnectionError, match="which is not https"):
        download._get(session, URL, {})


def test_redirects_in_a_circle(server, release, tmp_path):
    server.redirects["/files/golden.zip"] = "/files/golden.zip"
    with pytest.raises(ConnectionError, match="too many times"):
        download_release("golden", cache=tmp_path)


def test_addresses(monkeypatch):
    release = RELEASES["albert_tiny_zh"]
    monkeypatch.delenv("ALBERT_TF_MIRROR", raising=False)
    assert archive_address(release) == release.url
    monkeypatch.setenv("ALBERT_TF_MIRROR", "https://mirror.example.cn/pub/")
    expected = "https://mirror.example.cn/pub/albert_zh/albert_tiny.zip"
    assert archive_address(release) == expected
    for wrong in ("mirror.example.cn", "file:///tmp", "ftp://a/b"):
        monkeypatch.setenv("ALBERT_TF_MIRROR", wrong)
        with pytest.raises(ValueError, match="ALBERT_TF_MIRROR is"):
            archive_address(release)


def test_cache_folder(monkeypatch, tmp_path):
    for name in ("ALBERT_TF_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "albert_tf"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "albert_tf"
    monkeypatch.setenv("ALBERT_TF_CACHE", "~/mine")
    assert cache_folder() == tmp_path / "mine"


def test_unknown_name(tmp_path):
    with pytest.raises(ValueError, match="no release named 'tiny'.*albert_tiny_zh"):
        download_release("tiny", cache=tmp_path)


def test_release_without_address(tmp_path):
    with pytest.raises(ValueError, match="No public address of"):
        download_release("albert_tiny_google_finetuned_lcqmc", cache=tmp_path)


def test_two_at_once_fetch_once(server, release, tmp_path):
    server.files["/files/golden.zip"] = ARCHIVE
    found = []
    threads = [
        threading.Thread(
            target=lambda: found.append(download_release("golden", cache=tmp_path))
        )
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [tmp_path / "golden"] * 4
    assert len(server.requests) == 1


def test_files_in_the_way_are_not_lost(server, release, tmp_path):
    shutil.copytree(GOLDEN, tmp_path / "golden" / "sub")
    server.files["/files/golden.zip"] = ARCHIVE
    with pytest.raises(FileExistsError, match="is in the way"):
        download_release("golden", cache=tmp_path)
    assert (tmp_path / "golden" / "sub" / CONFIG).exists()
    assert len(server.requests) == 0
