"""The table of releases, and what is public of their files."""

import json
import shutil

import pytest
from checkpoint_files import weights_of

from albert_tf.checkpoints import RELEASES, config_arguments, open_checkpoint
from albert_tf.checkpoints.layouts import ALBERT_ZH, GOOGLE
from albert_tf.checkpoints.plan import plan_weights
from albert_tf.models import AlbertBackbone, AlbertPretrainer

KNOWN = [name for name, release in RELEASES.items() if release.index_sha256]
# Folders and configs in `released/` that do not have the name of their release.
FOLDERS = {
    "albert_tiny_zh": "albert_tiny_zh_a",
    "albert_tiny_zh_489k": "albert_tiny_zh_b",
}
CONFIGS = {
    "albert_tiny_zh": "configs/albert_config_tiny.json",
    "albert_tiny_zh_google": "configs/albert_config_tiny_google.json",
    "albert_small_zh_google": "albert_small_zh_google/albert_config.json",
    "albert_base_zh": "configs/albert_config_base.json",
    "albert_base_zh_google": "albert_base_zh_google/albert_config.json",
    "albert_large_zh": "configs/albert_config_large.json",
    "albert_xlarge_zh_177k": "configs/albert_config_xlarge.json",
}


# === The table ===


def test_configs_are_the_released_ones(assets, tmp_path):
    for name, file in CONFIGS.items():
        expected = json.loads((assets / "released" / file).read_text())
        config, arguments = RELEASES[name].config, RELEASES[name].arguments
        assert config == {field: expected[field] for field in config}
        (tmp_path / "config.json").write_text(json.dumps(config))
        assert arguments.items() <= config_arguments(tmp_path / "config.json").items()


# The sizes of the golden checkpoint of a layout, by the argument.
GOLDEN_OF = {"google": "google_v2", "albert_zh": "albert_zh_postln"}
LENGTHS = {
    120: "vocabulary_size",
    16: "embedding_dim",
    48: "hidden_dim",
    96: "intermediate_dim",
    64: "max_sequence_length",
    2: "num_segments",
}


def original_shapes(release):
    """Return the names of the original code with the shapes of a release."""
    sizes = {"max_sequence_length": 512, "num_segments": 2, **release.arguments}
    return {
        name: tuple(sizes[LENGTHS[length]] for length in values.shape)
        for name, values in weights_of(GOLDEN_OF[release.layout]).items()
    }


def our_shapes(release):
    layout = {"google": GOOGLE, "albert_zh": ALBERT_ZH}[release.layout]
    changes = {"num_layers": 1, "hidden_dropout": 0.0, "attention_dropout": 0.0}
    arguments = {**layout.fixed, **release.arguments, **changes}
    model = AlbertPretrainer(AlbertBackbone(**arguments))
    return {
        name: tensors.shapes(weight.shape)
        for weight, tensors in plan_weights(layout, model)
        for name in tensors.names
    }


def test_names_and_shapes_of_every_release(no_weights, monkeypatch):
    # An optimizer would create variables.
    monkeypatch.setattr(AlbertPretrainer, "compile", lambda self: None)
    for release in RELEASES.values():
        assert our_shapes(release) == original_shapes(release), release.name


# === Public files: indexes and configs of the releases ===


def released_index(assets, name, folder):
    """Copy an index and its config and return the prefix; all data are zeros."""
    (index,) = (assets / "released" / FOLDERS.get(name, name)).glob("*.index")
    shutil.copy(index, folder)
    for config in index.parent.glob("*config*.json"):
        shutil.copy(config, folder)
    size = json.loads(index.with_suffix(".index.json").read_text())["data_file_bytes"]
    with open(folder / f"{index.stem}.data-00000-of-00001", "wb") as file:
        file.truncate(size)
    return folder / index.stem


def test_released_indexes_are_recognised(assets, tmp_path):
    for name in KNOWN:
        (tmp_path / name).mkdir()
        prefix = released_index(assets, name, tmp_path / name)
        opened = open_checkpoint(prefix, config=RELEASES[name].config)
        assert opened.release == RELEASES[name]
        shapes = {x: tuple(y) for x, y in opened.shapes.items()}
        weights = {x: y for x, y in shapes.items() if opened.layout.kind_of(x) is None}
        assert weights.items() <= original_shapes(RELEASES[name]).items()


def test_a_wrong_released_config_is_corrected(assets, tmp_path):
    prefix = released_index(assets, "albert_tiny_zh_google", tmp_path)
    with pytest.warns(UserWarning, match="num_layers=1, .* 4,"):
        assert open_checkpoint(prefix).arguments["num_layers"] == 4
    config = json.loads((tmp_path / "albert_config_tiny_g.json").read_text())
    assert open_checkpoint(prefix, config).arguments["num_layers"] == 1
