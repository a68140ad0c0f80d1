"""Damaged, incomplete and mismatched checkpoints, each with its message."""

import numpy as np
import pytest
from checkpoint_files import GOLDEN, config_of, copy, weights_of, write

from albert_tf import inspect_checkpoint, load_checkpoint
from albert_tf.checkpoints import CheckpointError, open_checkpoint
from albert_tf.models import AlbertPretrainer

GROUP = "bert/encoder/transformer/group_0/inner_group_0"


@pytest.fixture(scope="module")
def backbone():
    return open_checkpoint(GOLDEN / "google_v2").build_backbone()


@pytest.fixture
def refused(tmp_path, backbone):
    """Loading changed tensors must be refused, and leave the model as it was."""

    def check(tensors, message):
        folder = write(tmp_path, tensors, config_of("google_v2"))
        before = backbone.get_weights()
        with pytest.raises(CheckpointError, match=message):
            open_checkpoint(folder).load_into(backbone)
        for old, new in zip(before, backbone.get_weights(), strict=True):
            assert np.array_equal(old, new)

    return check


# === Configs ===


@pytest.mark.parametrize("name", ["google_v2", "albert_zh_postln"])
def test_config_of_another_size(name):
    for field, value, found in (
        ("hidden_size", 52, r"\[48, 48\]"),
        ("embedding_size", 20, r"\[120, 16\]"),
        ("intermediate_size", 100, r"\[96\]"),
        ("max_position_embeddings", 512, r"\[64, "),
    ):
        config = {**config_of(name), field: value}
        message = f"not the config of .*{field} is {value}, but bert/.* is {found}.*con"
        with pytest.raises(CheckpointError, match=message):
            load_checkpoint(GOLDEN / name, config=config)


@pytest.mark.parametrize(
    ("name", "field", "value", "message"),
    [
        ("google_v2", "num_hidden_groups", 2, "it lacks .*group_1/inner_group_0"),
        ("google_groups", "num_hidden_groups", 1, "it has .*group_1/inner_group_0.*no"),
    ],
)
def test_config_of_other_groups(name, field, value, message):
    config = {**config_of(name), field: value}
    with pytest.raises(CheckpointError, match=f"{message}.*Compare num_hidden_groups"):
        load_checkpoint(GOLDEN / name, config=config)


def test_config_with_an_impossible_value():
    for field, value, expected in (
        ("num_hidden_layers", 0, "whole number above 0"),
        ("num_hidden_layers", "3", "whole number above 0"),
        ("num_hidden_layers", 10**9, "encoder blocks one after the other"),
        ("num_attention_heads", True, "whole number above 0"),
        ("num_attention_heads", 5, "hidden size of 48 and 5 attention heads"),
        ("vocab_size", None, "whole number above 0"),
        ("hidden_dropout_prob", -0.1, "a rate from 0 to 1"),
        ("attention_probs_dropout_prob", 1.5, "a rate from 0 to 1"),
        ("hidden_act", "swish", "gelu.*relu"),
    ):
        config = {**config_of("google_v2"), field: value}
        with pytest.raises(CheckpointError, match=expected):
            load_checkpoint(GOLDEN / "google_v2", config=config)


def test_config_without_a_field():
    config = config_of("google_v2")
    del config["num_attention_heads"]
    with pytest.raises(CheckpointError, match=r"lacks .*\['num_attention_heads'\]"):
        load_checkpoint(GOLDEN / "google_v2", config=config)


def test_config_that_is_a_list(tmp_path):
    folder = copy("google_v2", tmp_path)
    (folder / "albert_config.json").write_text("[48]")
    with pytest.raises(CheckpointError, match="should hold a JSON object.*Found: list"):
        load_checkpoint(folder)


def test_unknown_ln_type():
    config = {**config_of("albert_zh_preln"), "ln_type": "rms"}
    with pytest.raises(CheckpointError, match="ln_type='rms'.*postln.*preln"):
        load_checkpoint(GOLDEN / "albert_zh_preln", config=config)


# === The `_fast` models, which were never released ===


def test_more_groups_than_layers_are_refused():
    config = {**config_of("google_v2"), "num_hidden_groups": 12}
    with pytest.raises(CheckpointError, match="grouped dense layer"):
        load_checkpoint(GOLDEN / "google_v2", config=config)


def test_released_fast_configs_are_refused(assets):
    for path in (assets / "released" / "configs").glob("*_fast.json"):
        with pytest.raises(CheckpointError, match="grouped dense layer"):
            inspect_checkpoint(GOLDEN / "google_v2", config=path)


# === Tensors ===


def test_unknown_layout(tmp_path):
    """BERT, for one: a layer of its own each time."""
    tensors = {
        "bert/embeddings/word_embeddings": np.zeros((120, 48), "float32"),
        "bert/encoder/layer_0/attention/self/query/kernel": np.eye(48),
    }
    folder = write(tmp_path / "bert", tensors, config_of("google_v2"))
    with pytest.raises(
        CheckpointError, match="no known ALBERT layout.*google.*albert_zh.*layer_0"
    ):
        load_checkpoint(folder)


def test_missing_pooler(refused):
    tensors = weights_of("google_v2")
    del tensors["bert/pooler/dense/kernel"], tensors["bert/pooler/dense/bias"]
    message = "lacks .*bert/pooler/dense/bias.*bert/pooler/dense/kernel.*Nothing was"
    refused(tensors, message)


def test_extra_encoder_tensor(refused):
    tensors = weights_of("google_v2")
    tensors["bert/encoder/adapter/kernel"] = np.zeros((4, 4), "float32")
    message = "it has .*bert/encoder/adapter/kernel.*model has no place"
    refused(tensors, message)


def test_transposed_tensor_leaves_the_model_alone(refused):
    name = f"{GROUP}/ffn_1/intermediate/dense/kernel"
    tensors = weights_of("google_v2")
    tensors[name] = tensors[name].T
    refused(tensors, name)


def test_query_and_key_of_unequal_widths(refused):
    """Side by side they have the right width, but would be cut in the wrong place."""
    tensors = weights_of("google_v2")
    query, key = (f"{GROUP}/attention_1/self/{x}/kernel" for x in ("query", "key"))
    tensors[query], tensors[key] = np.split(
        np.concatenate([tensors[query], tensors[key]], axis=-1), [40], axis=-1
    )
    refused(tensors, "query/kernel")


def test_missing_head_is_refused_where_it_is_needed(tmp_path):
    missing, head = "cls/predictions/output_bias", "masked_lm_head"
    tensors = weights_of("google_v2")
    del tensors[missing]
    folder = write(tmp_path, tensors, config_of("google_v2"))
    with pytest.raises(CheckpointError, match=f"it lacks .*{missing}"):
        AlbertPretrainer.from_checkpoint(folder)
    assert head not in inspect_checkpoint(folder).heads
    expected = load_checkpoint(GOLDEN / "google_v2")
    for a, b in zip(expected.weights, load_checkpoint(folder).weights, strict=True):
        assert np.array_equal(a.numpy(), b.numpy())
