"""`albert-tf inspect | convert | download` on forms of every kind."""

import functools
import http.server
import json
import pathlib
import re
import shutil
import threading

import keras_hub
import pytest
from typer.testing import CliRunner

import albert_tf
import albert_tf_cli
from albert_tf.checkpoints import RELEASES, releases
from albert_tf.checkpoints.releases import Release
from albert_tf_cli import checkpoints, common

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"


def run(*command):
    result = CliRunner().invoke(albert_tf_cli.app, [str(part) for part in command])
    return result


def printed(*command):
    result = run(*command)
    assert result.exception is None, result.exception
    return result.stdout


# === convert ===


@pytest.mark.parametrize(
    ("name", "to"),
    [
        ("google_groups", "huggingface"),
        ("google_groups", "kerashub"),
        ("albert_zh_preln", "albert_zh"),
        ("albert_zh_preln", "keras"),
        pytest.param("google_groups", "google", marks=pytest.mark.slow),
        pytest.param("google_groups", "keras", marks=pytest.mark.slow),
    ],
)
def test_convert_and_verify(tmp_path, name, to):
    out = printed("convert", GOLDEN / name, tmp_path / "to", "--to", to, "--verify")
    assert f"to ({to})" in re.sub(r"\s+", " ", out)
    assert "left out" in out and len(out.splitlines()) < 20
    differences = re.findall(r"(\w+_output|\w+_logits)\s+\S\s+(\S+e[+-]\d+)", out)
    assert len(differences) == (2 if to == "kerashub" else 4)
    assert all(float(difference) < 1e-5 for _, difference in differences)
    loaded = albert_tf.load_checkpoint(tmp_path / "to")
    original = albert_tf.load_checkpoint(GOLDEN / name)
    assert loaded.count_params() == original.count_params()


def test_what_was_converted_opens_where_it_should(tmp_path):
    printed("convert", GOLDEN / "google_v2", tmp_path / "theirs", "--to", "kerashub")
    keras_hub.models.AlbertBackbone.from_preset(str(tmp_path / "theirs"))
    printed("convert", tmp_path / "theirs", tmp_path / "ours", "--to", "keras")
    albert_tf.models.AlbertBackbone.from_preset(str(tmp_path / "ours"))


def test_the_vocabulary_travels(tmp_path):
    shutil.copytree(GOLDEN / "google_v2", tmp_path / "source")
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokens += [chr(0x4E00 + i) for i in range(115)]
    text = "\n".join(tokens) + "\n"
    (tmp_path / "source" / "vocab.txt").write_text(text, encoding="utf-8")
    printed("convert", tmp_path / "source", tmp_path / "hf", "--to", "huggingface")
    assert (tmp_path / "hf" / "vocab.txt").read_text(encoding="utf-8") == text
    config = json.loads((tmp_path / "hf" / "tokenizer_config.json").read_text())
    assert config["tokenizer_class"] == "BertTokenizer"


@pytest.mark.parametrize(
    ("source", "to", "message"),
    [
        (
            GOLDEN / "albert_zh_preln",
            "google",
            "Layouts that can: albert_zh, keras.",
        ),
        (GOLDEN / "google_early", "kerashub", "activation='relu'"),
        ("albert_tiny_zhh", "keras", "Is albert_tiny_zh meant?"),
        ("", "keras", "should name a checkpoint"),
    ],
)
def test_what_cannot_be_converted(tmp_path, source, to, message):
    result = run("convert", source, tmp_path / "to", "--to", to)
    assert isinstance(result.exception, (ValueError, OSError))
    assert message in str(result.exception)
    assert list(tmp_path.iterdir()) == []


def test_a_directory_with_another_checkpoint_is_left_alone(tmp_path):
    folder = tmp_path / "to"
    printed("convert", GOLDEN / "google_v2", folder, "--to", "huggingface")
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    result = run("convert", GOLDEN / "google_v2", folder, "--to", "keras")
    assert "holds files of another checkpoint" in str(result.exception)
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


def test_inspect_and_convert_an_archive(tmp_path):
    path = shutil.make_archive(tmp_path / "a", "gztar", GOLDEN / "albert_zh_postln")
    report = json.loads(printed("inspect", path, "--json"))
    assert report["path"] == f"{path}/model.ckpt-best"
    out = printed("convert", path, tmp_path / "keras", "--to", "keras", "--verbose")
    assert "written (keras)" in out


# === download ===


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A mirror with one release, a golden checkpoint, and a cache that is empty."""
    (tmp_path / "server").mkdir()
    shutil.make_archive(tmp_path / "server" / "tiny", "zip", GOLDEN / "google_early")
    arguments = albert_tf.checkpoints.config_arguments(
        GOLDEN / "google_early" / "albert_config.json"
    )
    release = Release(
        name="golden",
        language="zh",
        layout="google",
        arguments=arguments,
        vocabulary=None,
        lowercase=True,
        url="https://models.example.com/tiny.zip",
    )
    monkeypatch.setitem(RELEASES, "golden", release)
    for module in (common, checkpoints):
        monkeypatch.setattr(module, "releases", lambda: dict.fromkeys(RELEASES))
    monkeypatch.setattr(releases, "_checksums", dict)
    monkeypatch.setenv("ALBERT_TF_CACHE", str(tmp_path / "cache"))
    handler = functools.partial(
        http.server.SimpleHTTPRequestHandler, directory=tmp_path / "server"
    )
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setenv("ALBERT_TF_MIRROR", address)
        yield server
        server.shutdown()


def test_download_and_then_without_network(server, tmp_path):
    assert "golden is in" in printed("download", "golden")
    server.shutdown()
    assert "golden is in" in printed("download", "golden")
    backbone = albert_tf.load_checkpoint("golden")
    assert backbone.count_params() == (
        albert_tf.load_checkpoint(GOLDEN / "google_early").count_params()
    )
    assert "golden" in json.loads(printed("inspect", "golden", "--json"))["path"]


def test_a_folder_of_the_name_comes_first(server, tmp_path, monkeypatch):
    shutil.copytree(GOLDEN / "albert_zh_preln", tmp_path / "here" / "golden")
    monkeypatch.chdir(tmp_path / "here")
    assert albert_tf.load_checkpoint("golden").normalize_first
    assert not (tmp_path / "cache").exists()


def test_download_lists_the_releases():
    lines = printed("download").splitlines()
    assert [line.split()[0] for line in lines if line[0] != " "][1:] == [*RELEASES]
    # As a terminal often is, which the tests' is not wider than.
    assert all(len(line) <= 80 for line in lines)
    for name, message in (("albert_tiny_zhh", "Is albert_tiny_zh meant"), ("x", "no")):
        assert message in str(run("download", name).exception)
