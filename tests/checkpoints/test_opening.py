"""Every way to name a checkpoint and its config."""

import json
import shutil

import keras
import numpy as np
import pytest
from checkpoint_files import (
    GOLDEN,
    backbone_inputs,
    config_of,
    copy,
    expected,
)

from albert_tf import load_checkpoint
from albert_tf.checkpoints import CheckpointError, open_checkpoint

PREFIX = "model.ckpt-best"
ENDINGS = ("", ".index", ".data-00000-of-00001", ".meta")


def test_directory_prefix_and_files(monkeypatch):
    directory = GOLDEN / "google_v2"
    assert open_checkpoint(directory).path == directory / PREFIX
    for ending in ENDINGS:
        path = GOLDEN / "google_v2" / f"{PREFIX}{ending}"
        for given in (path, str(path)):
            assert open_checkpoint(given).path == GOLDEN / "google_v2" / PREFIX
    monkeypatch.chdir(GOLDEN / "albert_zh_postln")
    for relative in (".", f"{PREFIX}.index"):
        assert open_checkpoint(relative).layout.name == "albert_zh"


@pytest.mark.parametrize("folder", ["中文 模型 (1)", "v2*"])
def test_folder_names_with_other_characters(tmp_path, folder):
    shutil.copytree(GOLDEN / "google_v2", tmp_path / folder)
    assert open_checkpoint(tmp_path / folder).layout.name == "google"


def test_the_authors_checkpoint_file_is_not_followed(tmp_path):
    folder = copy("google_v2", tmp_path)
    (folder / "checkpoint").write_text(
        'model_checkpoint_path: "/data/home/author/model.ckpt-500000"\n'
    )
    assert open_checkpoint(folder).path == folder / PREFIX


# === The config ===


def test_config_under_another_name_is_found(tmp_path):
    folder = copy("google_v2", tmp_path)
    (folder / "albert_config.json").rename(folder / "bert_config.json")
    assert open_checkpoint(folder).config == config_of("google_v2")
    (folder / "bert_config.json").rename(folder / "albert_config_tiny.json")
    (folder / "bert_config.json").write_text("{}")
    assert open_checkpoint(folder).config == config_of("google_v2")


def test_config_as_a_dict_is_taken_and_left_alone(tmp_path):
    folder = copy("google_v2", tmp_path)
    (folder / "albert_config.json").unlink()
    config = config_of("google_v2")
    backbone = load_checkpoint(folder, config=config)
    assert backbone.activation(np.float32([-1.0])).numpy() < 0.0
    assert config == config_of("google_v2")


def test_config_as_a_path_wins_over_the_one_beside(tmp_path):
    config = {**config_of("google_v2"), "hidden_act": "relu"}
    (tmp_path / "mine.json").write_text(json.dumps(config))
    backbone = load_checkpoint(GOLDEN / "google_v2", config=tmp_path / "mine.json")
    assert backbone.activation is keras.activations.relu


def test_fields_without_a_size_may_be_absent(tmp_path):
    """Older configs say nothing of these; `AlbertConfig` has defaults."""
    config = config_of("google_v2")
    for field in (
        "hidden_act",
        "hidden_dropout_prob",
        "attention_probs_dropout_prob",
        "num_hidden_groups",
        "inner_group_num",
    ):
        del config[field]
    arrays = expected("google_v2")
    outputs = load_checkpoint(GOLDEN / "google_v2", config=config)(
        backbone_inputs(arrays)
    )
    assert np.abs(outputs["pooled_output"] - arrays["pooled_output"]).max() < 1e-5


def test_config_without_ln_type_is_post_ln():
    config = config_of("albert_zh_postln")
    del config["ln_type"]
    backbone = load_checkpoint(GOLDEN / "albert_zh_postln", config=config)
    assert backbone.normalize_first is False


def test_several_configs_are_refused_until_one_is_named(tmp_path):
    folder = copy("google_v2", tmp_path)
    shutil.copy(folder / "albert_config.json", folder / "albert_config_2.json")
    with pytest.raises(
        CheckpointError, match=r"several config.*albert_config.json.*albert_config_2"
    ):
        load_checkpoint(folder)
    checkpoint = open_checkpoint(folder, config=folder / "albert_config_2.json")
    assert checkpoint.config == config_of("google_v2")


def test_no_config_is_an_error_that_says_what_to_do(tmp_path):
    folder = copy("google_v2", tmp_path)
    (folder / "albert_config.json").unlink()
    with pytest.raises(FileNotFoundError, match="no config beside.*`config=`"):
        load_checkpoint(folder)


def test_a_named_config_that_does_not_exist():
    with pytest.raises(FileNotFoundError, match="no config file nowhere.json"):
        load_checkpoint(GOLDEN / "google_v2", config="nowhere.json")


# === Files that are not there ===


def test_missing_checkpoint(tmp_path):
    for path in ("nowhere", "model.ckpt.index"):
        with pytest.raises(FileNotFoundError, match=r"no checkpoint at .*\.index does"):
            load_checkpoint(tmp_path / path)


def test_directory_without_a_checkpoint(tmp_path):
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(FileNotFoundError, match=r"no \*.index file.*notes.txt"):
        load_checkpoint(tmp_path)


def test_index_without_data(tmp_path):
    folder = copy("google_v2", tmp_path)
    (folder / f"{PREFIX}.data-00000-of-00001").unlink()
    with pytest.raises(FileNotFoundError, match="no data beside it.*put the data file"):
        load_checkpoint(folder)


def test_data_without_index(tmp_path):
    folder = copy("google_v2", tmp_path)
    (folder / f"{PREFIX}.index").unlink()
    with pytest.raises(FileNotFoundError, match=r"best\.index does not exist"):
        load_checkpoint(folder / f"{PREFIX}.data-00000-of-00001")


def test_two_checkpoints_are_refused_until_one_is_named(tmp_path):
    folder = copy("google_v2", tmp_path)
    for ending in ENDINGS[1:3]:
        shutil.copy(folder / f"{PREFIX}{ending}", folder / f"model.ckpt-7{ending}")
    with pytest.raises(
        CheckpointError, match="2 checkpoints.*model.ckpt-7.*model.ckpt-best.*Say which"
    ):
        load_checkpoint(folder)
    assert open_checkpoint(folder / "model.ckpt-7").path.name == "model.ckpt-7"
