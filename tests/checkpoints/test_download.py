import concurrent.futures
import functools
import http.server
import io
import json
import pathlib
import shutil
import tarfile
import threading
import zipfile

import huggingface_hub
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


class Handler(http.server.BaseHTTPRequestHandler):
    """Sends `server.files`; an address it has none for is told by a status."""

    def do_GET(self):
        self.server.requests.append(self.path)
        content = self.server.files.get(self.path, 404)
        if isinstance(content, int):
            return self.send_error(content)
        if isinstance(content, str):
            self.send_response(302)
            self.send_header("Location", content)
            return self.end_headers()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: self.server.cut])

    def log_message(self, *args):
        pass


@pytest.fixture
def server(monkeypatch):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.files, server.requests, server.cut = {}, [], None
        server.address = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setenv("ALBERT_TF_MIRROR", server.address)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


def hub(monkeypatch, answer):
    """Replace the Hub; `answer` is the folder it has, or what it raises."""

    def snapshot_download(name, local_files_only=False, **_):
        assert name == "me/golden"
        if local_files_only or isinstance(answer, Exception):
            raise huggingface_hub.errors.LocalEntryNotFoundError("no answer")
        return str(answer)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)


@pytest.fixture
def release(monkeypatch):
    """A release named "golden", whose archive is the golden checkpoint."""
    hub(monkeypatch, OSError())
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
        mirrors=("me/golden",),
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
    return {path.name for path in folder.iterdir()}


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


def test_second_call_needs_no_network(server, release, tmp_path, monkeypatch):
    server.files["/files/golden.zip"] = ARCHIVE
    monkeypatch.setenv("ALBERT_TF_CACHE", str(tmp_path / "cache"))
    first = download_release("golden")
    assert first == tmp_path / "cache" / "golden"
    server.files.clear()
    assert download_release("golden") == first
    assert len(server.requests) == 1


def test_tar_in_any_folder_with_vocabulary(server, release, tmp_path, monkeypatch):
    folder = "a/b/"
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


# === What does not come ===


def test_a_mirror_is_tried_by_itself(server, release, tmp_path, monkeypatch):
    monkeypatch.setattr(download, "RETRIES", 0)
    server.files["/files/golden.zip"] = 503
    kept = tmp_path / "hub"
    kept.mkdir()
    (kept / "model.safetensors").touch()
    hub(monkeypatch, kept)
    with pytest.warns(UserWarning, match="(?s)could not be .*Trying hf://me/golden"):
        assert download_release("golden", cache=tmp_path / "cache") == kept
    # The next call asks nobody.
    monkeypatch.setattr(
        huggingface_hub, "snapshot_download", lambda name, local_files_only: kept
    )
    asked = len(server.requests)
    assert download_release("golden", cache=tmp_path / "cache") == kept
    assert len(server.requests) == asked


def test_nothing_answers(server, release, tmp_path, monkeypatch):
    monkeypatch.setattr(download, "RETRIES", 0)
    server.files["/files/golden.zip"] = 503
    with (
        pytest.warns(UserWarning, match="Trying hf://me/golden"),
        pytest.raises(ConnectionError) as error,
    ):
        download_release("golden", cache=tmp_path)
    message = str(error.value)
    assert message.startswith(f"{server.address}/files/golden.zip could not be fetched")
    assert f"put the file at {tmp_path / 'golden.zip'}" in message
    assert "hf://me/golden could not be fetched: no answer" in message
    assert "HF_ENDPOINT can name another server" in message
    assert names(tmp_path) == set()


@pytest.mark.slow
def test_no_network(server, release, tmp_path):
    server.shutdown()
    server.server_close()
    with pytest.raises(ConnectionError, match="Connection refused"):
        download_release("golden", cache=tmp_path)
    assert names(tmp_path) == set()


@pytest.mark.slow
def test_a_connection_that_breaks_off(server, release, tmp_path, monkeypatch):
    monkeypatch.setattr(download, "RETRIES", 1)
    server.files["/files/golden.zip"] = ARCHIVE
    server.cut = 1000
    with pytest.raises(ConnectionError, match="1000 bytes read"):
        download_release("golden", cache=tmp_path)
    assert names(tmp_path) == set()
    server.cut = None
    assert download_release("golden", cache=tmp_path).is_dir()


def test_an_archive_put_there_is_used_and_kept(server, release, tmp_path):
    (tmp_path / "golden.zip").write_bytes(ARCHIVE)
    folder = download_release("golden", cache=tmp_path)
    assert names(folder) == {*CHECKPOINT, CONFIG}
    assert (tmp_path / "golden.zip").read_bytes() == ARCHIVE


def test_a_wrong_archive_put_there_is_kept_too(server, release, tmp_path):
    (tmp_path / "golden.zip").write_bytes(ARCHIVE[:-100])
    with pytest.raises(ArchiveError, match="damaged, cut short"):
        download_release("golden", cache=tmp_path)
    assert names(tmp_path) == {"golden.zip"}


# === What is not the release ===


def refused(server, tmp_path, archive, error, message):
    server.files["/files/golden.zip"] = archive
    with pytest.raises(error, match=message) as found:
        download_release("golden", cache=tmp_path)
    assert f"From {server.address}/files/golden.zip; nothing was kept" in str(
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
    message = "is not golden as it was released: the checksums of its tensors are oth"
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
    message = r"expected one pooler/dense/kernel of \[96, 96\], found \[\[48, 48"
    refused(server, tmp_path, ARCHIVE, CheckpointError, message)


def test_unknown_checksums_and_the_right_size(server, release, tmp_path, monkeypatch):
    monkeypatch.delitem(releases._checksums(), "golden")
    server.files["/files/golden.zip"] = ARCHIVE
    assert download_release("golden", cache=tmp_path).is_dir()


BAD_ARCHIVES = {
    "web page": (b"<html>log in</html>", ArchiveError, "damaged, cut short"),
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
        "leads out",
    ),
}


def test_bad_archives(server, release, tmp_path):
    for case in BAD_ARCHIVES.values():
        refused(server, tmp_path, *case)
        assert not list(tmp_path.parent.rglob("evil.txt"))


# === Where to ===


@pytest.mark.slow
def test_redirects(server, release, tmp_path):
    server.files["/files/golden.zip"] = "/elsewhere"
    server.files["/elsewhere"] = ARCHIVE
    assert download_release("golden", cache=tmp_path).is_dir()


def test_addresses(monkeypatch):
    release = RELEASES["albert_tiny_zh"]
    monkeypatch.delenv("ALBERT_TF_MIRROR", raising=False)
    assert archive_address(release) == release.url
    monkeypatch.setenv("ALBERT_TF_MIRROR", "https://mirror.example.cn/pub/")
    expected = "https://mirror.example.cn/pub/albert_zh/albert_tiny.zip"
    assert archive_address(release) == expected
    for wrong in ("mirror.example.cn", "file:///tmp"):
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


def test_names_that_cannot_be_fetched(tmp_path):
    with pytest.raises(ValueError, match="no release named 'tiny'.*albert_tiny_zh"):
        download_release("tiny", cache=tmp_path)
    with pytest.raises(ValueError, match="No public address of"):
        download_release("albert_tiny_google_finetuned_lcqmc", cache=tmp_path)


def test_two_at_once(server, release, tmp_path):
    server.files["/files/golden.zip"] = ARCHIVE
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        call = functools.partial(download_release, cache=tmp_path)
        assert set(pool.map(call, ["golden"] * 4)) == {tmp_path / "golden"}
    assert names(tmp_path) == {"golden"}


def test_files_in_the_way_are_not_lost(server, release, tmp_path):
    shutil.copytree(GOLDEN, tmp_path / "golden" / "sub")
    server.files["/files/golden.zip"] = ARCHIVE
    with pytest.raises(FileExistsError, match="is in the way"):
        download_release("golden", cache=tmp_path)
    assert (tmp_path / "golden" / "sub" / CONFIG).exists()
    assert len(server.requests) == 0
