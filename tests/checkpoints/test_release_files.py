"""Releases: what is public of them is recognised, and read."""

import json
import os
import shutil
import warnings

import numpy as np
import pytest
from checkpoint_files import config_of, copy, weights_of, write

import albert_tf
from albert_tf.checkpoints import RELEASES, CheckpointError, open_checkpoint
from albert_tf.checkpoints.heads import HEADS
from albert_tf.checkpoints.layouts import ALBERT_ZH, GOOGLE
from albert_tf.checkpoints.weights import weight_shape
from albert_tf.models import AlbertPretrainer


def test_a_release_is_recognised_and_a_changed_one_too(tmp_path, monkeypatch):
    from albert_tf.checkpoints import releases

    folder = copy("google_v2", tmp_path)
    checksums = open_checkpoint(folder).source.checksums
    shapes = open_checkpoint(folder).source.shapes
    known = {
        name: [crc, shapes[name]]
        for name, crc in checksums.items()
        if not name.endswith(("adam_m", "adam_v", "global_step"))
    }
    table = {"albert_base_zh_google": known}
    monkeypatch.setattr(releases, "_checksums", lambda: table)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = albert_tf.inspect_checkpoint(folder)
        assert report.release == "albert_base_zh_google"
        assert report.release_differences == []

        tensors = weights_of("google_v2")
        tensors["bert/pooler/dense/bias"] += 1
        write(tmp_path / "changed", tensors, config_of("google_v2"))
        report = albert_tf.inspect_checkpoint(tmp_path / "changed")
    assert report.release == "albert_base_zh_google"
    assert "bert/pooler/dense/bias" in str(report.release_differences)


def indexes(assets):
    return sorted(assets.glob("released/*/*.index"))


def beside(index, folder):
    """A released index with its config, and data of the right length, all zeros."""
    shutil.copy(index, folder)
    for config in index.parent.glob("*config*.json"):
        shutil.copy(config, folder)
    size = json.loads(index.with_suffix(".index.json").read_text())["data_file_bytes"]
    with open(folder / f"{index.stem}.data-00000-of-00001", "wb") as file:
        file.truncate(size)
    return folder / index.stem


@pytest.mark.slow
def test_real_indexes_are_recognised_and_wrong_data_are_seen(assets, tmp_path):
    for index in indexes(assets):
        folder = tmp_path / index.parent.name
        folder.mkdir()
        prefix = beside(index, folder)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if not list(folder.glob("*.json")):
                config = "released/configs/albert_config_tiny_google.json"
                shutil.copy(assets / config, folder)
            report = albert_tf.inspect_checkpoint(prefix)
        name = index.parent.name.removesuffix("_a")
        name = {"albert_tiny_zh_b": "albert_tiny_zh_489k"}.get(name, name)
        assert (report.release, report.release_differences) == (name, [])
        # Tensors of zeros alone may be just that.
        assert len(report.damaged) > 15
        with pytest.raises(CheckpointError, match="cannot be read"):
            albert_tf.load_checkpoint(prefix, config=report.config)


def test_the_wrong_config_of_a_release_is_corrected(assets, tmp_path):
    (index,) = assets.glob("released/albert_tiny_zh_google/*.index")
    prefix = beside(index, tmp_path)
    with pytest.warns(UserWarning, match="num_layers=1.*has num_layers=4"):
        assert open_checkpoint(prefix).arguments["num_layers"] == 4
    config = json.loads((tmp_path / "albert_config_tiny_g.json").read_text())
    assert open_checkpoint(prefix, config).arguments["num_layers"] == 1


@pytest.mark.parametrize(
    "release",
    [
        "albert_tiny_zh_a",
        *(
            pytest.param(release, marks=pytest.mark.slow)
            for release in (
                *("albert_tiny_zh_google", "albert_large_zh"),
                "albert_base_zh_google",
            )
        ),
    ],
)
def test_synthetic_weights_of_a_releases_names_and_shapes(assets, tmp_path, release):
    """Every weight gets numbers of its own; slots and step are written, too."""
    (path,) = assets.glob(f"released/{release}/*.index.json")
    tensors = {}
    random = np.random.default_rng(1)
    for name, tensor in json.loads(path.read_text())["tensors"].items():
        if tensor["dtype"] == 9:
            tensors[name] = np.int64(7)
        elif name.endswith(("adam_m", "adam_v")):
            tensors[name] = np.zeros(tensor["shape"], "float32")
        else:
            tensors[name] = random.standard_normal(tensor["shape"], "float32")
    (config,) = path.parent.glob("*config*.json")
    write(tmp_path, tensors, json.loads(config.read_text()))
    model = AlbertPretrainer.from_checkpoint(tmp_path)
    assert np.array_equal(
        model.backbone.embedding.token_table, tensors["bert/embeddings/word_embeddings"]
    )
    assert np.array_equal(
        model.sop_head.kernel, tensors["cls/seq_relationship/output_weights"].T
    )
    # Nothing is left as it began, and nothing was read twice.
    sums = {round(float(np.sum(weight)), 3) for weight in model.weights}
    assert len(sums) == len(model.weights)


# The golden checkpoint with the names of each layout, and what its sizes stand for.
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
    """The names of the original code with the shapes of a release's config."""
    sizes = {"max_sequence_length": 512, "num_segments": 2, **release.arguments}
    return {
        name: tuple(sizes[LENGTHS[length]] for length in values.shape)
        for name, values in weights_of(GOLDEN_OF[release.layout]).items()
    }


def test_names_and_shapes_of_every_release():
    for release in RELEASES.values():
        assert our_shapes(release) == original_shapes(release), release.name


def our_shapes(release):
    layout = {"google": GOOGLE, "albert_zh": ALBERT_ZH}[release.layout]
    arguments = {
        **dict.fromkeys(("num_attention_groups", "num_ffn_groups"), 1),
        **dict.fromkeys(("num_inner_repetitions",), 1),
        **{"max_sequence_length": 512, "num_segments": 2},
        "embedding_projection": "before_layer_norm",
        **release.arguments,
    }
    # The heads it was pretrained with, and none of a task.
    of_tasks = HEADS.keys() - {"masked_lm_head", "sop_head"}
    parts = layout.weights.keys() - of_tasks
    return {
        name: tensors.shapes(weight_shape(key[0], attribute, arguments, 2))
        for key, attribute, tensors in layout.rows(sorted(parts), arguments)
        for name in tensors.names
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", ["albert_base_v1", "albert_base_zh"])
def test_synthetic_weights_of_a_release_without_index(tmp_path, name):
    random = np.random.default_rng(2)
    release = RELEASES[name]
    tensors = {
        tensor: random.standard_normal(shape, "float32")
        for tensor, shape in original_shapes(release).items()
    }
    write(tmp_path, tensors, release.config)
    model = AlbertPretrainer.from_checkpoint(tmp_path)
    assert np.array_equal(
        model.masked_lm_head.dense.kernel,
        tensors["cls/predictions/transform/dense/kernel"],
    )
    assert model.backbone.num_heads == release.arguments["num_heads"]


@pytest.mark.released
def test_the_published_outputs_of_the_real_weights():
    """Printed for voidful/albert_chinese_tiny, which has the same weights."""
    folder = os.environ.get("ALBERT_TF_RELEASED")
    if not folder:
        pytest.skip("ALBERT_TF_RELEASED names no folder with albert_tiny_zh_google")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        backbone = albert_tf.load_checkpoint(folder)
    ids = np.array([[101, 2769, 2682, 1391, 7883, 6028, 511, 102]])
    inputs = {
        "token_ids": ids,
        "segment_ids": np.zeros_like(ids),
        "padding_mask": np.ones_like(ids),
    }
    outputs = backbone.with_intermediates()(inputs)
    hidden = outputs["sequence_output"][0, 0]
    for found, published in (
        (hidden[:3], [0.2187, 0.1725, -0.1285]),
        (hidden[-3:], [0.4073, 0.2446, -0.4724]),
        (outputs["pooled_output"][0, :4], [0.99983, 0.86759, 0.10276, 0.99794]),
        (outputs["hidden_states"][0][0, 0, :3], [-0.5849, -0.3868, 0.0435]),
    ):
        # As many decimals as were printed.
        assert np.abs(found - np.array(published)).max() < 1e-4
