"""The tables, apart from any file."""

import json

import numpy as np
import pytest
from checkpoint_files import LAYOUT_OF, NAMES, config_of, weights_of
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from albert_tf.checkpoints import CheckpointError, config_arguments
from albert_tf.checkpoints.checkpoint import LAYOUTS
from albert_tf.checkpoints.layout import (
    BACKBONE_PARTS,
    HEAD_PARTS,
    Tensors,
    join,
    model_weights,
    transposed,
)
from albert_tf.models import AlbertBackbone, AlbertPretrainer

SMALL = {
    "vocabulary_size": 120,
    "num_layers": 4,
    "num_heads": 4,
    "embedding_dim": 16,
    "hidden_dim": 48,
    "intermediate_dim": 96,
}


@st.composite
def tensors_and_values(draw):
    """Tensors of any number, rank, width and orientation, with their arrays."""
    count = draw(st.integers(1, 4))
    shape = draw(arrays.array_shapes(min_dims=1, max_dims=3, max_side=5))
    transpose = draw(st.booleans()) if len(shape) == 2 else False
    values = arrays.arrays("float32", shape, elements=st.floats(width=32))
    names = tuple(f"tensor_{i}" for i in range(count))
    return Tensors(names, transpose), draw(
        st.lists(values, min_size=count, max_size=count)
    )


@given(tensors_and_values())
def test_joining_and_splitting_gives_the_same_tensors(drawn):
    tensors, values = drawn
    again = tensors.from_weight(tensors.to_weight(values))
    assert len(again) == len(values)
    for old, new in zip(values, again, strict=True):
        assert np.array_equal(old, new, equal_nan=True)


def test_join_stands_side_by_side():
    query, key = np.ones((2, 3)), np.zeros((2, 3))
    assert join("query", "key").to_weight([query, key]).tolist() == (
        [[1.0, 1.0, 1.0, 0.0, 0.0, 0.0]] * 2
    )


def test_transposed_is_the_transposed_matrix():
    assert transposed("output_weights").to_weight([np.eye(2, 3)]).shape == (3, 2)


@pytest.mark.parametrize("name", NAMES)
def test_a_layout_names_all_tensors_of_the_original_once(name):
    layout, config = LAYOUTS[LAYOUT_OF[name]], config_of(name)
    rows = layout.rows(
        (*BACKBONE_PARTS, *HEAD_PARTS),
        config.get("num_hidden_groups", 1),
        config.get("inner_group_num", 1),
    )
    names = [name for _, _, tensors in rows for name in tensors.names]
    assert sorted(names) == sorted(weights_of(name))


def test_layouts_do_not_take_each_other_for_theirs():
    for name in NAMES:
        found = [x.name for x in LAYOUTS.values() if x.matches(weights_of(name))]
        assert found == [LAYOUT_OF[name]]


@pytest.mark.parametrize(
    ("layout", "changes"),
    [
        ("albert_zh", {}),
        ("albert_zh", {"norm_first": True}),
        ("google", {"num_attention_groups": 3, "num_ffn_groups": 3}),
        ("google", {"num_inner_layers": 2}),
    ],
)
def test_every_weight_of_a_model_has_its_tensors(layout, changes):
    """None stays random: each variable is in the table, and only once."""
    if layout == "google":
        changes = {**changes, "embedding_projection": "after_layer_norm"}
    model = AlbertPretrainer(AlbertBackbone(**SMALL, **changes))
    rows = model_weights(LAYOUTS[layout], model)
    assert sorted(id(variable) for variable, _ in rows) == sorted(
        id(variable) for variable in model.weights
    )
    names = [name for _, tensors in rows for name in tensors.names]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", NAMES)
def test_config_arguments(tmp_path, name):
    config = config_of(name)
    (tmp_path / "config.json").write_text(json.dumps(config))
    google = LAYOUT_OF[name] == "google"
    groups = config.get("num_hidden_groups", 1)
    assert config_arguments(tmp_path / "config.json") == {
        "vocabulary_size": 120,
        "num_layers": config["num_hidden_layers"],
        "num_heads": 4,
        "embedding_dim": 16,
        "hidden_dim": 48,
        "intermediate_dim": 96,
        "num_attention_groups": groups,
        "num_ffn_groups": groups,
        "num_inner_layers": config.get("inner_group_num", 1),
        "embedding_projection": "after_layer_norm" if google else "before_layer_norm",
        "norm_first": name == "albert_zh_preln",
        "activation": "relu" if name == "google_early" else "gelu_approximate",
        "hidden_dropout": 0.0,
        "attention_dropout": 0.0,
        "max_sequence_length": 64,
        "num_segments": 2,
    }


def test_config_arguments_name_the_file_in_errors(tmp_path):
    (tmp_path / "mine.json").write_text("{}")
    with pytest.raises(CheckpointError, match="mine.json lacks the fields"):
        config_arguments(tmp_path / "mine.json")
