"""`albert-tf inspect | convert | download`."""

import json
import re
import shutil

from command_line import refused, run
from conftest import GOLDEN

import albert_tf
from albert_tf.checkpoints import RELEASES


def printed(*command):
    return run(*command).stdout


# === inspect ===


def test_inspect_prints_a_table_or_json(tmp_path):
    lines = printed("inspect", GOLDEN / "google_groups").splitlines()
    lines = [line.strip() for line in lines]
    rows = dict(re.split("  +", x, maxsplit=1) for x in lines if "  " in x)
    assert (rows["layout"], rows["missing"]) == ("google", "none")
    assert rows["heads"] == "masked_lm_head, sop_head"
    assert rows["parameters"] == "0.082 M (82,016)"
    assert rows["dtypes"] == "float32=0.332 MB"
    # By one of its files, with a config from elsewhere.
    shutil.copytree(GOLDEN / "albert_zh_preln", tmp_path / "a")
    config = next((tmp_path / "a").glob("*.json")).rename(tmp_path / "my.json")
    index = tmp_path / "a" / "model.ckpt-best.index"
    report = json.loads(printed("inspect", index, "--config", config, "--json"))
    assert report["layout"] == "albert_zh" and report["config"]["ln_type"] == "preln"
    assert report["missing"] == report["unused"] == []


# === convert ===


def test_convert_and_verify(tmp_path):
    name, to = "google_groups", "huggingface"
    out = printed("convert", GOLDEN / name, tmp_path / "to", "--to", to, "--verify")
    assert f"to ({to})" in re.sub(r"\s+", " ", out)
    assert "left_out" in out and len(out.splitlines()) < 20
    differences = re.findall(r"difference of \w+_(?:output|logits)\s+(\S+)", out)
    assert len(differences) == 4 and max(map(float, differences)) < 1e-5
    loaded = albert_tf.load_checkpoint(tmp_path / "to")
    original = albert_tf.load_checkpoint(GOLDEN / name)
    assert loaded.count_params() == original.count_params()


# === download ===


def test_download_lists_the_releases():
    lines = printed("download").splitlines()
    assert [line.split()[0] for line in lines if line[0] != " "] == [*RELEASES]
    assert all(len(line) <= 80 for line in lines)
    assert "Did you mean albert_tiny_zh?" in refused("download", "albert_tiny_zhh")
