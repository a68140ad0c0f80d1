import json
import math
import pathlib
from urllib.parse import urlsplit

import pytest

from albert_tf.checkpoints import releases
from albert_tf.checkpoints.formats import bundle_index
from albert_tf.checkpoints.releases import RELEASES, identify
from albert_tf.models import AlbertBackbone

KNOWN = [name for name, release in RELEASES.items() if release.checksums]

# The folder in `released/` that has the index of each release.
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
    "albert_xlarge_zh_183k": "configs/albert_config_xlarge.json",
}


def test_the_names():
    assert all(name == release.name for name, release in RELEASES.items())
    sizes = ("base", "large", "xlarge", "xxlarge")
    assert {name for name in RELEASES if RELEASES[name].language == "en"} == {
        f"albert_{size}_v{version}" for size in sizes for version in (1, 2)
    }
    assert {f"albert_{size}_zh_google" for size in sizes} <= set(RELEASES)
    assert len(RELEASES) == 22


def test_addresses():
    urls = [release.url for release in RELEASES.values() if release.url]
    assert len(urls) == len(set(urls)) == 21
    files = [pathlib.PurePosixPath(urlsplit(url).path).name for url in urls]
    assert len(files) == len(set(files)), "they share the cache folder"
    assert all(url.startswith("https://storage.googleapis.com/") for url in urls)
    mirrors = [mirror for release in RELEASES.values() for mirror in release.mirrors]
    assert len(mirrors) == len(set(mirrors)) == 14
    for release in RELEASES.values():
        assert len(release.tf_hub) == (release.language == "en") * (
            1 if release.name.endswith("v1") else 2
        )


def test_published_figures_are_percentages_with_a_source():
    scores = [score for release in RELEASES.values() for score in release.accuracy]
    assert len(scores) > 90
    for score in scores:
        assert 40 < score.value < 100
        assert score.source.startswith("https://github.com/")
        assert score.split or score.note


def test_only_the_trainings_of_tiny_are_confused():
    pairs = {name: RELEASES[name].confused_with for name in RELEASES}
    assert {name: others for name, others in pairs.items() if others} == {
        "albert_tiny_zh": ("albert_tiny_zh_489k",),
        "albert_tiny_zh_489k": ("albert_tiny_zh",),
    }


@pytest.mark.parametrize("name", ["albert_tiny_zh", "albert_small_zh_google"])
def test_checksums_are_of_a_model_of_the_arguments(no_weights, name):
    release = RELEASES[name]
    parameters = sum(
        math.prod(shape)
        for tensor, shape in release.shapes.items()
        if tensor.startswith("bert/")
    )
    assert AlbertBackbone(**release.arguments).count_params() == parameters
    projected = "bert/embeddings/word_embeddings_2" in release.shapes
    assert release.layout == ("albert_zh" if projected else "google")


def test_config_says_what_the_arguments_say():
    for name, release in RELEASES.items():
        config = release.config
        assert json.loads(json.dumps(config)) == config
        assert config["hidden_size"] == release.arguments["hidden_dim"]
        assert config["intermediate_size"] == 4 * config["hidden_size"]
        small = name.startswith(("albert_tiny", "albert_small"))
        relu = name.endswith("zh_google") and not small
        assert config["hidden_act"] == ("relu" if relu else "gelu"), name
        assert ("ln_type" in config) == (release.layout == "albert_zh"), name


def test_configs_are_the_released_ones(assets):
    for name, file in CONFIGS.items():
        expected = json.loads((assets / "released" / file).read_text())
        config = RELEASES[name].config
        assert config == {**config, **{field: expected[field] for field in config}}


def test_checksums_are_those_of_the_released_indexes(assets):
    assert len(KNOWN) == 7
    for name in KNOWN:
        folder = assets / "released" / FOLDERS.get(name, name)
        (path,) = folder.glob("*.index")
        _, entries = bundle_index._parse(path.read_bytes())
        checksums = {tensor: entry.crc32c for tensor, entry in entries.items()}
        assert RELEASES[name].checksums.items() <= checksums.items()
        shapes = {tensor: entry.shape for tensor, entry in entries.items()}
        assert RELEASES[name].shapes.items() <= shapes.items()
        # The optimizer slots and the step counter of the file are no difference.
        assert identify(checksums) == (RELEASES[name], [])


# === identify ===


def test_differences_are_named():
    release = RELEASES["albert_small_zh_google"]
    checksums = release.checksums
    checksums["bert/pooler/dense/bias"] += 1
    del checksums["cls/seq_relationship/output_bias"]
    checksums["classifier/kernel"] = 5
    assert identify(checksums) == (
        release,
        [
            "bert/pooler/dense/bias has other values",
            "cls/seq_relationship/output_bias is missing",
            "classifier/kernel is not in the release",
        ],
    )


def test_slots_and_step_are_no_differences():
    release = RELEASES["albert_large_zh"]
    slots = {f"{name}/adam_m": 1 for name in release.checksums}
    assert identify({**release.checksums, **slots, "global_step": 3}) == (release, [])


def test_encoder_alone_is_still_the_release():
    release = RELEASES["albert_tiny_zh_google"]
    encoder = {
        name: crc32c
        for name, crc32c in release.checksums.items()
        if name.startswith("bert/")
    }
    found, differences = identify(encoder)
    assert found == release
    assert len(differences) == 7
    assert all(text.endswith(" is missing") for text in differences)


def test_half_of_the_tensors_is_not_enough():
    release = RELEASES["albert_tiny_zh"]
    assert len(release.checksums) == 31
    for equal in (0, 15, 16):
        checksums = {
            name: crc32c + (number >= equal)
            for number, (name, crc32c) in enumerate(release.checksums.items())
        }
        found, differences = identify(checksums)
        assert found == (release if equal > 15 else None)
        assert len(differences) == (31 - equal if found else 0)


def test_nothing_known(monkeypatch):
    assert identify({}) == (None, [])
    assert identify({"dense/kernel": 1, "global_step": 2}) == (None, [])
    monkeypatch.setattr(releases, "_checksums", dict)
    assert identify({"a": 1}) == (None, [])
