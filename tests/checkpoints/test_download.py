"""Downloads of releases: complete, checked against the release, kept in a cache."""

import concurrent.futures
import dataclasses
import http.server
import threading
import time

import huggingface_hub
import numpy as np
import pytest
from archives import zipped
from checkpoint_files import GOLDEN

from albert_tf.checkpoints import (
    RELEASES,
    CheckpointError,
    config_arguments,
    load_checkpoint,
)
from albert_tf.checkpoints.download import download_release
from albert_tf.checkpoints.releases import Release
from albert_tf.files import file_digest
from albert_tf.models import AlbertBackbone, AlbertPretrainer

FOLDER = GOLDEN / "google_early"
CHECKPOINT = ("model.ckpt-best.index", "model.ckpt-best.data-00000-of-00001")
CONFIG = "albert_config.json"
PATH = "/files/golden.zip"


class Handler(http.server.BaseHTTPRequestHandler):
    """Send `server.files`: bytes or a status."""

    def do_GET(self):
        self.server.requests.append(self.path)
        content = self.server.files.get(self.path, 404)
        if isinstance(content, int):
            return self.send_error(content)
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: self.server.cut])

    def log_message(self, *args):
        pass


@pytest.fixture
def server(monkeypatch, tmp_path):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.files, server.requests, server.cut = {}, [], None
        server.address = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setenv("ALBERT_TF_MIRROR", server.address)
        monkeypatch.setenv("ALBERT_TF_CACHE", str(tmp_path))
        # Failed downloads are tried again after a pause.
        monkeypatch.setattr(time, "sleep", lambda seconds: None)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


def replace_hub(monkeypatch, answer):
    """Replace the Hub: `answer` is the folder it returns, or `None`."""

    def snapshot_download(name, local_files_only=False, **_):
        assert name == "me/golden"
        if local_files_only or answer is None:
            raise huggingface_hub.errors.LocalEntryNotFoundError("no answer")
        return str(answer)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)


@pytest.fixture
def release(monkeypatch):
    """A release named "golden", whose archive is the golden checkpoint."""
    replace_hub(monkeypatch, None)
    release = Release(
        name="golden",
        language="zh",
        layout="google",
        arguments=config_arguments(FOLDER / CONFIG),
        vocabulary="vocab.txt",
        lowercase=True,
        url=f"https://models.example.com{PATH}",
        index_sha256=file_digest(FOLDER / CHECKPOINT[0]),
        mirrors=("me/golden",),
    )
    monkeypatch.setitem(RELEASES, release.name, release)
    return release


def golden_files(*names, folder="model/"):
    names = names or (*CHECKPOINT, CONFIG)
    return {folder + name: (FOLDER / name).read_bytes() for name in names}


ARCHIVE = zipped(golden_files())


def names(folder):
    return {path.name for path in folder.iterdir()}


# === Successful downloads ===


def test_a_release_is_fetched_once(server, release, tmp_path, capfd):
    """The second call needs no network."""
    server.files[PATH] = ARCHIVE
    folder = download_release("golden", progress=True)
    assert names(tmp_path) == {"golden"}
    assert names(folder) == {*CHECKPOINT, CONFIG}
    assert (folder / CONFIG).read_bytes() == (FOLDER / CONFIG).read_bytes()
    assert "100%" in capfd.readouterr().err
    server.files.clear()
    assert download_release("golden") == folder
    assert len(server.requests) == 1


def test_a_release_is_a_preset(server, release):
    server.files[PATH] = ARCHIVE
    model = AlbertPretrainer.from_preset("golden", num_sop_classes=0)
    assert model.sop_head is None
    expected = load_checkpoint(FOLDER).get_weights()
    for weight, value in zip(model.backbone.get_weights(), expected, strict=True):
        np.testing.assert_array_equal(weight, value)
    with pytest.raises(ValueError, match="is not a preset.*load_checkpoint"):
        AlbertBackbone.from_preset("golden")
    with pytest.raises(ValueError, match="Build a task with random weights on"):
        AlbertPretrainer.from_preset("golden", load_weights=False)


def test_two_processes_at_once(server, release, tmp_path):
    server.files[PATH] = ARCHIVE
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        found = set(pool.map(download_release, ["golden"] * 4))
    assert found == {tmp_path / "golden"}
    assert names(tmp_path) == {"golden"}


def test_an_archive_in_the_cache_is_used_and_kept(server, release, tmp_path):
    archive = zipped(golden_files(*CHECKPOINT))
    (tmp_path / "golden.zip").write_bytes(archive)
    # An archive without config gets the one in the table of releases.
    folder = download_release("golden")
    assert names(folder) == {*CHECKPOINT, CONFIG}
    assert config_arguments(folder / CONFIG) == release.arguments
    assert (tmp_path / "golden.zip").read_bytes() == archive
    assert not server.requests


# === Failed downloads leave nothing behind ===


def test_a_mirror_on_the_hub_is_tried(server, release, tmp_path, monkeypatch):
    server.files[PATH] = 503
    hub = tmp_path / "hub"
    hub.mkdir()
    replace_hub(monkeypatch, hub)
    # Any of these may be missing after an interruption: it is not taken for a release.
    lacking = {
        "config.json": "has no weights",
        "model-00001-of-00002.safetensors": "one of several files",
        "model.safetensors": "lacks the vocabulary",
    }
    for name, problem in lacking.items():
        (hub / name).touch()
        with (
            pytest.warns(UserWarning, match="(?s)could not be .*Trying hf://me/golden"),
            pytest.raises(ConnectionError, match=problem),
        ):
            download_release("golden")
    (hub / "vocab.txt").touch()
    assert download_release("golden") == hub
    with pytest.raises(FileNotFoundError, match="no checkpoint in.*interrupted"):
        part = hub / ".cache" / "huggingface" / "download"
        part.mkdir(parents=True)
        (part / "abc.incomplete").touch()
        (hub / "model.safetensors").unlink()
        (hub / "model-00001-of-00002.safetensors").unlink()
        load_checkpoint(hub)


@pytest.mark.parametrize("lost", [*CHECKPOINT, CONFIG])
def test_a_release_that_lost_a_file_is_fetched_again(server, release, tmp_path, lost):
    server.files[PATH] = ARCHIVE
    file = download_release("golden") / lost
    content = file.read_bytes()
    file.unlink()
    if lost == CHECKPOINT[1]:
        file.write_bytes(content[:-100])
    assert download_release("golden") == tmp_path / "golden"
    assert file.read_bytes() == content
    assert names(tmp_path) == {"golden"}
    assert len(server.requests) == 2


@pytest.mark.parametrize("failure", ["status", "cut"])
def test_no_answer_or_an_interrupted_one(server, release, tmp_path, failure):
    server.files[PATH] = 503 if failure == "status" else ARCHIVE
    server.cut = 1000
    with (
        pytest.warns(UserWarning, match="Trying hf://me/golden"),
        pytest.raises(ConnectionError) as error,
    ):
        download_release("golden")
    message = str(error.value)
    assert message.startswith(f"{server.address}{PATH} could not be downloaded")
    assert f"put it at {tmp_path / 'golden.zip'}" in message
    assert names(tmp_path) == set()
    server.files[PATH], server.cut = ARCHIVE, None
    assert download_release("golden").is_dir()


def test_bad_archives_and_other_weights(server, release, tmp_path, monkeypatch):
    release = dataclasses.replace(release, index_sha256="0" * 64)
    monkeypatch.setitem(RELEASES, release.name, release)
    other = "is not golden as it was released: it holds a checkpoint with another"
    for files, error, message in (
        ({"a.txt": b"a"}, CheckpointError, "holds 0 TensorFlow checkpoints"),
        (golden_files(CHECKPOINT[0], CONFIG), FileNotFoundError, "does not exist"),
        (golden_files(), CheckpointError, other),
    ):
        server.files[PATH] = zipped(files)
        with pytest.raises(error, match=message) as found:
            download_release("golden")
        assert "golden" in str(found.value)
        assert names(tmp_path) == set()
