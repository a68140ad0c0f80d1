"""`albert-tf inspect | convert | download`."""

import dataclasses
import functools
import http.server
import json
import re
import shutil
import threading

import keras_hub
import pytest
from command_line import refused, run
from conftest import GOLDEN

import albert_tf
from albert_tf.checkpoints import RELEASES
from albert_tf_cli import common


def printed(*command):
    return run(*command).stdout


# === inspect ===


def test_inspect_prints_a_table_or_json(tmp_path):
    lines = printed("inspect", GOLDEN / "google_groups").splitlines()
    lines = [line.strip() for line in lines]
    rows = dict(re.split("  +", x, maxsplit=1) for x in lines if "  " in x)
    assert (rows["layout"], rows["missing"]) == ("google", "none")
    assert rows["heads"] == "masked_lm_head, sop_head"
    assert int(rows["parameters"].replace(",", "")) > 10_000
    # By one of its files, with a config from elsewhere.
    shutil.copytree(GOLDEN / "albert_zh_preln", tmp_path / "a")
    config = next((tmp_path / "a").glob("*.json")).rename(tmp_path / "my.json")
    index = tmp_path / "a" / "model.ckpt-best.index"
    report = json.loads(printed("inspect", index, "--config", config, "--json"))
    assert report["layout"] == "albert_zh" and report["config"]["ln_type"] == "preln"
    assert report["missing"] == report["unused"] == []


# === convert ===


@pytest.mark.parametrize(
    ("name", "to"),
    [
        ("google_groups", "huggingface"),
        pytest.param("albert_zh_preln", "albert_zh", marks=pytest.mark.slow),
    ],
)
def test_convert_and_verify(tmp_path, name, to):
    out = printed("convert", GOLDEN / name, tmp_path / "to", "--to", to, "--verify")
    assert f"to ({to})" in re.sub(r"\s+", " ", out)
    assert "left_out" in out and len(out.splitlines()) < 20
    differences = re.findall(r"(\w+_output|\w+_logits)\s+\S\s+(\S+e[+-]\d+)", out)
    assert len(differences) == 4
    assert all(float(difference) < 1e-5 for _, difference in differences)
    loaded = albert_tf.load_checkpoint(tmp_path / "to")
    original = albert_tf.load_checkpoint(GOLDEN / name)
    assert loaded.count_params() == original.count_params()


def test_an_archive_becomes_a_preset_of_keras_hub(tmp_path):
    path = shutil.make_archive(tmp_path / "a", "gztar", GOLDEN / "google_v2")
    assert json.loads(printed("inspect", path, "--json"))["path"].startswith(path)
    printed("convert", path, tmp_path / "theirs", "--to", "kerashub")
    keras_hub.models.AlbertBackbone.from_preset(str(tmp_path / "theirs"))
    printed("convert", tmp_path / "theirs", tmp_path / "ours", "--to", "keras")
    albert_tf.models.AlbertBackbone.from_preset(str(tmp_path / "ours"))


# === download ===


@pytest.fixture
def server(tmp_path, monkeypatch):
    """Serve a golden checkpoint as a release, beside an empty cache."""
    (tmp_path / "server").mkdir()
    shutil.make_archive(tmp_path / "server" / "tiny", "zip", GOLDEN / "google_early")
    config = GOLDEN / "google_early" / "albert_config.json"
    release = dataclasses.replace(
        RELEASES["albert_tiny_zh"],
        name="golden",
        layout="google",
        arguments=albert_tf.checkpoints.config_arguments(config),
        **dict(vocabulary=None, index_sha256=None, mirrors=()),
        url="https://models.example.com/tiny.zip",
    )
    monkeypatch.setitem(RELEASES, "golden", release)
    monkeypatch.setattr(common, "releases", lambda: dict.fromkeys(RELEASES))
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
    assert "golden" in json.loads(printed("inspect", "golden", "--json"))["path"]


def test_download_lists_the_releases():
    lines = printed("download").splitlines()
    assert [line.split()[0] for line in lines if line[0] != " "] == [*RELEASES]
    assert all(len(line) <= 80 for line in lines)
    assert "Did you mean albert_tiny_zh?" in refused("download", "albert_tiny_zhh")
